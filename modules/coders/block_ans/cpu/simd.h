// What measuring, encoding and decoding share where there are vectors of 16 x 32 bits. Compiled
// once per vector target (hence the odd guard). Include after hwy/highway.h. Empty for other
// targets.
#if defined(FZ_BLOCK_ANS_SIMD_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_BLOCK_ANS_SIMD_H
#undef FZ_BLOCK_ANS_SIMD_H
#else
#define FZ_BLOCK_ANS_SIMD_H
#endif
#undef FZ_BLOCK_ANS_WIDE

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <hwy/highway.h>

#include "coders/block_ans/codec.h"
#include "coders/block_ans/cpu/chunks.h"

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
#define FZ_BLOCK_ANS_WIDE
#include <immintrin.h>

HWY_BEFORE_NAMESPACE();
namespace fz::block_ans::HWY_NAMESPACE {  // NOLINT

using V = __m512i;
using LaneMask = __mmask16;
inline constexpr std::uint32_t kWide = 16;  // lanes of a vector

HWY_INLINE V all(std::uint32_t value) {
  return _mm512_set1_epi32(static_cast<int>(value));
}
HWY_INLINE LaneMask isAtLeast(V a, std::uint32_t limit) {
  return _mm512_cmpge_epu32_mask(a, all(limit));
}
HWY_INLINE std::uint32_t countOf(LaneMask mask) {
  return bits::popCount(std::uint32_t{mask});
}

/// Numbers u of 64 values.
template <class T, Map kMap>
HWY_INLINE void loadNumbers(const T* values, V* u) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      u[i] = _mm512_loadu_si512(values + kWide * i);
    } else {
      const __m256i narrow =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + kWide * i));
      u[i] = kMap == Map::kZigzag ? _mm512_cvtepi16_epi32(narrow) : _mm512_cvtepu16_epi32(narrow);
    }
    if constexpr (kMap == Map::kZigzag) {
      u[i] = _mm512_xor_si512(_mm512_slli_epi32(u[i], 1), _mm512_srai_epi32(u[i], 31));
    }
  }
}

/// Values of a block; from `room`, filled up with zeros, where the block is not whole.
template <class T>
HWY_INLINE const T* wholeBlock(const ValueView& in, std::uint64_t block, T* room) {
  const std::uint64_t first = block * kBlockValues;
  const T* values = static_cast<const T*>(in.values);
  if (first + kBlockValues <= in.n_values) {
    return values + first;
  }
  std::memset(room, 0, kBlockValues * sizeof(T));
  if (first < in.n_values) {
    std::memcpy(room, values + first, static_cast<std::size_t>(in.n_values - first) * sizeof(T));
  }
  return room;
}

/// Raw bits of each number; 0 for those below 16.
HWY_INLINE V rawBitsOf(V u) {
  // As a float, of which the exponent counts. Without the bits below a one the number does not
  // round up to the next power of two.
  const V steep = _mm512_andnot_si512(_mm512_srli_epi32(u, 1), u);
  const V exponent = _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepu32_ps(steep)), 23);
  return _mm512_maskz_sub_epi32(isAtLeast(u, 16), exponent, all(127 + 2));
}

/// symbolOf; n_raw is rawBitsOf(u).
HWY_INLINE V symbolsOf(V u, V n_raw) {
  const V high = _mm512_and_si512(_mm512_srlv_epi32(u, n_raw), all(3));
  const V symbol = _mm512_add_epi32(_mm512_slli_epi32(n_raw, 2), _mm512_add_epi32(high, all(8)));
  return _mm512_mask_mov_epi32(u, isAtLeast(u, 16), symbol);
}

/// Calls f.template operator()<T, map>() for the types of a view.
template <class F>
HWY_INLINE void withTypeAndMap(const ValueView& view, F f) {
  if (view.value_bytes == 2) {
    view.map == Map::kZigzag ? f.template operator()<std::uint16_t, Map::kZigzag>()
                             : f.template operator()<std::uint16_t, Map::kNone>();
  } else {
    view.map == Map::kZigzag ? f.template operator()<std::uint32_t, Map::kZigzag>()
                             : f.template operator()<std::uint32_t, Map::kNone>();
  }
}

}  // namespace fz::block_ans::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
