#include "archive/bound_of_whole.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/require.h"

namespace fz {

namespace {

/// Some stages keep the range as a float; one that is not larger than the true one keeps the bound.
double rangeForStages(double width) {
  const auto nearest = static_cast<float>(width);
  const float below =
      static_cast<double>(nearest) > width ? std::nextafter(nearest, 0.0f) : nearest;
  return std::isnormal(below) ? static_cast<double>(below) : width;
}

}  // namespace

std::optional<BoundInfo> boundOf(DataType type, const CompressOptions& options) {
  // What a pipeline makes of its settings is best seen in a frame.
  constexpr std::array<double, 4> kValues = {1, 2, 3, 4};
  CompressOptions probe = options;
  probe.dims = {0, 1, 1};
  probe.extents.reset();
  probe.backend = Backend::CPU;
  probe.threads = 1;
  probe.max_memory_bytes = 0;
  probe.progress = nullptr;
  probe.fill.clear();
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(kValues.data());
  return inspect(compress(type, {bytes, sizeof(kValues)}, probe)).bound;
}

CompressOptions optionsForChunks(DataType type, const ArchiveOptions& options) {
  CompressOptions chunks = options.compress;
  const std::optional<BoundInfo> bound = boundOf(type, chunks);
  if (!bound || bound->mode != ErrorBoundMode::NOA) {
    return chunks;
  }
  FZ_REQUIRE_ARG(options.range.has_value(),
                 "archive: a bound relative to the range needs the range of the whole array");
  FZ_REQUIRE_ARG(std::isfinite(options.range->low) && std::isfinite(options.range->high) &&
                     options.range->low <= options.range->high,
                 "archive: a range from {} to {}", options.range->low, options.range->high);
  // That of the whole was looked at by whoever found it.
  chunks.suspect_fill = false;
  const double width = std::min(options.range->high - options.range->low,
                                static_cast<double>(std::numeric_limits<double>::max()));
  if (width == 0.0) {
    chunks.mode = ErrorBoundMode::ABS;  // of a constant field the bound is the number itself
    return chunks;
  }
  chunks.params.emplace_back("value_base", fmt::format("{}", rangeForStages(width)));
  try {
    boundOf(type, chunks);
  } catch (const InvalidArgument&) {  // nothing else: memory may have run out
    // No stage takes a range from outside; what it comes to can be said to any of them.
    chunks.params.pop_back();
    chunks.mode = ErrorBoundMode::ABS;
    chunks.error_bound = std::nextafter(bound->requested * width, 0.0);
  }
  return chunks;
}

}  // namespace fz
