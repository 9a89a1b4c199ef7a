#include "backends/cpu/value_ends.h"

// Compiled once per vector target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/value_ends.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;

/// NaN are in no order, so they are never news; infinities may be, and add() drops them.
template <class T>
std::size_t withoutNews(const T* HWY_RESTRICT values,
                        std::size_t n_values,
                        const ValueEnds<T>& ends) {
  const hn::ScalableTag<T> d;
  const std::size_t n_lanes = hn::Lanes(d);
  const auto low = hn::Set(d, ends.low);
  const auto next_low = hn::Set(d, ends.next_low);
  const auto high = hn::Set(d, ends.high);
  const auto next_high = hn::Set(d, ends.next_high);
  const auto isNews = [&](std::size_t at) HWY_ATTR {
    const auto x = hn::LoadU(d, values + at);
    return hn::Or(hn::And(hn::Lt(x, next_low), hn::Ne(x, low)),
                  hn::And(hn::Gt(x, next_high), hn::Ne(x, high)));
  };
  std::size_t at = 0;
  for (; at + 2 * n_lanes <= n_values; at += 2 * n_lanes) {
    if (!hn::AllFalse(d, hn::Or(isNews(at), isNews(at + n_lanes)))) {
      break;
    }
  }
  return at;
}

template <class T>
std::size_t equal(const T* HWY_RESTRICT values, std::size_t n_values, T wanted) {
  const hn::ScalableTag<T> d;
  const std::size_t n_lanes = hn::Lanes(d);
  const auto all_wanted = hn::Set(d, wanted);
  std::size_t n_found = 0;
  std::size_t at = 0;
  for (; at + n_lanes <= n_values; at += n_lanes) {
    n_found += hn::CountTrue(d, hn::Eq(hn::LoadU(d, values + at), all_wanted));
  }
  for (; at < n_values; ++at) {
    n_found += values[at] == wanted ? 1u : 0u;
  }
  return n_found;
}

std::size_t withoutNews32(const float* values, std::size_t n, const ValueEnds<float>& ends) {
  return withoutNews(values, n, ends);
}
std::size_t withoutNews64(const double* values, std::size_t n, const ValueEnds<double>& ends) {
  return withoutNews(values, n, ends);
}
std::size_t equal32(const float* values, std::size_t n, float wanted) {
  return equal(values, n, wanted);
}
std::size_t equal64(const double* values, std::size_t n, double wanted) {
  return equal(values, n, wanted);
}

}  // namespace fz::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz {

HWY_EXPORT(withoutNews32);
HWY_EXPORT(withoutNews64);
HWY_EXPORT(equal32);
HWY_EXPORT(equal64);

std::size_t countWithoutNews(const float* values,
                             std::size_t n_values,
                             const ValueEnds<float>& ends) {
  return HWY_DYNAMIC_DISPATCH(withoutNews32)(values, n_values, ends);
}
std::size_t countWithoutNews(const double* values,
                             std::size_t n_values,
                             const ValueEnds<double>& ends) {
  return HWY_DYNAMIC_DISPATCH(withoutNews64)(values, n_values, ends);
}

std::size_t countEqual(const float* values, std::size_t n_values, float wanted) {
  return HWY_DYNAMIC_DISPATCH(equal32)(values, n_values, wanted);
}
std::size_t countEqual(const double* values, std::size_t n_values, double wanted) {
  return HWY_DYNAMIC_DISPATCH(equal64)(values, n_values, wanted);
}

}  // namespace fz
#endif
