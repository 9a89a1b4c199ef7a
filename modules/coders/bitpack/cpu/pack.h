#pragma once

#include <cstddef>
#include <cstdint>

/// Runs of values with the widest vectors of this machine; bytes as in codec.h.
namespace fz::bitpack {

/// Width of the values, 1, 2 or 4 bytes, and of their packed form.
struct Widths {
  std::size_t value_bytes;
  std::uint32_t n_bits;
};

/// OR of all values.
std::uint32_t orOf(const void* in, std::size_t n_values, std::size_t value_bytes);

/// Packs the values and returns their OR (0 at full width, where all values fit). When that shows
/// that a value does not fit, the packed bytes are of no use.
std::uint32_t packValues(const void* in, std::size_t n_values, Widths widths, std::uint8_t* out);
void unpackValues(const std::uint8_t* in, std::size_t n_values, Widths widths, void* out);

}  // namespace fz::bitpack
