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

/// Copies values; those whose bits in `words` are ones become `to`. Returns whether they were all
/// `from`.
template <class U>
struct Replacement {
  U from;
  U to;
};
bool copyReplaced(std::span<const std::uint32_t> in,
                  const std::uint64_t* words,
                  Replacement<std::uint32_t> change,
                  std::uint32_t* out);
bool copyReplaced(std::span<const std::uint64_t> in,
                  const std::uint64_t* words,
                  Replacement<std::uint64_t> change,
                  std::uint64_t* out);

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
