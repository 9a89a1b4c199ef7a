#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <vector>

namespace fz::report {

using Complex = std::complex<double>;

/// Forward transform in place: X[k] = sum of x[j] exp(-2 pi i j k / n). The length is a power of
/// two.
void transform(std::vector<Complex>& values);

/// The same along every axis of an array, x fastest; every extent is a power of two.
void transform(std::vector<Complex>& values, const std::array<std::size_t, 3>& extents);

}  // namespace fz::report
