#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace fz {

/// The two smallest and the two largest different values of those that were added; an infinity
/// stands for "none". Only finite values count, and -0 and +0 are one.
template <class T>
struct ValueEnds {
  T low = std::numeric_limits<T>::infinity();
  T next_low = std::numeric_limits<T>::infinity();
  T high = -std::numeric_limits<T>::infinity();
  T next_high = -std::numeric_limits<T>::infinity();

  void add(T x) {
    if (!std::isfinite(x)) {
      return;
    }
    if (x < low) {
      next_low = std::exchange(low, x);
    } else if (x > low && x < next_low) {
      next_low = x;
    }
    if (x > high) {
      next_high = std::exchange(high, x);
    } else if (x < high && x > next_high) {
      next_high = x;
    }
  }
  void add(const ValueEnds& other) {
    for (const T x : {other.low, other.next_low, other.high, other.next_high}) {
      add(x);
    }
  }
  bool isEmpty() const { return low > high; }
  bool hasRange() const { return low < high; }
};

/// How many of the first values, at least, change nothing when added: nearly all, in most fields.
std::size_t countWithoutNews(const float* values,
                             std::size_t n_values,
                             const ValueEnds<float>& ends);
std::size_t countWithoutNews(const double* values,
                             std::size_t n_values,
                             const ValueEnds<double>& ends);
/// How many of the values are equal to `wanted`.
std::size_t countEqual(const float* values, std::size_t n_values, float wanted);
std::size_t countEqual(const double* values, std::size_t n_values, double wanted);

}  // namespace fz
