#include "quantizers/quantizer/codec_bound.h"
#include "quantizers/quantizer/cpu/tile.h"

// Compiled once per vector target; the plain loop below is vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantizers/quantizer/cpu/bound.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::quantizer::HWY_NAMESPACE {  // NOLINT

/// Minima and maxima per lane, so that the inner loop has no carried dependency.
template <class T>
ValueRange rangeLoop(const void* in, std::size_t n_values) {
  using O = Ordered<T>;
  using S = typename O::S;
  constexpr std::size_t kLanes = 64;
  alignas(64) S low[kLanes];
  alignas(64) S high[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    low[lane] = O::kMax;
    high[lane] = O::kMin;
  }
  const S* HWY_RESTRICT bits = static_cast<const S*>(in);
  const auto take = [&](std::size_t lane, S b) HWY_ATTR {
    const bool finite = O::isFinite(b);
    const S for_low = finite ? O::map(b) : O::kMax;
    const S for_high = finite ? O::map(b) : O::kMin;
    low[lane] = for_low < low[lane] ? for_low : low[lane];
    high[lane] = for_high > high[lane] ? for_high : high[lane];
  };
  std::size_t at = 0;
  for (; at + kLanes <= n_values; at += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      take(lane, bits[at + lane]);
    }
  }
  for (; at < n_values; ++at) {
    take(0, bits[at]);
  }
  for (std::size_t lane = 1; lane < kLanes; ++lane) {
    low[0] = low[lane] < low[0] ? low[lane] : low[0];
    high[0] = high[lane] > high[0] ? high[lane] : high[0];
  }
  if (low[0] > high[0]) {
    return {1.0, -1.0};
  }
  return {O::value(low[0]), O::value(high[0])};
}

ValueRange range(std::size_t value_bytes, const void* in, std::size_t n_values) {
  return value_bytes == 4 ? rangeLoop<float>(in, n_values) : rangeLoop<double>(in, n_values);
}

}  // namespace fz::quantizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::quantizer {

HWY_EXPORT(range);

ValueRange rangeOfTile(std::size_t value_bytes, const void* in, std::size_t n_values) {
  return HWY_DYNAMIC_DISPATCH(range)(value_bytes, in, n_values);
}

}  // namespace fz::quantizer
#endif
