#include "backends/cpu/missing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

// Compiled once per vector target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/missing.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include "backends/cpu/missing_inl.h"

HWY_BEFORE_NAMESPACE();
namespace fz::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE std::uint64_t missingOf64(const T* HWY_RESTRICT values,
                                     const T* fill,
                                     std::size_t n_fill) {
  return forMissingOf64<kAnyFills>(values, fill, n_fill, [](auto...) HWY_ATTR {});
}

template <class T>
bool findLoop(const T* values,
              std::size_t n_values,
              const T* fill,
              std::size_t n_fill,
              std::uint64_t* words) {
  std::uint64_t any = 0;
  std::size_t at = 0;
  for (; at + 64 <= n_values; at += 64) {
    words[at / 64] = missingOf64(values + at, fill, n_fill);
    any |= words[at / 64];
  }
  if (at < n_values) {
    T rest[64] = {};
    std::copy_n(values + at, n_values - at, rest);
    const std::uint64_t used = (std::uint64_t{1} << (n_values - at)) - 1;
    words[at / 64] = missingOf64(rest, fill, n_fill) & used;
    any |= words[at / 64];
  }
  return any != 0;
}

/// Values between two looks at what was found.
constexpr std::size_t kStep = 256;

/// 0 where a value equals the fill value, in which the sign of a zero does not count.
template <bool kIsZero, class DU, class V>
HWY_INLINE auto unlikeFill(DU du, V v, V fill) {
  if constexpr (kIsZero) {
    return hn::BitCast(du, hn::Abs(v));
  } else {
    return hn::Xor(hn::BitCast(du, v), hn::BitCast(du, fill));
  }
}

/// Whether one of kStep values is a fill value or, if asked, not finite. Sums of products with 0
/// and smallest differences take a third less time than comparisons, whose results all go through
/// one unit; four of each, as each waits for the one before.
template <bool kAsksFinite, bool kIsZero, class T>
HWY_INLINE bool anyOfStep(const T* HWY_RESTRICT values, T fill) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const std::size_t n_lanes = hn::Lanes(d);
  const auto declared = hn::Set(d, fill);
  const auto zero = hn::Zero(d);
  auto sum0 = zero;
  auto sum1 = zero;
  auto sum2 = zero;
  auto sum3 = zero;
  auto least0 = hn::Set(du, 1);
  auto least1 = least0;
  auto least2 = least0;
  auto least3 = least0;
  const auto take = [&](const T* HWY_RESTRICT from, auto& sum, auto& least) HWY_ATTR {
    const auto v = hn::LoadU(d, from);
    if (kAsksFinite) {
      sum = hn::MulAdd(v, zero, sum);
    }
    least = hn::Min(least, unlikeFill<kIsZero>(du, v, declared));
  };
  for (std::size_t i = 0; i < kStep; i += 4 * n_lanes) {
    take(values + i, sum0, least0);
    take(values + i + n_lanes, sum1, least1);
    take(values + i + 2 * n_lanes, sum2, least2);
    take(values + i + 3 * n_lanes, sum3, least3);
  }
  const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  const auto least = hn::Min(hn::Min(least0, least1), hn::Min(least2, least3));
  return !hn::AllTrue(d, hn::Eq(sum, zero)) || !hn::AllFalse(du, hn::Eq(least, hn::Zero(du)));
}

template <bool kAsksFinite, class T>
HWY_INLINE bool anyOfFill(const T* HWY_RESTRICT values, T fill) {
  return fill == T{0} ? anyOfStep<kAsksFinite, true>(values, fill)
                      : anyOfStep<kAsksFinite, false>(values, fill);
}

template <class T>
bool anyLoop(const T* values, std::size_t n_values, const T* fill, std::size_t n_fill) {
  // No finite value is NaN, which stands for no fill value.
  const T first = n_fill == 0 ? std::numeric_limits<T>::quiet_NaN() : fill[0];
  std::size_t at = 0;
  for (; at + kStep <= n_values; at += kStep) {
    bool found = anyOfFill<true>(values + at, first);
    for (std::size_t k = 1; k < n_fill; ++k) {
      found = found || anyOfFill<false>(values + at, fill[k]);
    }
    if (found) {
      return true;
    }
  }
  std::uint64_t words[kStep / 64];
  return findLoop(values + at, n_values - at, fill, n_fill, words);
}

template <class T>
ValidRange rangeLoop(const T* values, std::size_t n_values, const T* fill, std::size_t n_fill) {
  const hn::ScalableTag<T> d;
  const std::size_t n_lanes = hn::Lanes(d);
  const auto above_all = hn::Set(d, std::numeric_limits<T>::infinity());
  const auto below_all = hn::Set(d, -std::numeric_limits<T>::infinity());
  auto low = above_all;
  auto high = below_all;
  const auto take = [&](const T* HWY_RESTRICT from) HWY_ATTR {
    const auto v = hn::LoadU(d, from);
    const auto missing = isMissing<kAnyFills>(d, v, fill, n_fill);
    low = hn::Min(low, hn::IfThenElse(missing, above_all, v));
    high = hn::Max(high, hn::IfThenElse(missing, below_all, v));
  };
  std::size_t at = 0;
  for (; at + n_lanes <= n_values; at += n_lanes) {
    take(values + at);
  }
  if (at < n_values) {
    T rest[64];
    std::fill_n(rest, 64, std::numeric_limits<T>::infinity());  // missing
    std::copy_n(values + at, n_values - at, rest);
    take(rest);
  }
  T lows[64];
  T highs[64];
  hn::StoreU(low, d, lows);
  hn::StoreU(high, d, highs);
  const T lowest = *std::min_element(lows, lows + n_lanes);
  const T highest = *std::max_element(highs, highs + n_lanes);
  return lowest <= highest ? ValidRange{static_cast<double>(lowest), static_cast<double>(highest)}
                           : ValidRange{};
}

