#pragma once

#include <cstddef>
#include <cstdint>

namespace fz {

/// How well a reconstruction matches. NaN and infinities are compared by bits and kept out of the
/// sums; a lost one counts as a mismatch.
struct ReconstructionStats {
  double mse = 0.0;
  double psnr = 0.0;  ///< in dB; infinite when all values are equal
  double max_error = 0.0;
  std::size_t max_error_index = 0;
  double nrmse = 0.0;
  double value_range = 0.0;
  /// Positions where a NaN or an infinity is on one side only, or with other bits.
  std::size_t n_special_mismatches = 0;
};

/// Compares n values in host memory. n = 0 gives zeros. T is float or double.
template <class T>
ReconstructionStats calculateStatistics(const T* original, const T* reconstructed, std::size_t n);

/// Positions where |original - reconstructed| > bound on the real numbers, or where a NaN or an
/// infinity is not bit-equal. `first` gets the first such index when there is one.
template <class T>
std::size_t countBoundViolations(const T* original,
                                 const T* reconstructed,
                                 std::size_t n,
                                 double bound,
                                 std::size_t* first = nullptr);

extern template ReconstructionStats calculateStatistics<float>(const float*,
                                                               const float*,
                                                               std::size_t);
extern template ReconstructionStats calculateStatistics<double>(const double*,
                                                                const double*,
                                                                std::size_t);
extern template std::size_t countBoundViolations<float>(
    const float*, const float*, std::size_t, double, std::size_t*);
extern template std::size_t countBoundViolations<double>(
    const double*, const double*, std::size_t, double, std::size_t*);

}  // namespace fz
