#pragma once

#include <cstddef>
#include <limits>
#include <vector>

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
  /// Numbers that mean "no data here": what the archive declares, as values of the field's type.
  /// Where it declares none, one that stands far outside the rest and often is taken for it.
  std::vector<double> fill;
  bool is_fill_declared = false;
  /// In dB, over the valid positions and their range; NaN where there are none or all are the same.
  double valid_psnr = std::numeric_limits<double>::quiet_NaN();
  Moments original;
  Moments decoded;
};

/// Reads every value, several times. Both fields have the same length. `declared` are the fill
/// values that the archive names.
Summary summarize(const FieldView& original,
                  const FieldView& decoded,
                  const std::vector<double>& declared);

}  // namespace fz::report
