// Missing values out of a field, and other values in their places.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/missing.h"

// Compiled once per vector target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/take_out.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include "backends/cpu/missing_inl.h"

HWY_BEFORE_NAMESPACE();
namespace fz::HWY_NAMESPACE {  // NOLINT

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Takes note of the missing values of a word.
template <class T>
HWY_INLINE void noteBits(const T* values, std::uint64_t word, MissingBits& found) {
  const hn::ScalableTag<BitsOf<T>> d;
  const auto* const bits = reinterpret_cast<const BitsOf<T>*>(values);
  if (!found.any) {
    found.any = true;
    found.first = bits[__builtin_ctzll(word)];
  }
  const auto first = hn::Set(d, static_cast<BitsOf<T>>(found.first));
  auto differs = hn::FirstN(d, 0);
  if (word == ~std::uint64_t{0}) {
    for (std::size_t i = 0; i < 64; i += hn::Lanes(d)) {
      differs = hn::Or(differs, hn::Ne(hn::LoadU(d, bits + i), first));
    }
    found.are_alike = found.are_alike && hn::AllFalse(d, differs);
    return;
  }
  forMasks(d, word, [&](std::size_t i, auto mask) HWY_ATTR {
    differs = hn::Or(differs, hn::And(mask, hn::Ne(hn::LoadU(d, bits + i), first)));
  });
  found.are_alike = found.are_alike && hn::AllFalse(d, differs);
}

/// The values that come so far behind those at hand are asked for: they are read from memory, tile
/// by tile with other work between, and machines read ahead neither across that nor across the
/// borders of pages. It makes calls with missing values a tenth to a sixth quicker.
constexpr std::size_t kAheadBytes = 8192;

template <std::size_t kFills, class T>
MissingBits takeOutLoop(const T* HWY_RESTRICT values,
                        std::size_t n_values,
                        const T* fill,
                        std::size_t n_fill,
                        T filler,
                        std::uint64_t* HWY_RESTRICT words,
                        T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const auto fillers = hn::Set(d, filler);
  MissingBits found;
  const auto take = [&](const T* HWY_RESTRICT from, T* HWY_RESTRICT to) HWY_ATTR {
    return forMissingOf64<kFills>(from, fill, n_fill,
                                  [&](std::size_t i, auto v, auto missing) HWY_ATTR {
                                    hn::StoreU(hn::IfThenElse(missing, fillers, v), d, to + i);
                                  });
  };
  std::size_t at = 0;
  for (; at + 64 <= n_values; at += 64) {
    const auto* const here = reinterpret_cast<const std::uint8_t*>(values + at);
    for (std::size_t i = 0; i < 64 * sizeof(T); i += 64) {
      __builtin_prefetch(here + kAheadBytes + i);
    }
    const std::uint64_t word = take(values + at, out + at);
    words[at / 64] = word;
    if (word != 0) {
      noteBits(values + at, word, found);
    }
  }
  if (at < n_values) {
    T rest[64] = {};
    T rest_out[64];
    const std::size_t n_rest = n_values - at;
    std::copy_n(values + at, n_rest, rest);
    const std::uint64_t word = take(rest, rest_out) & ((std::uint64_t{1} << n_rest) - 1);
    std::copy_n(rest_out, n_rest, out + at);
    words[at / 64] = word;
    if (word != 0) {
      noteBits(rest, word, found);
    }
  }
  return found;
}

template <class T>
MissingBits takeOut(const T* values,
                    std::size_t n_values,
                    std::span<const T> fill,
                    T filler,
                    std::uint64_t* words,
                    T* out) {
  const auto loop = fill.empty()       ? takeOutLoop<0, T>
                    : fill.size() == 1 ? takeOutLoop<1, T>
                                       : takeOutLoop<kAnyFills, T>;
  return loop(values, n_values, fill.data(), fill.size(), filler, words, out);
}
MissingBits takeOutFloats(const float* values,
                          std::size_t n,
                          std::span<const float> fill,
                          float filler,
                          std::uint64_t* words,
                          float* out) {
  return takeOut(values, n, fill, filler, words, out);
}
MissingBits takeOutDoubles(const double* values,
                           std::size_t n,
                           std::span<const double> fill,
                           double filler,
                           std::uint64_t* words,
                           double* out) {
  return takeOut(values, n, fill, filler, words, out);
}

/// A run of ones from `begin` to before `end`.
struct Run {
  std::uint32_t begin;
  std::uint32_t end;
};
HWY_INLINE Run firstRun(std::uint64_t word) {
  const auto begin = static_cast<std::uint32_t>(__builtin_ctzll(word));
  const std::uint64_t behind = ~(word >> begin);
  return {begin, behind == 0 ? 64 : begin + static_cast<std::uint32_t>(__builtin_ctzll(behind))};
}

/// The ones of a word, or of a part of it that has whole vectors, whose values are all there.
template <class T>
HWY_INLINE void holdWord(T* HWY_RESTRICT values, std::uint64_t word, T held) {
  const hn::ScalableTag<T> d;
  const std::size_t n_lanes = hn::Lanes(d);
  while (word != 0) {
    const Run run = firstRun(word);
    const auto value = hn::Set(d, run.begin == 0 ? held : values[run.begin - 1]);
    const std::uint64_t here =
        word & (run.end == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << run.end) - 1);
    std::uint8_t bytes[16] = {};  // LoadMaskBits may read eight whatever the vector length
    for (std::size_t i = run.begin / n_lanes * n_lanes; i < run.end; i += n_lanes) {
      const std::uint64_t shifted = here >> i;
      std::memcpy(bytes, &shifted, 8);
      hn::BlendedStore(value, hn::LoadMaskBits(d, bytes), d, values + i);
    }
    word &= ~here;
  }
}

