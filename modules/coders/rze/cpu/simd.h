// Byte and bitmap work of RZE, compiled once per vector target: included by chunks.cc alone, after
// hwy/foreach_target.h, each time that file is compiled.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <hwy/highway.h>

#include "fz/byte_io.h"
#include "shared/bits.h"

#ifndef FZ_RZE_TABLES
#define FZ_RZE_TABLES
namespace fz::rze {

/// Byte shuffles for every 8-bit mask.
struct ShuffleTables {
  alignas(64) std::uint8_t compress[256][8] = {};  ///< marked bytes to the front
  alignas(64) std::uint8_t expand[256][8] = {};    ///< the reverse; 0x80 (gives 0) where unmarked
  alignas(64) std::uint8_t repeat[256][8] = {};    ///< marked bytes up to and including this one
};

constexpr ShuffleTables makeShuffleTables() {
  ShuffleTables tables;
  for (std::size_t mask = 0; mask < 256; ++mask) {
    std::uint8_t n = 0;
    for (std::uint8_t i = 0; i < 8; ++i) {
      const bool marked = ((mask >> i) & 1u) != 0;
      tables.expand[mask][i] = marked ? n : std::uint8_t{0x80};
      if (marked) {
        tables.compress[mask][n++] = i;
      }
      tables.repeat[mask][i] = n;
    }
  }
  return tables;
}
inline constexpr ShuffleTables kShuffle = makeShuffleTables();

}  // namespace fz::rze
#endif

#if defined(FZ_RZE_SIMD_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_RZE_SIMD_H
#undef FZ_RZE_SIMD_H
#else
#define FZ_RZE_SIMD_H
#endif

HWY_BEFORE_NAMESPACE();
namespace fz::rze::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;

// The baseline has no byte shuffle; AVX-512 with VBMI2 moves 64 bytes by a mask at once.
#undef FZ_RZE_SHUFFLE
#undef FZ_RZE_VBMI2
#define FZ_RZE_SHUFFLE (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)
#define FZ_RZE_VBMI2 (HWY_TARGET == HWY_AVX3_DL)

HWY_INLINE std::uint64_t popCount(std::uint64_t v) {
  return static_cast<std::uint64_t>(__builtin_popcountll(v));
}

HWY_INLINE std::uint32_t countBits(const std::uint8_t* bitmap, std::size_t n_marked) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < n_marked; i += 64) {
    n += popCount(loadLe<std::uint64_t>(bitmap + i / 8));
  }
  return static_cast<std::uint32_t>(n);
}

#if !FZ_RZE_SHUFFLE
constexpr std::size_t kMarkLanes = 8;

/// Bit i of *marks: bytes i of the two differ.
HWY_INLINE void markDifferences(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* marks) {
  constexpr std::uint64_t kLow = 0x7F7F7F7F7F7F7F7Full;
  const std::uint64_t x = loadLe<std::uint64_t>(a) ^ loadLe<std::uint64_t>(b);
  const std::uint64_t top = (((x & kLow) + kLow) | x) & ~kLow;  // 0x80 in every byte that is not 0
  *marks = static_cast<std::uint8_t>(((top >> 7) * 0x0102040810204080ull) >> 56);
}
#else
using MarkTag = hn::CappedTag<std::uint8_t, 64>;
constexpr std::size_t kMarkLanes = hn::MaxLanes(MarkTag());

HWY_INLINE void markDifferences(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* marks) {
  const MarkTag d;
  hn::StoreMaskBits(d, hn::Ne(hn::LoadU(d, a), hn::LoadU(d, b)), marks);
}
#endif

/// Marks the bytes that are not zero (level 0) or differ from the byte before (bitmaps, which have
/// a zero byte before the first). Fills whole 64-bit words of `bitmap`; returns how many it marked.
template <bool kIsBitmap>
HWY_INLINE std::uint32_t markBytes(const std::uint8_t* in, std::size_t n, std::uint8_t* bitmap) {
  alignas(64) constexpr std::uint8_t kZeros[64] = {};
  std::size_t i = 0;
  for (; i + kMarkLanes <= n; i += kMarkLanes) {
    markDifferences(in + i, kIsBitmap ? in + i - 1 : kZeros, bitmap + i / 8);
  }
  if (i < n) {
    std::uint8_t rest[64] = {};
    std::uint8_t before[64] = {};
    std::memcpy(rest, in + i, n - i);
    if (kIsBitmap) {
      std::memcpy(before, in + i - 1, n - i);
    }
    markDifferences(rest, before, bitmap + i / 8);
    i += kMarkLanes;
  }
  const std::size_t n_filled = i / 8;
  std::memset(bitmap + n_filled, 0, bits::roundUp(n_filled, std::size_t{8}) - n_filled);
  return countBits(bitmap, n);
}

/// memcpy, which on some processors is slow for copies of this size to odd addresses.
HWY_INLINE void copyBytes(const std::uint8_t* in, std::size_t n, std::uint8_t* out) {
  const std::size_t whole = n / 64 * 64;
  for (std::size_t i = 0; i < whole; i += 64) {
    std::uint8_t line[64];
    std::memcpy(line, in + i, 64);
    std::memcpy(out + i, line, 64);
  }
  std::memcpy(out + whole, in + whole, n - whole);
}

HWY_INLINE std::uint8_t* compressBytewise(const std::uint8_t* in,
                                          std::uint64_t marks,
                                          std::uint8_t* to) {
  for (; marks != 0; marks &= marks - 1) {
    *to++ = in[__builtin_ctzll(marks)];
  }
  return to;
}

