#include "pipeline/stat.h"

#include <cmath>
#include <limits>

#include "shared/fp.h"

namespace fz {

template <class T>
ReconstructionStats calculateStatistics(const T* original, const T* reconstructed, std::size_t n) {
  ReconstructionStats stats;
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -smallest;
  double sum_of_squares = 0;
  std::size_t n_finite = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!fp::isFinite(original[i]) || !fp::isFinite(reconstructed[i])) {
      stats.n_special_mismatches += fp::bits(original[i]) != fp::bits(reconstructed[i]) ? 1 : 0;
      continue;
    }
    const auto x = static_cast<double>(original[i]);
    const double error = std::fabs(x - static_cast<double>(reconstructed[i]));
    ++n_finite;
    smallest = std::min(smallest, x);
    largest = std::max(largest, x);
    sum_of_squares += error * error;
    if (error > stats.max_error) {
      stats.max_error = error;
      stats.max_error_index = i;
    }
  }
  if (n_finite == 0) {
    return stats;
  }
  stats.value_range = largest - smallest;
  stats.mse = sum_of_squares / static_cast<double>(n_finite);
  if (stats.mse == 0) {
    stats.psnr = std::numeric_limits<double>::infinity();
  } else if (stats.value_range > 0) {
    stats.psnr = 20 * std::log10(stats.value_range) - 10 * std::log10(stats.mse);
    stats.nrmse = std::sqrt(stats.mse) / stats.value_range;
  }
  return stats;
}

template <class T>
std::size_t countBoundViolations(
    const T* original, const T* reconstructed, std::size_t n, double bound, std::size_t* first) {
  std::size_t n_violations = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool equal = fp::bits(original[i]) == fp::bits(reconstructed[i]);
    if (!equal && !fp::withinBound(static_cast<double>(original[i]),
                                   static_cast<double>(reconstructed[i]), bound)) {
      if (n_violations++ == 0 && first != nullptr) {
        *first = i;
      }
    }
  }
  return n_violations;
}

template ReconstructionStats calculateStatistics<float>(const float*, const float*, std::size_t);
template ReconstructionStats calculateStatistics<double>(const double*, const double*, std::size_t);
template std::size_t countBoundViolations<float>(
    const float*, const float*, std::size_t, double, std::size_t*);
template std::size_t countBoundViolations<double>(
    const double*, const double*, std::size_t, double, std::size_t*);

}  // namespace fz
