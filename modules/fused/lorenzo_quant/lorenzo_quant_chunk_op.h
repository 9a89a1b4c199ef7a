#pragma once

// How a decoder of grids that gets its codes by the chunk cuts a field: which chunks a thread block
// takes one after the other, and for which grids that works. None of this is part of the format.

#include <cstdint>

#include "fused/lorenzo_quant/lorenzo_quant_codec.h"
#include "shared/bits.h"
#include "shared/host_device.h"

namespace fz::lorenzo_quant {

/// Codes of a chunk, and bytes of their 16 bits each.
inline constexpr std::uint32_t kChunkCodes = 8192;
inline constexpr std::uint32_t kCodeChunkBytes = 2 * kChunkCodes;

/// Shorter rows would leave most warps of a block without columns, 128 of which a warp walks down
/// together.
inline constexpr std::uint64_t kFewestColumns = 256;
/// Three dimensions: columns of a tile's rows that a warp needs.
inline constexpr std::uint64_t kFewestColumnsOfTiles = 128;
/// A block keeps the sums of so many columns. Longer rows are cut where chunks end, so they must be
/// whole chunks.
inline constexpr std::uint64_t kMostColumns = kChunkCodes;
/// Units that a device takes at the same time: four blocks on each of 132 multiprocessors.
inline constexpr std::uint64_t kUnitsAtATime = 4 * 132;

/// Two dimensions: rows of a unit. Chunks at both ends of it are decoded by its neighbours too
/// unless rows of tiles are whole chunks, so then it has several of them, 12 chunks or more.
FZ_HD std::uint32_t unitRows(std::uint64_t nx) {
  constexpr std::uint32_t kEdge = 32;
  constexpr std::uint32_t kManyChunks = 12;
  return nx % (kChunkCodes / kEdge) == 0 ? kEdge
                                         : kEdge * bits::ceilDiv(kManyChunks * kChunkCodes / kEdge,
                                                                 static_cast<std::uint32_t>(nx));
}

/// Units of a grid, each one's chunks taken by one block.
FZ_HD std::uint64_t unitCount(const Grid& grid, int ndim) {
  if (ndim == 2) {
    const std::uint64_t columns = grid.nx > kMostColumns ? grid.nx / kMostColumns : 1;
    return columns * bits::ceilDiv<std::uint64_t>(grid.ny, unitRows(grid.nx));
  }
  return grid.nx * grid.ny / kChunkCodes * bits::ceilDiv<std::uint64_t>(grid.nz, 8);
}

/// Whether a device is busy with its units nearly to the end, for so many tenths of the time. A
/// block takes the chunks of a unit one after the other, stage by stage all chunks of a field are
/// decoded at once: with 384 units, 73 % of those that fit, that was as quick, with 256 up to a
/// quarter quicker.
FZ_HD bool areEnough(std::uint64_t n_units, unsigned tenths) {
  const std::uint64_t rounds = bits::ceilDiv(n_units, kUnitsAtATime);
  return n_units != 0 && 10 * n_units >= tenths * rounds * kUnitsAtATime;
}

}  // namespace fz::lorenzo_quant
