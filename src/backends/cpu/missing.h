#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fz {

/// Sets word i to the missing ones among values 64 i to 64 i + 63, bits from the lowest on: NaN,
/// infinities and those equal to one of `fill`. Returns whether there are any.
bool findMissing(const float* values,
                 std::size_t n_values,
                 std::span<const float> fill,
                 std::uint64_t* words);
bool findMissing(const double* values,
                 std::size_t n_values,
                 std::span<const double> fill,
                 std::uint64_t* words);

/// A declared fill value as a T has it, appended; nothing where no T can be it.
void addFill(double value, std::vector<float>& fill);
void addFill(double value, std::vector<double>& fill);

/// The smallest and the largest of the values that are not missing; low > high: there are none.
struct ValidRange {
  double low = 1.0;
  double high = -1.0;
  bool isEmpty() const { return low > high; }
};
ValidRange rangeOfValid(std::span<const float> values, std::span<const float> fill);
ValidRange rangeOfValid(std::span<const double> values, std::span<const double> fill);

}  // namespace fz
