#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "fz/host_api.h"
#include "pipeline/compressor.h"
#include "trust/exact_f64.h"
#include "trust/trust.h"

/// How the goals about the error bound judge a frame.
namespace fz::trust {

/// Range and largest size over the finite values.
template <class T>
struct Extent {
  double range = 0.0;
  double largest = 0.0;

  explicit Extent(const std::vector<T>& values) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const T v : values) {
      if (fp::isFinite(v)) {
        low = std::min(low, static_cast<double>(v));
        high = std::max(high, static_cast<double>(v));
        largest = std::max(largest, std::fabs(static_cast<double>(v)));
      }
    }
    range = high > low ? high - low : 0.0;
  }
};

/// The absolute bound that the request comes to at most; docs/numerics.md says how it is rounded.
template <class T>
double maxAllowed(const BoundInfo& bound, const std::vector<T>& values) {
  const Extent<T> extent(values);
  switch (bound.mode) {
    case ErrorBoundMode::ABS:
      return bound.requested;
    case ErrorBoundMode::NOA:
      return extent.range > 0 ? bound.requested * extent.range : bound.requested;
    case ErrorBoundMode::REL:
      return extent.largest > 0 ? bound.requested * extent.largest : bound.requested;
  }
  return 0.0;
}

template <class T>
std::uint64_t misses(const std::vector<T>& values, const T* back, double bound, bool relative) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    n += (relative ? keepsRelative(values[i], back[i], bound)
                   : keepsAbsolute(values[i], back[i], bound))
             ? 0
             : 1;
  }
  return n;
}

/// A frame of the stages alone, into whose way no Mask comes: they are to be judged.
template <class T>
Frame frameOfStages(const std::vector<T>& values, const CompressOptions& options) {
  Pipeline pipeline;
  configure(pipeline, kDataTypeOf<T>, options);
  const CompressedView view = pipeline.compress(values.data(), values.size() * sizeof(T));
  const auto* data = static_cast<const std::uint8_t*>(view.data);
  return Frame(std::vector<std::uint8_t>(data, data + view.n_bytes));
}

/// Compares a result with what its frame promises and with what was asked for.
template <class T>
void checkResult(const std::vector<T>& values,
                 const FrameInfo& info,
                 const std::vector<T>& back,
                 const std::string& where,
                 Report& report) {
  if (back.size() != values.size()) {
    return report.fail(where + ": " + std::to_string(back.size()) + " values came back");
  }
  report.add("values", values.size());
  if (!info.bound || info.lossless) {
    const bool equal =
        values.empty() || std::memcmp(values.data(), back.data(), values.size() * sizeof(T)) == 0;
    // A linear quantiser that may wrap promises nothing.
    return report.check(equal || !info.lossless, where + ": lossless, but values differ");
  }
  const bool has_quantizer =
      std::any_of(info.stages.begin(), info.stages.end(),
                  [](const FrameStageInfo& stage) { return stage.name == "Quantizer"; });
  const bool pointwise =
      info.bound->mode == ErrorBoundMode::REL && info.bound->absolute == 0.0 && has_quantizer;
  const double bound = pointwise ? info.bound->requested : info.bound->absolute;
  if (!pointwise) {
    report.check(bound <= maxAllowed(*info.bound, values),
                 where + ": the frame allows " + std::to_string(bound));
  }
  const std::uint64_t n = misses(values, back.data(), bound, pointwise);
  report.add("violations", n);
  report.check(n == 0, where + ": " + std::to_string(n) + " values miss the bound");
}

}  // namespace fz::trust
