#pragma once

// What the kernels of encode.cu and decode.cu share.
//
// Tiles whose extents are powers of two (all usual ones) are worked on in strips: as many tiles
// side by side as 16 KiB hold, one block each. A strip is a few rows of the field and one run of
// the stream, so both are read and written in their order, with shared memory in between. Other
// tiles take the codec's own text, one warp each.

#include <algorithm>
#include <bit>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "predictors/tiled_lorenzo/cuda/kernels.h"
#include "shared/delta.h"
#include "shared/team.h"

namespace fz::tiled_lorenzo {

inline constexpr unsigned kThreads = 256;
inline constexpr unsigned kWarps = kThreads / cuda::kWarp;
inline constexpr unsigned kStripBytes = 16384;
inline constexpr unsigned kVecsPerThread = kStripBytes / 16 / kThreads;

/// How many there are of what; known on the host unless the extent is open, since divisions cost.
struct Counts {
  std::uint64_t field_values;
  std::uint64_t tiles_x;
  std::uint64_t n_tiles;
  std::uint32_t tiles_y;
  std::uint32_t n_strips;  ///< side by side
};

FZ_HD Counts countsOf(const Grid& grid, unsigned log_strip_tiles) {
  const std::uint64_t tiles_x = grid.tilesX();
  return {grid.nx * grid.ny * grid.nz, tiles_x, grid.tileCount(),
          static_cast<std::uint32_t>(grid.tilesY()),
          static_cast<std::uint32_t>((tiles_x + (std::uint64_t{1} << log_strip_tiles) - 1) >>
                                     log_strip_tiles)};
}

struct TileArgs {
  const void* in;
  void* out;
  DeviceSize size;
  std::uint64_t capacity_bytes;
  StageRecord* record;
  Grid grid;
  Counts counts;
  bool is_extent_open;
  bool publishes;  ///< whether the size of the output is the kernel's to write
};

inline TileArgs tileArgs(const CudaTiles& tiles, unsigned log_strip_tiles) {
  return {tiles.input.data,
          tiles.output.data,
          tiles.input.size,
          tiles.output.capacity_bytes,
          tiles.record,
          tiles.grid,
          countsOf(tiles.grid, log_strip_tiles),
          tiles.is_extent_open,
          !tiles.output.size_known};
}

/// Completes args.grid and args.counts; false when there is nothing to do. kEncode: the input is
/// the field, else the stream. The first thread writes down what follows from the sizes.
template <class U, bool kEncode>
__device__ __forceinline__ bool resolveGrid(TileArgs& args, unsigned log_strip_tiles) {
  const std::uint64_t n_bytes = cuda::load(args.size);
  bool fits = true;
  if (args.is_extent_open) {
    const std::uint64_t limit = args.grid.nx;
    args.grid.nx = kEncode ? n_bytes / sizeof(U) / (args.grid.ny * args.grid.nz)
                           : args.record->value[kExtentSlot];
    fits = args.grid.nx <= limit;
    args.counts = countsOf(args.grid, log_strip_tiles);
  }
  const std::uint64_t field_bytes = args.counts.field_values * sizeof(U);
  const std::uint64_t stream_bytes = args.counts.n_tiles * args.grid.tile.values() * sizeof(U);
  const std::uint64_t out_bytes = kEncode ? stream_bytes : field_bytes;
  fits = fits && n_bytes == (kEncode ? field_bytes : stream_bytes);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (!fits) {
      cuda::recordError(args.record, DeviceError::kCorrupt, n_bytes);
    } else if (kEncode) {
      args.record->value[kExtentSlot] = args.grid.nx;
    }
    if (args.publishes) {
      cuda::publishSize(args.record, 0, fits ? out_bytes : 0, args.capacity_bytes);
    }
  }
  return fits && field_bytes != 0 && out_bytes <= args.capacity_bytes;
}

/// How strips are cut, in powers of two; fixed by the type and the tile.
struct StripShape {
  unsigned log_tx;
  unsigned log_ty;
  unsigned log_rows;        ///< of a tile: ty * tz
  unsigned log_tiles;       ///< per strip
  unsigned log_row_values;  ///< per row of a strip
  unsigned pitch;           ///< from row to row in shared memory, in values; whole 16 bytes

  FZ_HD unsigned logTileValues() const { return log_tx + log_rows; }
  FZ_HD unsigned tileRows() const { return 1u << log_rows; }
};

inline bool arePowersOfTwo(const Shape& tile) {
  return std::has_single_bit(tile.x) && std::has_single_bit(tile.y) && std::has_single_bit(tile.z);
}

