#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace fz::trust {

/// A kind of data that error-bounded compressors get wrong.
template <class T>
struct Family {
  std::string name;
  /// Value i of n, for an absolute bound.
  std::function<T(std::size_t i, std::size_t n, double bound, std::mt19937_64& rng)> at;
};

/// All families; the same names in the same order for float and double.
template <class T>
const std::vector<Family<T>>& families();

template <class T>
std::vector<T> makeFamily(const Family<T>& family, std::size_t n, double bound, std::uint64_t seed);

extern template const std::vector<Family<float>>& families<float>();
extern template const std::vector<Family<double>>& families<double>();
extern template std::vector<float> makeFamily(const Family<float>&,
                                              std::size_t,
                                              double,
                                              std::uint64_t);
extern template std::vector<double> makeFamily(const Family<double>&,
                                               std::size_t,
                                               double,
                                               std::uint64_t);

}  // namespace fz::trust
