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

/// Whether there are any.
bool anyMissing(std::span<const float> values, std::span<const float> fill);
bool anyMissing(std::span<const double> values, std::span<const double> fill);

/// Sets the values whose bits in `words` are ones.
void putWhere(std::span<std::uint32_t> values, const std::uint64_t* words, std::uint32_t value);
void putWhere(std::span<std::uint64_t> values, const std::uint64_t* words, std::uint64_t value);

/// The bits of missing values.
struct MissingBits {
  bool any = false;
  bool are_alike = true;
  std::uint64_t first = 0;
};
/// As findMissing(), and copies the values; those that are missing become `filler`.
MissingBits takeOutMissing(std::span<const float> values,
                           std::span<const float> fill,
                           float filler,
                           std::uint64_t* words,
                           float* out);
MissingBits takeOutMissing(std::span<const double> values,
                           std::span<const double> fill,
                           double filler,
                           std::uint64_t* words,
                           double* out);

/// Values whose bits in `words` are ones take the one before, those at the front `held`.
void holdBefore(std::span<float> values, const std::uint64_t* words, float held);
void holdBefore(std::span<double> values, const std::uint64_t* words, double held);
/// The same inside of units of so many values, which divide 64: at the front they take the unit's
/// first other value, and units without one stay as they are.
void holdInUnits(std::span<float> values, const std::uint64_t* words, std::uint32_t unit);
void holdInUnits(std::span<double> values, const std::uint64_t* words, std::uint32_t unit);

/// Ones among the bits.
std::uint64_t countOnes(std::span<const std::uint64_t> words);

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