template <class U>
StripShape stripShape(const Shape& tile) {
  const auto bitsOf = [](unsigned n) { return static_cast<unsigned>(std::countr_zero(n)); };
  StripShape shape = {};
  shape.log_tx = bitsOf(tile.x);
  shape.log_ty = bitsOf(tile.y);
  shape.log_rows = bitsOf(tile.y) + bitsOf(tile.z);
  shape.log_tiles = bitsOf(kStripBytes / sizeof(U)) - shape.logTileValues();
  shape.log_row_values = shape.log_tiles + shape.log_tx;
  // Rows are shifted against each other by a tile's edge, so that the pieces of a tile's rows lie
  // in different banks.
  const unsigned shift_bytes =
      std::clamp<unsigned>(tile.x * static_cast<unsigned>(sizeof(U)), 16, 128);
  shape.pitch = (1u << shape.log_row_values) + shift_bytes / static_cast<unsigned>(sizeof(U));
  return shape;
}

/// A strip's place in the field and in the stream.
struct Strip {
  std::uint64_t x0;
  std::uint64_t y0;
  std::uint64_t z0;
  std::uint64_t first_value;  ///< in the stream
  unsigned n_tiles;
};

/// False when this block has none.
__device__ __forceinline__ bool stripOfBlock(const TileArgs& args,
                                             const StripShape& shape,
                                             Strip& strip) {
  const unsigned line = blockIdx.x / args.counts.n_strips;
  const std::uint64_t tile_x = std::uint64_t{blockIdx.x % args.counts.n_strips} << shape.log_tiles;
  const std::uint64_t tile_y = line % args.counts.tiles_y;
  const std::uint64_t tile_z = line / args.counts.tiles_y;
  strip.x0 = tile_x << shape.log_tx;
  strip.y0 = tile_y << shape.log_ty;
  strip.z0 = tile_z << (shape.log_rows - shape.log_ty);
  strip.first_value = (line * args.counts.tiles_x + tile_x) << shape.logTileValues();
  const std::uint64_t n_left = args.counts.tiles_x - tile_x;
  strip.n_tiles =
      n_left >> shape.log_tiles != 0 ? 1u << shape.log_tiles : static_cast<unsigned>(n_left);
  return strip.z0 < args.grid.nz;
}

/// Row r of the strip in the field; false when it lies outside.
__device__ __forceinline__ bool rowOf(const Grid& grid,
                                      const StripShape& shape,
                                      const Strip& strip,
                                      unsigned r,
                                      std::uint64_t& first_value) {
  const std::uint64_t y = strip.y0 + (r & ((1u << shape.log_ty) - 1));
  const std::uint64_t z = strip.z0 + (r >> shape.log_ty);
  first_value = (z * grid.ny + y) * grid.nx + strip.x0;
  return y < grid.ny && z < grid.nz;
}

/// A piece is what lies side by side in a tile and in 16 bytes: kPiece values.
template <class U, unsigned kPiece>
struct alignas(kPiece * sizeof(U)) Piece {
  U v[kPiece];
};

/// 16 bytes of the stream.
template <class U, unsigned kPiece>
union Vec {
  uint4 raw;
  U v[16 / sizeof(U)];
  Piece<U, kPiece> piece[16 / sizeof(U) / kPiece];
};

/// Where a piece of the strip's stream lies in shared memory: the tile, the row in it, and x.
struct PiecePlace {
  unsigned tile;
  unsigned row;
  unsigned x;
  unsigned index;
};
__device__ __forceinline__ PiecePlace piecePlace(const StripShape& shape, unsigned value) {
  PiecePlace place;
  place.tile = value >> shape.logTileValues();
  place.row = (value >> shape.log_tx) & (shape.tileRows() - 1);
  place.x = value & ((1u << shape.log_tx) - 1);
  place.index = place.row * shape.pitch + (place.tile << shape.log_tx) + place.x;
  return place;
}

/// Calls launch.template operator()<kPiece>() for the largest piece that the tile allows.
template <class U, class F>
void withPiece(const Shape& tile, F launch) {
  if (tile.x == 1) {
    launch.template operator()<1>();
  } else if (tile.x == 2) {
    launch.template operator()<2>();
  } else if (tile.x == 4 || sizeof(U) == 4) {
    launch.template operator()<4>();
  } else {
    launch.template operator()<16 / sizeof(U)>();
  }
}

inline unsigned stripBlocks(const TileArgs& args) {
  return cuda::gridFor(args.counts.n_strips * args.grid.tilesY() * args.grid.tilesZ(), 1);
}

}  // namespace fz::tiled_lorenzo
