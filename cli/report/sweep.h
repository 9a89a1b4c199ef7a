#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/report.h"

namespace fz::report {

/// One bound of a rate-distortion curve: compressed, decoded and checked.
struct SweepPoint {
  double requested = 0.0;
  double absolute = 0.0;  ///< 0 for pointwise bounds
  double ratio = 0.0;
  double bits_per_value = 0.0;
  double psnr = 0.0;  ///< as Summary::valid_psnr
  double max_error = 0.0;
  std::size_t n_violations = 0;
  double compress_gbs = 0.0;
  double decompress_gbs = 0.0;
  std::string refused;  ///< why there are no figures; empty: there are
};

struct Sweep {
  std::vector<SweepPoint> points;
  std::size_t n_values = 0;  ///< of the part that was used, the middle one of large fields
  bool is_part = false;
};

/// Empty without input.options or bounds.
Sweep runSweep(const Input& input);

}  // namespace fz::report
