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

/// Units [begin, end) of a buffer. `streams` writes past the caches, which pays for outputs that do
/// not fit there; `out` must then be 64-byte aligned.
struct UnitRange {
  BlockLayout layout;
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t begin;
  std::size_t end;
  bool streams;
};

/// Shuffles units with the widest vectors of this machine. Units are independent: each has its own
/// bytes of every plane. Never throws.
void encodeUnits(const UnitRange& range);
void decodeUnits(const UnitRange& range);

}  // namespace fz::bitshuffle
