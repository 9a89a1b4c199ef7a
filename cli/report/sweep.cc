#include "report/sweep.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

#include "failure.h"
#include "report/summary.h"

namespace fz::report {

namespace {

/// Larger fields are swept over their middle part, to keep time and memory in bounds.
constexpr std::size_t kMaxValues = std::size_t{1} << 25;
constexpr std::size_t kMaxBounds = 32;

using Clock = std::chrono::steady_clock;

/// Whole planes or rows from the middle of the slowest axis.
FieldView middlePart(const FieldView& field) {
  if (field.count() <= kMaxValues) {
    return field;
  }
  FieldView part = field;
  std::size_t axis = 2;
  while (axis > 0 && field.dims[axis] == 1) {
    --axis;
  }
  const std::size_t n_slab = field.count() / field.dims[axis];
  part.dims[axis] = std::clamp<std::size_t>(kMaxValues / n_slab, 1, field.dims[axis]);
  const std::size_t first = (field.dims[axis] - part.dims[axis]) / 2;
  part.bytes = field.bytes.subspan(first * n_slab * field.valueBytes(),
                                   part.dims[axis] * n_slab * field.valueBytes());
  return part;
}

double gigabytesPerSecond(std::size_t n_bytes, Clock::time_point start) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return seconds > 0.0 ? static_cast<double>(n_bytes) / seconds * 1e-9 : 0.0;
}

SweepPoint runBound(const Input& input, const FieldView& part, double bound, double absolute) {
  SweepPoint point;
  point.requested = bound;
  CompressOptions options = *input.options;
  options.dims = part.dims;
  // The bound of the sweep replaces one that a setting gave.
  std::erase_if(options.params, [](const auto& setting) {
    const std::string key = setting.first.substr(setting.first.rfind('.') + 1);
    return key == "error_bound" || key == "error_bound_mode";
  });
  const bool is_part = part.bytes.size() != input.original.bytes.size();
  // A part has a range of its own; the bound of the whole field counts.
  const bool use_absolute = is_part && input.info.bound->mode == ErrorBoundMode::NOA;
  options.mode = use_absolute ? ErrorBoundMode::ABS : input.info.bound->mode;
  options.error_bound = use_absolute ? absolute : bound;
  try {
    const auto start = Clock::now();
    const Frame frame = compress(part.type, part.bytes, options);
    point.compress_gbs = gigabytesPerSecond(part.bytes.size(), start);
    const auto middle = Clock::now();
    const Array decoded = decompress(frame, input.decode);
    point.decompress_gbs = gigabytesPerSecond(part.bytes.size(), middle);
    const FrameInfo info = inspect(frame);
    const CheckReport check = cli::checkValues(part.type, part.bytes, decoded.bytes(),
                                               cli::ruleOfFrame(info).value_or(BoundRule{}));
    point.absolute = info.bound ? info.bound->absolute : 0.0;
    point.ratio = info.ratio();
    point.bits_per_value =
        8.0 * static_cast<double>(frame.size()) / static_cast<double>(part.count());
    point.psnr = summarize(part, {part.type, part.dims, decoded.bytes()}).valid_psnr;
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
    const double absolute = input.info.bound->absolute * (bound / input.info.bound->requested);
    sweep.points.push_back(runBound(input, part, bound, absolute));
  }
  return sweep;
}

}  // namespace fz::report
