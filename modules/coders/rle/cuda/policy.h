#pragma once

#include <cstdint>

/// Work per thread block; none of these numbers is part of the format.
namespace fz::rle {

constexpr std::uint32_t kTileBytes = 16384;  ///< of values, in both directions
constexpr std::uint32_t kBatchRuns = 128;    ///< decoder: runs between two known positions
constexpr std::uint32_t kTileBatches = 32;   ///< decoder: batches that a block adds up

/// Thread blocks of the encoder's first kernel that a multiprocessor must hold; the launch has no
/// more, since a block takes tile after tile.
constexpr unsigned kEncodeBlocks = 5;
constexpr unsigned encodeBlocks(std::uint32_t n_tiles, unsigned n_processors) {
  const unsigned n_resident = kEncodeBlocks * n_processors;
  return n_tiles < n_resident ? n_tiles : n_resident;
}

}  // namespace fz::rle
