#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fz::mask {

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

}  // namespace fz::mask
