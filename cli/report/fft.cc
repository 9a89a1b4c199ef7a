#include "report/fft.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace fz::report {

namespace {

/// exp(-2 pi i k / n) for the first half.
std::vector<Complex> rootsOf(std::size_t n) {
  std::vector<Complex> roots(n / 2);
  for (std::size_t k = 0; k < roots.size(); ++k) {
    const double angle = -2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
  return roots;
}

void reverseBits(std::vector<Complex>& values) {
  const std::size_t n = values.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n / 2;
    for (; (j & bit) != 0; bit /= 2) {
      j ^= bit;
    }
    j ^= bit;
    if (i < j) {
      std::swap(values[i], values[j]);
    }
  }
}

void run(std::vector<Complex>& values, const std::vector<Complex>& roots) {
  const std::size_t n = values.size();
  reverseBits(values);
  for (std::size_t half = 1; half < n; half *= 2) {
    const std::size_t step = n / (2 * half);
    for (std::size_t start = 0; start < n; start += 2 * half) {
      for (std::size_t k = 0; k < half; ++k) {
        const Complex even = values[start + k];
        const Complex odd = values[start + k + half] * roots[k * step];
        values[start + k] = even + odd;
        values[start + k + half] = even - odd;
      }
    }
  }
}

}  // namespace

void transform(std::vector<Complex>& values) {
  run(values, rootsOf(values.size()));
}

void transform(std::vector<Complex>& values, const std::array<std::size_t, 3>& extents) {
  std::size_t stride = 1;
  for (const std::size_t extent : extents) {
    const std::vector<Complex> roots = rootsOf(extent);
    std::vector<Complex> line(extent);
    for (std::size_t i = 0; i < values.size() && extent > 1; ++i) {
      if (i / stride % extent != 0) {
        continue;
      }
      for (std::size_t k = 0; k < extent; ++k) {
        line[k] = values[i + k * stride];
      }
      run(line, roots);
      for (std::size_t k = 0; k < extent; ++k) {
        values[i + k * stride] = line[k];
      }
    }
    stride *= extent;
  }
}

}  // namespace fz::report
