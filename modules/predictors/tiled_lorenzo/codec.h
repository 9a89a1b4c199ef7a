#pragma once

#include <cstdint>

#include "shared/bits.h"
#include "shared/host_device.h"

/// The layout of TiledLorenzo, shared by all backends; SPEC.md describes it.
namespace fz::tiled_lorenzo {

inline constexpr std::uint32_t kMaxTileValues = 1024;
inline constexpr std::uint32_t kMaxTileEdge = 255;  // u8 in the config

struct Shape {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  FZ_HD std::uint32_t values() const { return x * y * z; }
};

struct Grid {
  std::uint64_t nx = 0;
  std::uint64_t ny = 1;
  std::uint64_t nz = 1;
  Shape tile;

  FZ_HD std::uint64_t tilesX() const { return bits::ceilDiv<std::uint64_t>(nx, tile.x); }
  FZ_HD std::uint64_t tilesY() const { return bits::ceilDiv<std::uint64_t>(ny, tile.y); }
  FZ_HD std::uint64_t tilesZ() const { return bits::ceilDiv<std::uint64_t>(nz, tile.z); }
  FZ_HD std::uint64_t tileCount() const { return tilesX() * tilesY() * tilesZ(); }
};

/// Origin of a tile; tiles are numbered x fastest.
struct Origin {
  std::uint64_t x, y, z;
};
FZ_HD Origin originOf(const Grid& grid, std::uint64_t tile) {
  return {tile % grid.tilesX() * grid.tile.x, tile / grid.tilesX() % grid.tilesY() * grid.tile.y,
          tile / grid.tilesX() / grid.tilesY() * grid.tile.z};
}

/// Where value i of a tile lies in the field; not in_grid for padding.
struct Place {
  std::uint64_t index;
  bool in_grid;
};
FZ_HD Place placeOf(const Grid& grid, const Origin& origin, std::uint32_t i) {
  const std::uint64_t x = origin.x + i % grid.tile.x;
  const std::uint64_t y = origin.y + i / grid.tile.x % grid.tile.y;
  const std::uint64_t z = origin.z + i / grid.tile.x / grid.tile.y;
  return {(z * grid.ny + y) * grid.nx + x, x < grid.nx && y < grid.ny && z < grid.nz};
}

/// One tile: value minus predictor in T, 0 outside the grid. `in` is the whole field, `out` the
/// tile's values.
template <class T, class Team>
FZ_HD void encodeTile(Team team, const Grid& grid, std::uint64_t tile, const T* in, T* out) {
  const Origin origin = originOf(grid, tile);
  team.each(grid.tile.values(), [&](std::uint32_t i) {
    const Place place = placeOf(grid, origin, i);
    if (!place.in_grid) {
      out[i] = 0;
      return;
    }
    const std::uint32_t x = i % grid.tile.x;
    const std::uint32_t y = i / grid.tile.x % grid.tile.y;
    const std::uint32_t z = i / grid.tile.x / grid.tile.y;
    T predicted = 0;
    if (x > 0) {
      predicted = in[place.index - 1];
    } else if (y > 0) {
      predicted = in[place.index - grid.nx];
    } else if (z > 0) {
      predicted = in[place.index - grid.nx * grid.ny];
    }
    out[i] = bits::wrapSub(in[place.index], predicted);
  });
  team.sync();
}

/// The inverse. `values` holds the tile's deltas and is overwritten.
template <class T, class Team>
FZ_HD void decodeTile(Team team, const Grid& grid, std::uint64_t tile, T* values, T* out) {
  const Shape shape = grid.tile;
  const auto sums = [values](std::uint32_t first, std::uint32_t stride, std::uint32_t n) {
    for (std::uint32_t i = 1; i < n; ++i) {
      values[first + i * stride] =
          bits::wrapAdd(values[first + i * stride], values[first + (i - 1) * stride]);
    }
  };
  team.each(1, [&](std::uint32_t) { sums(0, shape.x * shape.y, shape.z); });
  team.sync();
  team.each(shape.z, [&](std::uint32_t z) { sums(z * shape.x * shape.y, shape.x, shape.y); });
  team.sync();
  team.each(shape.y * shape.z, [&](std::uint32_t row) { sums(row * shape.x, 1, shape.x); });
  team.sync();
  const Origin origin = originOf(grid, tile);
  team.each(shape.values(), [&](std::uint32_t i) {
    const Place place = placeOf(grid, origin, i);
    if (place.in_grid) {
      out[place.index] = values[i];
    }
  });
  team.sync();
}

}  // namespace fz::tiled_lorenzo
