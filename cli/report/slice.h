#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "report/error_scale.h"
#include "report/field_view.h"
#include "report/summary.h"

namespace fz::report {

/// A plane of a field of two or three axes, in pixels; several values may share one.
struct Slice {
  std::array<std::size_t, 2> axes = {0, 1};     ///< to the right and upwards: 0 is x
  std::array<std::size_t, 2> extents = {0, 0};  ///< in values
  std::size_t fixed_axis = 2;
  std::size_t fixed_index = 0;
  bool is_whole = true;  ///< the field has no other plane
  std::size_t width = 0;
  std::size_t height = 0;
  std::array<std::size_t, 2> values_per_pixel = {1, 1};
  // One entry per pixel, the lowest row first. Mean of the values; of errors, in units of the
  // bound, the largest in size with its sign, so that averaging hides none.
  std::vector<double> original;
  std::vector<double> decoded;
  std::vector<double> error;
  std::vector<Content> content;  ///< kValue wherever a pixel has one value at least
};

/// The number of axes longer than 1.
std::size_t axisCount(const std::array<std::size_t, 3>& dims);

/// The middle plane or the nearest one that has a value. The field has two or three axes.
Slice cutSlice(const FieldView& original,
               const FieldView& decoded,
               const Summary& summary,
               const ErrorScale& scale);

/// A series as columns: what lies in each of them, from the smallest to the largest.
struct Series {
  struct Column {
    std::size_t begin = 0;
    std::size_t n_valid = 0;
    double original_low = 0.0;
    double original_high = 0.0;
    double decoded_low = 0.0;
    double decoded_high = 0.0;
    double error_low = 0.0;  ///< in units of the bound
    double error_high = 0.0;
  };
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<Column> columns;
};

/// Values [begin, end) of a field of one axis, in at most kMaxColumns columns.
inline constexpr std::size_t kMaxColumns = 600;
Series readSeries(const FieldView& original,
                  const FieldView& decoded,
                  const Summary& summary,
                  const ErrorScale& scale,
                  std::array<std::size_t, 2> range);

/// The range of values that colours stand for: all of the shown ones, or without the outermost half
/// percent on either side where that is less than half of it.
struct ColourRange {
  double low = 0.0;
  double high = 0.0;
  bool is_cut = false;
};
ColourRange colourRange(const Slice& slice);

}  // namespace fz::report