template <class T>
HWY_INLINE void fillWord(T* values, T value) {
  const hn::ScalableTag<T> d;
  for (std::size_t i = 0; i < 64; i += hn::Lanes(d)) {
    hn::StoreU(hn::Set(d, value), d, values + i);
  }
}

/// The ones of the last word, of which some values are not there.
template <class T>
void holdRest(T* values, std::size_t n_values, std::uint64_t word, T held) {
  for (std::size_t i = 0; i < n_values; ++i) {
    held = (word >> i & 1) != 0 ? held : values[i];
    values[i] = held;
  }
}

template <class T>
HWY_INLINE void holdAll(T* values, std::size_t n_values, const std::uint64_t* words, T held) {
  const auto before = [&](std::size_t at) { return at == 0 ? held : values[at - 1]; };
  std::size_t at = 0;
  for (; at + 64 <= n_values; at += 64) {
    const std::uint64_t word = words[at / 64];
    if (word == ~std::uint64_t{0}) {
      fillWord(values + at, before(at));
    } else if (word != 0) {
      holdWord(values + at, word, before(at));
    }
  }
  if (at < n_values) {
    holdRest(values + at, n_values - at, words[at / 64], before(at));
  }
}
void holdFloats(float* values, std::size_t n_values, const std::uint64_t* words, float held) {
  holdAll(values, n_values, words, held);
}
void holdDoubles(double* values, std::size_t n_values, const std::uint64_t* words, double held) {
  holdAll(values, n_values, words, held);
}

template <class T>
HWY_INLINE void holdUnits(T* values,
                          std::size_t n_values,
                          const std::uint64_t* words,
                          std::uint32_t unit) {
  const std::uint64_t ones = unit == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << unit) - 1;
  for (std::size_t at = 0; at < n_values; at += 64) {
    const std::size_t n_here = std::min<std::size_t>(64, n_values - at);
    const std::uint64_t used = n_here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n_here) - 1;
    const std::uint64_t word = words[at / 64];
    if (word == 0 || word == used) {
      continue;
    }
    for (std::uint32_t k = 0; k < n_here; k += unit) {
      const std::uint64_t missing = word >> k & ones;
      const std::uint64_t valid = ~word >> k & ones & used >> k;
      if (missing == 0 || valid == 0) {
        continue;
      }
      T* const first = values + at + k;
      const T held = first[__builtin_ctzll(valid)];
      if (n_here == 64 && unit >= hn::Lanes(hn::ScalableTag<T>())) {
        holdWord(first, missing, held);
      } else {
        holdRest(first, std::min<std::size_t>(unit, n_here - k), missing, held);
      }
    }
  }
}
void holdUnitFloats(float* values,
                    std::size_t n_values,
                    const std::uint64_t* words,
                    std::uint32_t unit) {
  holdUnits(values, n_values, words, unit);
}
void holdUnitDoubles(double* values,
                     std::size_t n_values,
                     const std::uint64_t* words,
                     std::uint32_t unit) {
  holdUnits(values, n_values, words, unit);
}

}  // namespace fz::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz {

HWY_EXPORT(takeOutFloats);
HWY_EXPORT(takeOutDoubles);
HWY_EXPORT(holdFloats);
HWY_EXPORT(holdDoubles);
HWY_EXPORT(holdUnitFloats);
HWY_EXPORT(holdUnitDoubles);

MissingBits takeOutMissing(std::span<const float> values,
                           std::span<const float> fill,
                           float filler,
                           std::uint64_t* words,
                           float* out) {
  return HWY_DYNAMIC_DISPATCH(takeOutFloats)(values.data(), values.size(), fill, filler, words,
                                             out);
}
MissingBits takeOutMissing(std::span<const double> values,
                           std::span<const double> fill,
                           double filler,
                           std::uint64_t* words,
                           double* out) {
  return HWY_DYNAMIC_DISPATCH(takeOutDoubles)(values.data(), values.size(), fill, filler, words,
                                              out);
}

void holdBefore(std::span<float> values, const std::uint64_t* words, float held) {
  HWY_DYNAMIC_DISPATCH(holdFloats)(values.data(), values.size(), words, held);
}
void holdBefore(std::span<double> values, const std::uint64_t* words, double held) {
  HWY_DYNAMIC_DISPATCH(holdDoubles)(values.data(), values.size(), words, held);
}
void holdInUnits(std::span<float> values, const std::uint64_t* words, std::uint32_t unit) {
  HWY_DYNAMIC_DISPATCH(holdUnitFloats)(values.data(), values.size(), words, unit);
}
void holdInUnits(std::span<double> values, const std::uint64_t* words, std::uint32_t unit) {
  HWY_DYNAMIC_DISPATCH(holdUnitDoubles)(values.data(), values.size(), words, unit);
}

}  // namespace fz
#endif
