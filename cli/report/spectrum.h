#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "report/field_view.h"
#include "report/summary.h"

namespace fz::report {

/// Power over spatial frequency, averaged over directions: 1-D by overlapping segments (Welch), 2-D
/// and 3-D by shells of one centred block. Deviations from the mean under a Hann window; what is no
/// value counts as the mean. Unit: the power of the original summed over all modes is 1.
struct Spectrum {
  int ndim = 0;  ///< axes that were transformed; 0: the field is too small, or constant
  std::array<std::size_t, 3> extents = {1, 1, 1};  ///< of a segment or of the block
  std::array<std::size_t, 3> start = {0, 0, 0};    ///< of the block
  std::size_t n_segments = 1;
  std::size_t n_missing = 0;      ///< in the part that was read
  std::vector<double> frequency;  ///< in cycles per sample, up to 1/2
  std::vector<double> original;
  std::vector<double> decoded;
  std::vector<double> error;
};

Spectrum measureSpectrum(const FieldView& original,
                         const FieldView& decoded,
                         const Summary& summary);

}  // namespace fz::report
