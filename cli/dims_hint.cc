#include "dims_hint.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fz/bound_kind.h"

namespace fz::cli {

namespace {

constexpr std::size_t kHintValues = std::size_t{1} << 18;
constexpr std::size_t kLeastValues = std::size_t{1} << 12;  // below this a header decides
constexpr double kMuchBetter = 1.5;

/// Of the first rows, if they had this length.
double ratioOfRows(const Field& field, std::size_t row_values, const BoundInfo& bound) {
  const std::size_t n_values = std::min(field.valueCount(), kHintValues);
  const std::size_t n_rows = n_values / row_values;
  CompressOptions options;
  options.preset = "balanced";
  options.error_bound = bound.absolute;
  options.mode = ErrorBoundMode::ABS;
  options.backend = Backend::CPU;
  options.threads = 1;
  options.dims = {row_values, n_rows, 1};
  const ByteView rows =
      ByteView(field.bytes).first(row_values * n_rows * getDataTypeSize(field.type));
  return static_cast<double>(rows.size()) /
         static_cast<double>(compress(field.type, rows, options).size());
}

}  // namespace

std::string reversedDimsHint(const Field& field, const FrameInfo& info) {
  const AxisValues& given = field.extents;
  const AxisValues reversed(given.rbegin(), given.rend());
  const bool is_raw = field.how == "-t" || field.how == "by its name";
  if (!is_raw || !field.has_shape || given.size() < 2 || given.front() == given.back() ||
      !info.bound || info.lossless || isPointwise(*info.bound) ||
      field.valueCount() < kLeastValues ||
      std::max(given.front(), given.back()) * 2 > kHintValues) {
    return {};
  }
  try {
    if (ratioOfRows(field, reversed.front(), *info.bound) <=
        kMuchBetter * ratioOfRows(field, given.front(), *info.bound)) {
      return {};
    }
  } catch (const std::exception&) {
    return {};  // a hint is worth no failure
  }
  return fmt::format(
      "a sample is far smaller with the axes the other way round; is it -d {}? (x, the "
      "fastest, comes first)",
      fmt::join(reversed, "x"));
}

}  // namespace fz::cli
