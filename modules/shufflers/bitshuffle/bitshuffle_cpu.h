#pragma once

#include <cstddef>
#include <cstdint>

namespace fz::bitshuffle {

/// Where the units (1024 elements each) of a buffer of whole blocks lie.
struct BlockLayout {
  std::size_t block_bytes;
  std::size_t element_bytes;

  std::size_t unitBytes() const { return 1024 * element_bytes; }
  std::size_t planeBytes() const { return block_bytes / (8 * element_bytes); }
};

/// Shuffles units [begin, end) of a buffer with the widest vectors of this machine. Units are
/// independent: each has its own bytes of every plane. Never throws.
void encodeUnits(const BlockLayout& layout,
                 const std::uint8_t* in,
                 std::size_t begin,
                 std::size_t end,
                 std::uint8_t* out);
void decodeUnits(const BlockLayout& layout,
                 const std::uint8_t* in,
                 std::size_t begin,
                 std::size_t end,
                 std::uint8_t* out);

}  // namespace fz::bitshuffle
