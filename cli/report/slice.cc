#include "report/slice.h"

#include <algorithm>
#include <cmath>

namespace fz::report {

namespace {

constexpr std::size_t kMaxPixels = 512;

using Dims = std::array<std::size_t, 3>;

Dims stridesOf(const Dims& dims) {
  return {1, dims[0], dims[0] * dims[1]};
}

/// Axes of the plane: those longer than 1, and of three the first two.
void chooseAxes(Slice& slice, const Dims& dims) {
  std::vector<std::size_t> longer;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (dims[axis] > 1) {
      longer.push_back(axis);
    }
  }
  slice.axes = {longer[0], longer[1]};
  slice.extents = {dims[longer[0]], dims[longer[1]]};
  slice.fixed_axis = 3 - longer[0] - longer[1];
  slice.is_whole = longer.size() == 2;
}

bool hasValue(const FieldView& field,
              const Slice& slice,
              std::size_t index,
              const Summary& summary) {
  const Dims strides = stridesOf(field.dims);
  for (std::size_t v = 0; v < slice.extents[1]; ++v) {
    for (std::size_t u = 0; u < slice.extents[0]; ++u) {
      const std::size_t i = u * strides[slice.axes[0]] + v * strides[slice.axes[1]] +
                            index * strides[slice.fixed_axis];
      if (contentOf(field.at(i), summary.fill) == Content::kValue) {
        return true;
      }
    }
  }
  return false;
}

/// From the middle outwards.
std::size_t chooseIndex(const FieldView& field, const Slice& slice, const Summary& summary) {
  const std::size_t n = field.dims[slice.fixed_axis];
  const std::size_t middle = n / 2;
  for (std::size_t distance = 0; distance < n && summary.n_valid > 0; ++distance) {
    if (middle + distance < n && hasValue(field, slice, middle + distance, summary)) {
      return middle + distance;
    }
    if (distance <= middle && hasValue(field, slice, middle - distance, summary)) {
      return middle - distance;
    }
  }
  return middle;
}

/// What the values of a pixel come to.
struct Pixel {
  // Of values divided by the number that a pixel can hold, so that large ones do not overflow.
  double original = 0.0;
  double decoded = 0.0;
  double error = 0.0;
  std::size_t n_valid = 0;
  Content other = Content::kNan;
};

}  // namespace

std::size_t axisCount(const Dims& dims) {
  return static_cast<std::size_t>(
      std::count_if(dims.begin(), dims.end(), [](std::size_t n) { return n > 1; }));
}

Slice cutSlice(const FieldView& original,
               const FieldView& decoded,
               const Summary& summary,
               const ErrorScale& scale) {
  Slice slice;
  chooseAxes(slice, original.dims);
  slice.fixed_index = chooseIndex(original, slice, summary);
  const auto perPixel = [](std::size_t n) { return (n + kMaxPixels - 1) / kMaxPixels; };
  slice.values_per_pixel = {perPixel(slice.extents[0]), perPixel(slice.extents[1])};
  const auto pixels = [](std::size_t n, std::size_t per) { return (n + per - 1) / per; };
  slice.width = pixels(slice.extents[0], slice.values_per_pixel[0]);
  slice.height = pixels(slice.extents[1], slice.values_per_pixel[1]);
  const Dims strides = stridesOf(original.dims);
  const auto n_most = static_cast<double>(slice.values_per_pixel[0] * slice.values_per_pixel[1]);
  std::vector<Pixel> row(slice.width);
  for (std::size_t v = 0; v < slice.extents[1]; ++v) {
    for (std::size_t u = 0; u < slice.extents[0]; ++u) {
      const std::size_t i = u * strides[slice.axes[0]] + v * strides[slice.axes[1]] +
                            slice.fixed_index * strides[slice.fixed_axis];
      Pixel& pixel = row[u / slice.values_per_pixel[0]];
      const double x = original.at(i);
      const double y = decoded.at(i);
      const Content content = contentOf(x, summary.fill);
      if (content != Content::kValue || !std::isfinite(y)) {
        pixel.other = content == Content::kValue ? Content::kNan : content;
        continue;
      }
      pixel.original += x / n_most;
      pixel.decoded += y / n_most;
      const double error = scale(x, y);
      pixel.error = std::fabs(error) > std::fabs(pixel.error) ? error : pixel.error;
      ++pixel.n_valid;
    }
    if ((v + 1) % slice.values_per_pixel[1] != 0 && v + 1 != slice.extents[1]) {
      continue;
    }
    for (Pixel& pixel : row) {
      const double share = pixel.n_valid > 0 ? n_most / static_cast<double>(pixel.n_valid) : 0.0;
      slice.original.push_back(pixel.original * share);
      slice.decoded.push_back(pixel.decoded * share);
      slice.error.push_back(pixel.error);
      slice.content.push_back(pixel.n_valid > 0 ? Content::kValue : pixel.other);
      pixel = {};
    }
  }
  return slice;
}

Series readSeries(const FieldView& original,
                  const FieldView& decoded,
                  const Summary& summary,
                  const ErrorScale& scale,
                  std::array<std::size_t, 2> range) {
  Series series;
  series.begin = range[0];
  series.end = range[1];
  const std::size_t n = series.end - series.begin;
  const std::size_t n_columns = std::min(n, kMaxColumns);
  for (std::size_t c = 0; c < n_columns; ++c) {
    Series::Column column;
    // Of long series the product could overflow if it were n * c.
    const auto edge = [&](std::size_t k) {
      return series.begin + n / n_columns * k + n % n_columns * k / n_columns;
    };
    column.begin = edge(c);
    for (std::size_t i = edge(c); i < edge(c + 1); ++i) {
      const double x = original.at(i);
      const double y = decoded.at(i);
      if (contentOf(x, summary.fill) != Content::kValue || !std::isfinite(y)) {
        continue;
      }
      const double error = scale(x, y);
      const bool is_first = column.n_valid++ == 0;
      const auto widen = [&](double value, double& low, double& high) {
        low = is_first ? value : std::min(low, value);
        high = is_first ? value : std::max(high, value);
      };
      widen(x, column.original_low, column.original_high);
      widen(y, column.decoded_low, column.decoded_high);
      widen(error, column.error_low, column.error_high);
    }
    series.columns.push_back(column);
  }
  return series;
}

ColourRange colourRange(const Slice& slice) {
  std::vector<double> values;
  for (std::size_t i = 0; i < slice.original.size(); ++i) {
    if (slice.content[i] == Content::kValue) {
      values.push_back(slice.original[i]);
    }
  }
  if (values.empty()) {
    return {};
  }
  std::sort(values.begin(), values.end());
  const std::size_t cut = values.size() / 200;
  const ColourRange whole{values.front(), values.back(), false};
  const ColourRange inner{values[cut], values[values.size() - 1 - cut], true};
  const bool is_far = inner.high / 2 - inner.low / 2 < (whole.high / 2 - whole.low / 2) / 2;
  return is_far && inner.high > inner.low ? inner : whole;
}

}  // namespace fz::report
