#pragma once

#include <cstddef>
#include <cstdint>

#include "coders/rle/codec.h"

/// Tiles of RLE with the widest vectors of this machine; bytes as in codec.h. Values are 1, 2
/// or 4 bytes wide and compared as bits.
namespace fz::rle {

/// markStarts for one tile; returns the number of marks.
std::uint32_t markTile(const void* in,
                       std::uint64_t begin,
                       std::uint32_t n_values,
                       std::size_t value_bytes,
                       std::uint64_t* marks);

/// writeRuns for one tile.
void writeTile(const void* in,
               const TileMarks& tile,
               std::size_t value_bytes,
               void* values,
               std::uint32_t* lengths);

/// Sum of n_runs lengths.
std::uint64_t sumLengths(const std::uint32_t* lengths, std::size_t n_runs);

/// Runs of which the first is to be continued `skip` values after its beginning.
struct Runs {
  const void* values;
  const std::uint32_t* lengths;
  std::uint64_t skip;
};

/// Writes exactly n_values values; the runs must hold that many.
void fillTile(const Runs& runs, std::size_t value_bytes, void* out, std::uint64_t n_values);

}  // namespace fz::rle
