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

/// Which values are missing. `fill` has n_fill numbers.
template <class D, class V, class T>
HWY_INLINE auto isMissing(D d, V v, const T* fill, std::size_t n_fill) {
  // Nothing that is not finite is within the largest number, NaN least of all.
  auto missing = hn::Not(hn::Le(hn::Abs(v), hn::Set(d, std::numeric_limits<T>::max())));
  for (std::size_t k = 0; k < n_fill; ++k) {
    missing = hn::Or(missing, hn::Eq(v, hn::Set(d, fill[k])));
  }
  return missing;
}

/// Of 64 values.
template <class T>
HWY_INLINE std::uint64_t missingOf64(const T* HWY_RESTRICT values,
                                     const T* fill,
                                     std::size_t n_fill) {
  const hn::ScalableTag<T> d;
  const std::size_t n_lanes = hn::Lanes(d);
  std::uint8_t bytes[16] = {};  // StoreMaskBits may write eight whatever the vector length
  auto any = hn::FirstN(d, 0);
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < 64; at += n_lanes) {
    const auto missing = isMissing(d, hn::LoadU(d, values + at), fill, n_fill);
    any = hn::Or(any, missing);
    if (n_lanes >= 8) {
      hn::StoreMaskBits(d, missing, bytes + at / 8);
      continue;
    }
    hn::StoreMaskBits(d, missing, bytes);
    word |= (std::uint64_t{bytes[0]} & ((std::uint64_t{1} << n_lanes) - 1)) << at;
  }
  // Most words: reading what was just stored in pieces would take longer than all of the above.
  if (n_lanes >= 8 && !hn::AllFalse(d, any)) {
    std::memcpy(&word, bytes, sizeof(word));
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

/// For values without or with one declared fill value, which are nearly all. The largest magnitude,
/// as an integer, tells of NaN and infinities for less than a comparison of each.
template <class T, std::size_t kFills>
HWY_INLINE bool anyOf256(const T* HWY_RESTRICT values, const T* fill) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const std::size_t n_lanes = hn::Lanes(d);
  const auto declared = hn::Set(d, kFills == 0 ? T{} : fill[0]);
  auto most = hn::Zero(di);
  auto found = hn::FirstN(d, 0);
  for (std::size_t i = 0; i < 256; i += n_lanes) {
    const auto v = hn::LoadU(d, values + i);
    most = hn::Max(most, hn::BitCast(di, hn::Abs(v)));
    if (kFills != 0) {
      found = hn::Or(found, hn::Eq(v, declared));
    }
  }
  const auto largest = hn::BitCast(di, hn::Set(d, std::numeric_limits<T>::max()));
  return !hn::AllFalse(di, hn::Gt(most, largest)) || !hn::AllFalse(d, found);
}

template <class T>
bool anyLoop(const T* values, std::size_t n_values, const T* fill, std::size_t n_fill) {
  constexpr std::size_t kStep = 256;  // values between two looks at what was found
  std::uint64_t words[kStep / 64];
  std::size_t at = 0;
  for (; at + kStep <= n_values; at += kStep) {
    const bool found = n_fill == 0   ? anyOf256<T, 0>(values + at, fill)
                       : n_fill == 1 ? anyOf256<T, 1>(values + at, fill)
                                     : findLoop(values + at, kStep, fill, n_fill, words);
    if (found) {
      return true;
    }
  }
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
    const auto missing = isMissing(d, v, fill, n_fill);
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

/// f(i, mask) for the vectors of 64 values, with a mask of the word's ones.
template <class D, class F>
HWY_INLINE void forMasks(D d, std::uint64_t word, F f) {
  const std::size_t n_lanes = hn::Lanes(d);
  std::uint8_t bytes[16] = {};  // LoadMaskBits may read eight whatever the vector length
  std::memcpy(bytes, &word, 8);
  for (std::size_t i = 0; i < 64; i += n_lanes) {
    if (n_lanes >= 8) {
      f(i, hn::LoadMaskBits(d, bytes + i / 8));
    } else {
      const std::uint64_t shifted = word >> i;
      std::memcpy(bytes, &shifted, 8);
      f(i, hn::LoadMaskBits(d, bytes));
    }
  }
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

template <class U>
bool copyAndPut(const U* HWY_RESTRICT in,
                std::size_t n_values,
                const std::uint64_t* words,
                Replacement<U> change,
                U* HWY_RESTRICT out) {
  const hn::ScalableTag<U> d;
  const auto from = hn::Set(d, change.from);
  const auto to = hn::Set(d, change.to);
  auto differs = hn::FirstN(d, 0);
  for (std::size_t at = 0; at + 64 <= n_values; at += 64) {
    forMasks(d, words[at / 64], [&](std::size_t i, auto mask) HWY_ATTR {
      const auto v = hn::LoadU(d, in + at + i);
      differs = hn::Or(differs, hn::And(mask, hn::Ne(v, from)));
      hn::StoreU(hn::IfThenElse(mask, to, v), d, out + at + i);
    });
  }
  bool is_equal = hn::AllFalse(d, differs);
  for (std::size_t i = n_values / 64 * 64; i < n_values; ++i) {
    const bool is_one = (words[i / 64] >> (i % 64) & 1) != 0;
    is_equal = is_equal && (!is_one || in[i] == change.from);
    out[i] = is_one ? change.to : in[i];
  }
  return is_equal;
}

bool copyAndPut32(const std::uint32_t* in,
                  std::size_t n_values,
                  const std::uint64_t* words,
                  Replacement<std::uint32_t> change,
                  std::uint32_t* out) {
  return copyAndPut(in, n_values, words, change, out);
}
bool copyAndPut64(const std::uint64_t* in,
                  std::size_t n_values,
                  const std::uint64_t* words,
                  Replacement<std::uint64_t> change,
                  std::uint64_t* out) {
  return copyAndPut(in, n_values, words, change, out);
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
HWY_EXPORT(copyAndPut32);
HWY_EXPORT(copyAndPut64);
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

bool copyReplaced(std::span<const std::uint32_t> in,
                  const std::uint64_t* words,
                  Replacement<std::uint32_t> change,
                  std::uint32_t* out) {
  return HWY_DYNAMIC_DISPATCH(copyAndPut32)(in.data(), in.size(), words, change, out);
}
bool copyReplaced(std::span<const std::uint64_t> in,
                  const std::uint64_t* words,
                  Replacement<std::uint64_t> change,
                  std::uint64_t* out) {
  return HWY_DYNAMIC_DISPATCH(copyAndPut64)(in.data(), in.size(), words, change, out);
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
