#pragma once

#include <cstddef>
#include <vector>

#include "report/error_scale.h"
#include "report/field_view.h"
#include "report/summary.h"

namespace fz::report {

inline constexpr std::size_t kValueBins = 64;
inline constexpr std::size_t kErrorBins = 80;

/// Counts in equal bins from `low` to `high`; the ends belong to the outer bins.
struct Histogram {
  double low = 0.0;
  double high = 0.0;
  std::vector<std::size_t> counts;

  double edge(std::size_t bin) const;  ///< lower edge; edge(counts.size()) is `high`
  std::size_t total() const;
  std::size_t largest() const;
};

/// Every value counts. Decoded values outside the original's range go to the outer bins.
struct Histograms {
  Histogram original;
  Histogram decoded;
  Histogram error;  ///< in units of the bound, from -1 to 1
  std::size_t n_below = 0;
  std::size_t n_above = 0;
};

Histograms countValues(const FieldView& original,
                       const FieldView& decoded,
                       const Summary& summary,
                       const ErrorScale& scale);

}  // namespace fz::report