template <class U>
void put(U* values, std::size_t n_values, const std::uint64_t* words, U value) {
  const hn::ScalableTag<U> d;
  const auto all = hn::Set(d, value);
  for (std::size_t at = 0; at + 64 <= n_values; at += 64) {
    if (words[at / 64] != 0) {
      forMasks(d, words[at / 64], [&](std::size_t i, auto mask) HWY_ATTR {
        hn::BlendedStore(all, mask, d, values + at + i);
      });
    }
  }
  for (std::size_t i = n_values / 64 * 64; i < n_values; ++i) {
    values[i] = (words[i / 64] >> (i % 64) & 1) != 0 ? value : values[i];
  }
}

void put32(std::uint32_t* values, std::size_t n, const std::uint64_t* words, std::uint32_t value) {
  put(values, n, words, value);
}
void put64(std::uint64_t* values, std::size_t n, const std::uint64_t* words, std::uint64_t value) {
  put(values, n, words, value);
}

std::uint64_t ones(const std::uint64_t* HWY_RESTRICT words, std::size_t n_words) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t n_lanes = hn::Lanes(d);
  auto sums = hn::Zero(d);
  std::size_t at = 0;
  for (; at + n_lanes <= n_words; at += n_lanes) {
    sums = hn::Add(sums, hn::PopulationCount(hn::LoadU(d, words + at)));
  }
  std::uint64_t total = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; at < n_words; ++at) {
    total += static_cast<std::uint64_t>(__builtin_popcountll(words[at]));
  }
  return total;
}

bool anyFloats(const float* values, std::size_t n_values, const float* fill, std::size_t n_fill) {
  return anyLoop(values, n_values, fill, n_fill);
}
bool anyDoubles(const double* values,
                std::size_t n_values,
                const double* fill,
                std::size_t n_fill) {
  return anyLoop(values, n_values, fill, n_fill);
}

ValidRange rangeOfFloats(const float* values,
                         std::size_t n_values,
                         const float* fill,
                         std::size_t n_fill) {
  return rangeLoop(values, n_values, fill, n_fill);
}
ValidRange rangeOfDoubles(const double* values,
                          std::size_t n_values,
                          const double* fill,
                          std::size_t n_fill) {
  return rangeLoop(values, n_values, fill, n_fill);
}

bool findFloats(const float* values,
                std::size_t n_values,
                const float* fill,
                std::size_t n_fill,
                std::uint64_t* words) {
  return findLoop(values, n_values, fill, n_fill, words);
}
bool findDoubles(const double* values,
                 std::size_t n_values,
                 const double* fill,
                 std::size_t n_fill,
                 std::uint64_t* words) {
  return findLoop(values, n_values, fill, n_fill, words);
}

}  // namespace fz::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz {

HWY_EXPORT(findFloats);
HWY_EXPORT(findDoubles);
HWY_EXPORT(rangeOfFloats);
HWY_EXPORT(rangeOfDoubles);
HWY_EXPORT(anyFloats);
HWY_EXPORT(anyDoubles);
HWY_EXPORT(put32);
HWY_EXPORT(put64);
HWY_EXPORT(ones);

namespace {

template <class T>
void addFillAs(double value, std::vector<T>& fill) {
  if (std::fabs(value) <= static_cast<double>(std::numeric_limits<T>::max())) {
    fill.push_back(static_cast<T>(value));
  }
}

}  // namespace

void addFill(double value, std::vector<float>& fill) {
  addFillAs(value, fill);
}
void addFill(double value, std::vector<double>& fill) {
  addFillAs(value, fill);
}

ValidRange rangeOfValid(std::span<const float> values, std::span<const float> fill) {
  return HWY_DYNAMIC_DISPATCH(rangeOfFloats)(values.data(), values.size(), fill.data(),
                                             fill.size());
}
ValidRange rangeOfValid(std::span<const double> values, std::span<const double> fill) {
  return HWY_DYNAMIC_DISPATCH(rangeOfDoubles)(values.data(), values.size(), fill.data(),
                                              fill.size());
}

bool anyMissing(std::span<const float> values, std::span<const float> fill) {
  return HWY_DYNAMIC_DISPATCH(anyFloats)(values.data(), values.size(), fill.data(), fill.size());
}
bool anyMissing(std::span<const double> values, std::span<const double> fill) {
  return HWY_DYNAMIC_DISPATCH(anyDoubles)(values.data(), values.size(), fill.data(), fill.size());
}

void putWhere(std::span<std::uint32_t> values, const std::uint64_t* words, std::uint32_t value) {
  HWY_DYNAMIC_DISPATCH(put32)(values.data(), values.size(), words, value);
}
void putWhere(std::span<std::uint64_t> values, const std::uint64_t* words, std::uint64_t value) {
  HWY_DYNAMIC_DISPATCH(put64)(values.data(), values.size(), words, value);
}

std::uint64_t countOnes(std::span<const std::uint64_t> words) {
  return HWY_DYNAMIC_DISPATCH(ones)(words.data(), words.size());
}

bool findMissing(const float* values,
                 std::size_t n_values,
                 std::span<const float> fill,
                 std::uint64_t* words) {
  return HWY_DYNAMIC_DISPATCH(findFloats)(values, n_values, fill.data(), fill.size(), words);
}
bool findMissing(const double* values,
                 std::size_t n_values,
                 std::span<const double> fill,
                 std::uint64_t* words) {
  return HWY_DYNAMIC_DISPATCH(findDoubles)(values, n_values, fill.data(), fill.size(), words);
}

}  // namespace fz
#endif
