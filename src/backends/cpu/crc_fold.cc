#include "backends/cpu/crc_fold.h"

#include "shared/crc_remainder.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/crc_fold.cc"  // NOLINT
// Products of polynomials in 512 bits. NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_WANT_AVX3_DL 1
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::HWY_NAMESPACE {  // NOLINT

#if HWY_TARGET <= HWY_AVX3_DL

constexpr std::size_t kVectorBytes = 64;
constexpr std::size_t kVectors = 4;  // in flight, since a product takes several cycles
constexpr std::size_t kStepBytes = kVectors * kVectorBytes;

/// What moves 128 bits n_bytes on: the power of x for their first half, and for the second, which
/// is 64 bits nearer. Products of reflected polynomials lack one bit, hence the shift.
template <std::size_t kBytes>
HWY_INLINE __m512i powers() {
  static_assert(kBytes >= 16);
  constexpr auto kFirst = static_cast<long long>(std::uint64_t{crcPower(kBytes + 4)} << 1);
  constexpr auto kSecond = static_cast<long long>(std::uint64_t{crcPower(kBytes - 4)} << 1);
  return _mm512_set_epi64(kSecond, kFirst, kSecond, kFirst, kSecond, kFirst, kSecond, kFirst);
}

/// Every 128 bits of v moved on, and `next` added.
HWY_INLINE __m512i fold(__m512i v, __m512i power, __m512i next) {
  constexpr int kSumOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, power, 0x00),
                                   _mm512_clmulepi64_epi128(v, power, 0x11), next, kSumOfThree);
}

FoldedCrc foldMessage(ByteView message, std::uint32_t crc) {
  FoldedCrc folded;
  if (message.size() < 2 * kStepBytes) {
    return folded;
  }
  const std::uint8_t* in = message.data();
  __m512i part[kVectors];
  for (std::size_t i = 0; i < kVectors; ++i) {
    part[i] = _mm512_loadu_si512(in + i * kVectorBytes);
  }
  part[0] = _mm512_xor_si512(
      part[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<std::int32_t>(~crc))));
  const __m512i step = powers<kStepBytes>();
  std::size_t at = kStepBytes;
  for (; at + kStepBytes <= message.size(); at += kStepBytes) {
    for (std::size_t i = 0; i < kVectors; ++i) {
      part[i] = fold(part[i], step, _mm512_loadu_si512(in + at + i * kVectorBytes));
    }
  }
  __m512i all = part[0];
  for (std::size_t i = 1; i < kVectors; ++i) {
    all = fold(all, powers<kVectorBytes>(), part[i]);
  }
  alignas(64) __m128i quarter[4];
  _mm512_store_si512(quarter, all);
  const __m128i power = _mm512_castsi512_si128(powers<16>());
  __m128i sum = quarter[0];
  for (std::size_t i = 1; i < 4; ++i) {
    sum = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(sum, power, 0x00),
                                      _mm_clmulepi64_si128(sum, power, 0x11)),
                        quarter[i]);
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(folded.bytes), sum);
  folded.n_bytes = at;
  return folded;
}

#else

FoldedCrc foldMessage(ByteView /*message*/, std::uint32_t /*crc*/) {
  return {};
}

#endif

}  // namespace fz::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz {

HWY_EXPORT(foldMessage);

FoldedCrc foldCrc(ByteView message, std::uint32_t crc) {
  return HWY_DYNAMIC_DISPATCH(foldMessage)(message, crc);
}

}  // namespace fz
#endif