/// Writes the marked ones of 64 bytes (of n, if fewer are left). May write rubbish behind them, but
/// not beyond `limit`.
HWY_INLINE std::uint8_t* compress64(const std::uint8_t* in,
                                    std::size_t n,
                                    std::uint64_t marks,
                                    std::uint8_t* to,
                                    const std::uint8_t* limit) {
  if (n < 64 || limit - to < 64) {
    return compressBytewise(in, marks, to);
  }
#if FZ_RZE_VBMI2
  const __m512i packed = _mm512_maskz_compress_epi8(marks, _mm512_loadu_si512(in));
  _mm512_storeu_si512(to, packed);
  return to + popCount(marks);
#elif FZ_RZE_SHUFFLE
  const hn::CappedTag<std::uint8_t, 8> d;
  for (std::size_t i = 0; i < 64; i += 8) {
    const std::uint64_t mask = (marks >> i) & 0xFF;
    const auto order = hn::Load(d, kShuffle.compress[mask]);
    hn::StoreU(hn::TableLookupBytes(hn::LoadU(d, in + i), order), d, to);
    to += popCount(mask);
  }
  return to;
#else
  return compressBytewise(in, marks, to);
#endif
}

/// Writes the marked ones of n bytes; see compress64.
HWY_INLINE std::uint8_t* compressBytes(const std::uint8_t* in,
                                       std::size_t n,
                                       const std::uint8_t* bitmap,
                                       std::uint8_t* to,
                                       const std::uint8_t* limit) {
  for (std::size_t i = 0; i < n; i += 64) {
    const auto marks = loadLe<std::uint64_t>(bitmap + i / 8);
    if (marks == 0) {
      continue;
    }
    if (marks == ~std::uint64_t{0}) {
      std::memcpy(to, in + i, 64);
      to += 64;
    } else {
      to = compress64(in + i, n - i, marks, to, limit);
    }
  }
  return to;
}

HWY_INLINE const std::uint8_t* expandBytewise(std::uint64_t marks,
                                              const std::uint8_t* kept,
                                              std::size_t n,
                                              std::uint8_t* out) {
  std::memset(out, 0, n);
  for (; marks != 0; marks &= marks - 1) {
    out[__builtin_ctzll(marks)] = *kept++;
  }
  return kept;
}

/// Fills 64 bytes (or n, if fewer are left) from the kept ones. May read up to `limit`.
HWY_INLINE const std::uint8_t* expand64(std::uint64_t marks,
                                        const std::uint8_t* kept,
                                        const std::uint8_t* limit,
                                        std::size_t n,
                                        std::uint8_t* out) {
  if (n < 64 || limit - kept < 64) {
    return expandBytewise(marks, kept, std::min(n, std::size_t{64}), out);
  }
#if FZ_RZE_VBMI2
  _mm512_storeu_si512(out, _mm512_maskz_expand_epi8(marks, _mm512_loadu_si512(kept)));
  return kept + popCount(marks);
#elif FZ_RZE_SHUFFLE
  const hn::CappedTag<std::uint8_t, 8> d;
  for (std::size_t i = 0; i < 64; i += 8) {
    const std::uint64_t mask = (marks >> i) & 0xFF;
    const auto order = hn::Load(d, kShuffle.expand[mask]);
    hn::StoreU(hn::TableLookupBytesOr0(hn::LoadU(d, kept), order), d, out + i);
    kept += popCount(mask);
  }
  return kept;
#else
  return expandBytewise(marks, kept, 64, out);
#endif
}

HWY_INLINE void expandBytes(const std::uint8_t* bitmap,
                            const std::uint8_t* kept,
                            const std::uint8_t* limit,
                            std::size_t n,
                            std::uint8_t* out) {
  for (std::size_t i = 0; i < n; i += 64) {
    const auto marks = loadLe<std::uint64_t>(bitmap + i / 8);
    if (marks == 0) {
      std::memset(out + i, 0, std::min(n - i, std::size_t{64}));
    } else if (marks == ~std::uint64_t{0}) {
      std::memcpy(out + i, kept, 64);
      kept += 64;
    } else {
      kept = expand64(marks, kept, limit, n - i, out + i);
    }
  }
}

/// Fills a bitmap of n bytes: a marked byte is the next kept one, any other repeats the one
/// before. Whole words of 8 bytes, the last filled up with zeros. May read up to `limit`.
HWY_INLINE void expandRepeats(const std::uint8_t* marks_of,
                              const std::uint8_t* kept,
                              [[maybe_unused]] const std::uint8_t* limit,
                              std::size_t n,
                              std::uint8_t* out) {
  std::uint8_t last = 0;
  [[maybe_unused]] bool has_last = false;
  for (std::size_t i = 0; i < n; i += 8) {
    const std::uint32_t marks = marks_of[i / 8];
    if (marks == 0) {
      std::memset(out + i, last, 8);
      continue;
    }
#if FZ_RZE_SHUFFLE
    // The byte before `kept` is the one to repeat, so one shuffle of the 16 from there does it.
    if (has_last && limit - kept >= 15) {
      const hn::CappedTag<std::uint8_t, 16> d16;
      const hn::CappedTag<std::uint8_t, 8> d8;
      const auto order = hn::Load(d8, kShuffle.repeat[marks]);
      hn::StoreU(hn::TableLookupBytes(hn::LoadU(d16, kept - 1), order), d8, out + i);
      kept += popCount(marks);
      last = kept[-1];
      continue;
    }
#endif
    for (std::size_t bit = 0; bit < 8; ++bit) {
      last = ((marks >> bit) & 1u) != 0 ? *kept++ : last;
      out[i + bit] = last;
    }
    has_last = true;
  }
  std::memset(out + n, 0, bits::roundUp(n, std::size_t{64}) - n);
}

}  // namespace fz::rze::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
