#pragma once

#include <cstddef>
#include <limits>
#include <optional>

#include "report/field_view.h"

namespace fz::report {

/// Of the values at positions where the original has a value (Content::kValue).
struct Moments {
  double min = 0.0;
  double max = 0.0;
  double mean = 0.0;
  double deviation = 0.0;  ///< standard deviation, of the whole population
};

struct Summary {
  std::size_t n_values = 0;
  std::size_t n_valid = 0;  ///< positions with Content::kValue
  std::size_t n_nan = 0;
  std::size_t n_infinity = 0;
  std::size_t n_fill = 0;
  /// A number that stands far outside the rest and often: taken for "no data here".
  std::optional<double> fill;
  /// In dB, over the valid positions and their range; NaN where there are none or all are the same.
  double valid_psnr = std::numeric_limits<double>::quiet_NaN();
  Moments original;
  Moments decoded;
};

/// Reads every value, several times. Both fields have the same length.
Summary summarize(const FieldView& original, const FieldView& decoded);

}  // namespace fz::report
