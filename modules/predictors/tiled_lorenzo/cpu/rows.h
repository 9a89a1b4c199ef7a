#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "predictors/tiled_lorenzo/codec.h"

namespace fz::tiled_lorenzo {

inline Grid gridOf(const std::array<std::size_t, 3>& dims, const std::array<std::size_t, 3>& tile) {
  return {dims[0],
          dims[1],
          dims[2],
          {static_cast<std::uint32_t>(tile[0]), static_cast<std::uint32_t>(tile[1]),
           static_cast<std::uint32_t>(tile[2])}};
}

/// A strip is some tiles side by side: work for one thread, not part of the format.
inline constexpr std::uint32_t kStripValues = 4096;  // leaves room in the first cache
static_assert(kStripValues >= kMaxTileValues);
FZ_HD std::uint64_t stripTiles(const Grid& grid) {
  return kStripValues / grid.tile.values();
}
FZ_HD std::uint64_t stripCount(const Grid& grid) {
  return bits::ceilDiv(grid.tilesX(), stripTiles(grid)) * grid.tilesY() * grid.tilesZ();
}

struct Strip {
  std::uint64_t first_tile;  ///< number of the tile in the stream
  Origin origin;
  std::uint32_t n_tiles;
  std::uint32_t n_values;  ///< in x; less than n_tiles * tile.x at the right edge of the grid
};
/// Strip `index` of stripCount(grid).
Strip stripAt(const Grid& grid, std::uint64_t index);
/// The longest strip that begins at a tile and has n_tiles tiles at most.
Strip stripFrom(const Grid& grid, std::uint64_t first_tile, std::uint64_t n_tiles);

/// Where the rows of a strip lie: value (0, 0, 0) of its first tile, and the values from there to
/// the next row and the next plane. In the field itself, or in memory of their own.
struct StripRows {
  void* first;
  std::uint64_t row_step;
  std::uint64_t plane_step;
};
inline StripRows rowsInField(const Grid& grid,
                             const Strip& strip,
                             std::size_t value_bytes,
                             void* field) {
  const Origin& o = strip.origin;
  const std::uint64_t first = (o.z * grid.ny + o.y) * grid.nx + o.x;
  return {static_cast<std::uint8_t*>(field) + first * value_bytes, grid.nx, grid.nx * grid.ny};
}

/// Row (y, z) of a strip; null outside the grid. `above` is the row that predicts the first value
/// of each tile; null where that is 0.
template <class U>
struct Row {
  U* row = nullptr;
  const U* above = nullptr;
};
template <class U>
inline Row<U> rowAt(
    const Grid& grid, const Strip& strip, const StripRows& rows, std::uint32_t y, std::uint32_t z) {
  if (strip.origin.z + z >= grid.nz || strip.origin.y + y >= grid.ny) {
    return {};
  }
  U* row = static_cast<U*>(rows.first) + z * rows.plane_step + y * rows.row_step;
  return {row, y > 0 ? row - rows.row_step : (z > 0 ? row - rows.plane_step : nullptr)};
}

/// A strip of values of value_bytes (2 or 4). `tiles` are those of the strip alone. `next` are rows
/// of the same shape that will be worked on soon, or null.
void encodeStrip(const Grid& grid,
                 const Strip& strip,
                 std::size_t value_bytes,
                 const StripRows& rows,
                 const void* next,
                 void* tiles);
void decodeStrip(const Grid& grid,
                 const Strip& strip,
                 std::size_t value_bytes,
                 const void* tiles,
                 const void* next,
                 const StripRows& rows);

}  // namespace fz::tiled_lorenzo
