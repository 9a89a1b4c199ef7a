#include "report/sweep.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

#include "failure.h"
#include "report/part.h"
#include "report/summary.h"

namespace fz::report {

namespace {

constexpr std::size_t kMaxBounds = 32;

using Clock = std::chrono::steady_clock;

double gigabytesPerSecond(std::size_t n_bytes, Clock::time_point start) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return seconds > 0.0 ? static_cast<double>(n_bytes) / seconds * 1e-9 : 0.0;
}

SweepPoint runBound(const Input& input, const FieldView& part, double bound) {
  SweepPoint point;
  point.requested = bound;
  try {
    const auto start = Clock::now();
    const Frame frame = compress(part.type, part.bytes, optionsForPart(input, part, bound));
    point.compress_gbs = gigabytesPerSecond(part.bytes.size(), start);
    const auto middle = Clock::now();
    const Array decoded = decompress(frame, input.decode);
    point.decompress_gbs = gigabytesPerSecond(part.bytes.size(), middle);
    const FrameInfo info = inspect(frame);
    const CheckReport check = checkValues(part.type, part.bytes, decoded.bytes(),
                                          ruleOfFrame(info).value_or(BoundRule{}));
    point.absolute = info.bound ? info.bound->absolute : 0.0;
    point.ratio = info.ratio();
    point.bits_per_value =
        8.0 * static_cast<double>(frame.size()) / static_cast<double>(part.count());
    point.psnr =
        summarize(part, {part.type, part.dims, decoded.bytes()}, check.rule.fill).valid_psnr;
    point.max_error = check.stats.max_error;
    point.n_violations = check.n_violations;
  } catch (const std::exception& error) {
    // A bound that this pipeline cannot keep is a finding, not a failure of the page.
    point.refused = error.what();
  }
  return point;
}

}  // namespace

std::vector<double> parseSweep(const std::string& text, const FrameInfo& info) {
  std::vector<double> bounds;
  if (text == "auto") {
    for (int half_decades = 3; half_decades >= -3 && info.bound; --half_decades) {
      // Three digits, so that the numbers can be typed again; the archive's own stays as it is.
      const double bound = info.bound->requested * std::pow(10.0, half_decades / 2.0);
      bounds.push_back(half_decades == 0 ? bound : std::stod(fmt::format("{:.2e}", bound)));
    }
    return bounds;
  }
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    double bound = 0.0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + comma, bound);
    if (error != std::errc() || stop != text.data() + comma || !std::isfinite(bound) ||
        !(bound > 0.0) || bounds.size() == kMaxBounds) {
      throw cli::Failure(
          cli::ExitCode::kUsage,
          fmt::format("--sweep '{}': write up to {} numbers above 0 with commas between "
                      "them, as in --sweep=1e-2,1e-3,1e-4",
                      text, kMaxBounds));
    }
    bounds.push_back(bound);
    at = comma + 1;
  }
  std::sort(bounds.rbegin(), bounds.rend());
  return bounds;
}

Sweep runSweep(const Input& input) {
  Sweep sweep;
  if (!input.options || !input.info.bound || input.original.count() == 0) {
    return sweep;
  }
  const FieldView part = middlePart(input.original);
  sweep.n_values = part.count();
  sweep.is_part = part.count() != input.original.count();
  for (const double bound : input.sweep_bounds) {
    sweep.points.push_back(runBound(input, part, bound));
  }
  return sweep;
}

}  // namespace fz::report
