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

HWY_BEFORE_NAMESPACE();
namespace fz::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;

/// Of 64 values.
template <class T>
std::uint64_t missingOf64(const T* HWY_RESTRICT values, const T* fill, std::size_t n_fill) {
  const hn::ScalableTag<T> d;
  const auto largest = hn::Set(d, std::numeric_limits<T>::max());
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < 64; at += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, values + at);
    // Nothing that is not finite is within the largest number, NaN least of all.
    auto missing = hn::Not(hn::Le(hn::Abs(v), largest));
    for (std::size_t k = 0; k < n_fill; ++k) {
      missing = hn::Or(missing, hn::Eq(v, hn::Set(d, fill[k])));
    }
    std::uint8_t bytes[8] = {};  // StoreMaskBits may write eight whatever the vector length
    hn::StoreMaskBits(d, missing, bytes);
    std::uint64_t part = 0;
    std::memcpy(&part, bytes, sizeof(part));
    const std::uint64_t lanes =
        hn::Lanes(d) >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << hn::Lanes(d)) - 1;
    word |= (part & lanes) << at;
  }
  return word;
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

/// Minima and maxima of eight sequences, which the compiler turns into vectors.
template <class T>
ValidRange rangeLoop(const T* values, std::size_t n_values, const T* fill, std::size_t n_fill) {
  constexpr std::size_t kLanes = 16;
  T low[kLanes];
  T high[kLanes];
  std::fill_n(low, kLanes, std::numeric_limits<T>::infinity());
  std::fill_n(high, kLanes, -std::numeric_limits<T>::infinity());
  for (std::size_t at = 0; at < n_values; at += 64) {
    std::uint64_t missing = 0;
    const std::size_t n = std::min<std::size_t>(64, n_values - at);
    if (findLoop(values + at, n, fill, n_fill, &missing) || n < 64) {
      for (std::size_t i = 0; i < n; ++i) {
        if ((missing >> i & 1) == 0) {
          low[0] = values[at + i] < low[0] ? values[at + i] : low[0];
          high[0] = values[at + i] > high[0] ? values[at + i] : high[0];
        }
      }
      continue;
    }
    for (std::size_t i = 0; i < 64; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const T x = values[at + i + lane];
        low[lane] = x < low[lane] ? x : low[lane];
        high[lane] = x > high[lane] ? x : high[lane];
      }
    }
  }
  const T lowest = *std::min_element(low, low + kLanes);
  const T highest = *std::max_element(high, high + kLanes);
  return lowest <= highest ? ValidRange{static_cast<double>(lowest), static_cast<double>(highest)}
                           : ValidRange{};
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
