#include "predictors/tiled_lorenzo/tiled_lorenzo_cpu.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "predictors/tiled_lorenzo/tiled_lorenzo_cpu.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::tiled_lorenzo::HWY_NAMESPACE {  // NOLINT

// Values are handled as unsigned, so that sums and differences wrap.

constexpr std::uint32_t kFront = 64;  // zeros before a row, read by the shifted loads

struct Strip {
  std::uint64_t first_tile;  ///< number of the tile in the stream
  Origin origin;
  std::uint32_t n_tiles;
  std::uint32_t n_values;  ///< in x; less than n_tiles * tile.x at the right edge of the grid
};

Strip stripAt(const Grid& grid, std::uint64_t index) {
  const std::uint64_t tiles_x = grid.tilesX();
  const std::uint64_t strip_tiles = kStripValues / grid.tile.x;
  const std::uint64_t strips_x = bits::ceilDiv(tiles_x, strip_tiles);
  const std::uint64_t t = index % strips_x * strip_tiles;
  const std::uint64_t first = index / strips_x * tiles_x + t;
  const std::uint64_t n_tiles = std::min(strip_tiles, tiles_x - t);
  const Origin origin = originOf(grid, first);
  const std::uint64_t n = std::min<std::uint64_t>(n_tiles * grid.tile.x, grid.nx - origin.x);
  return {first, origin, static_cast<std::uint32_t>(n_tiles), static_cast<std::uint32_t>(n)};
}

/// Copies pieces of `edge` values; a constant edge where it is one of the usual ones, so that a
/// piece is one or two vector moves.
template <class U, std::uint32_t kEdge>
void copyPieces(const U* from, std::size_t from_step, U* to, std::size_t to_step, std::uint32_t n) {
  for (std::uint32_t t = 0; t < n; ++t) {
    std::memcpy(to + t * to_step, from + t * from_step, kEdge * sizeof(U));
  }
}
template <class U>
void copyPieces(std::uint32_t edge,
                const U* from,
                std::size_t from_step,
                U* to,
                std::size_t to_step,
                std::uint32_t n) {
  switch (edge) {
    case 1:
      return copyPieces<U, 1>(from, from_step, to, to_step, n);
    case 2:
      return copyPieces<U, 2>(from, from_step, to, to_step, n);
    case 4:
      return copyPieces<U, 4>(from, from_step, to, to_step, n);
    case 8:
      return copyPieces<U, 8>(from, from_step, to, to_step, n);
    case 16:
      return copyPieces<U, 16>(from, from_step, to, to_step, n);
    default:
      for (std::uint32_t t = 0; t < n; ++t) {
        std::memcpy(to + t * to_step, from + t * from_step, edge * sizeof(U));
      }
  }
}

/// One row of a strip: differences along x in natural order, then a piece per tile; the first value
/// of each piece is predicted from `above`, a row of the field (null: from 0).
template <class U>
void encodeRow(const Grid& grid, const Strip& strip, const U* row, const U* above, U* out) {
  const std::uint32_t edge = grid.tile.x;
  const std::size_t tile_values = grid.tile.values();
  alignas(64) U deltas[kStripValues];
  deltas[0] = 0;
  for (std::uint32_t i = 1; i < strip.n_values; ++i) {
    deltas[i] = static_cast<U>(row[i] - row[i - 1]);
  }
  const std::uint32_t n_padded = strip.n_tiles * edge;
  std::fill(deltas + strip.n_values, deltas + n_padded, U{0});
  copyPieces(edge, deltas, edge, out, tile_values, strip.n_tiles);
  if (above != nullptr) {
    for (std::uint32_t t = 0; t < strip.n_tiles; ++t) {
      out[t * tile_values] = static_cast<U>(row[t * edge] - above[t * edge]);
    }
  } else {
    for (std::uint32_t t = 0; t < strip.n_tiles; ++t) {
      out[t * tile_values] = row[t * edge];
    }
  }
}

template <class U>
void zeroRow(const Grid& grid, const Strip& strip, U* out) {
  for (std::uint32_t t = 0; t < strip.n_tiles; ++t) {
    std::fill_n(out + t * std::size_t{grid.tile.values()}, grid.tile.x, U{0});
  }
}

template <class U>
void encodeStripOf(const Grid& grid, std::uint64_t index, const U* in, U* out) {
  const Shape shape = grid.tile;
  const std::uint64_t plane = grid.nx * grid.ny;
  const Strip strip = stripAt(grid, index);
  const Origin& o = strip.origin;
  U* tiles = out + strip.first_tile * shape.values();
  for (std::uint32_t z = 0; z < shape.z; ++z) {
    for (std::uint32_t y = 0; y < shape.y; ++y) {
      U* to = tiles + (z * shape.y + y) * shape.x;
      if (o.z + z >= grid.nz || o.y + y >= grid.ny) {
        zeroRow(grid, strip, to);
        continue;
      }
      const U* row = in + (o.z + z) * plane + (o.y + y) * grid.nx + o.x;
      const U* above = y > 0 ? row - grid.nx : (z > 0 ? row - plane : nullptr);
      encodeRow(grid, strip, row, above, to);
    }
  }
}

/// Working rows of the decoder; the zeros in front are what a shifted load sees before the strip.
template <class U>
struct Lines {
  alignas(64) U a[kFront + kStripValues];
  alignas(64) U b[kFront + kStripValues];
};

/// Running sums inside pieces of `edge` values, a power of two: log2(edge) passes over the whole
/// strip, each adding the value kDistance back where that lies in the same piece.
template <class U, std::uint32_t kDistance>
void sumPass(const U* from, std::uint32_t edge_mask, std::uint32_t n, U* to) {
  for (std::uint32_t i = 0; i < n; ++i) {
    const U other = *(from + i - kDistance);
    to[i] = static_cast<U>(from[i] + ((i & edge_mask) >= kDistance ? other : U{0}));
  }
}

template <class U>
const U* sumPieces(std::uint32_t edge, std::uint32_t n, Lines<U>& lines) {
  U* a = lines.a + kFront;
  U* b = lines.b + kFront;
  if (edge == 4) {
    sumPass<U, 1>(a, 3, n, b);
    sumPass<U, 2>(b, 3, n, a);
    return a;
  }
  if (edge == 8) {
    sumPass<U, 1>(a, 7, n, b);
    sumPass<U, 2>(b, 7, n, a);
    sumPass<U, 4>(a, 7, n, b);
    return b;
  }
  for (std::uint32_t begin = 0; begin < n; begin += edge) {
    const std::uint32_t end = std::min(n, begin + edge);
    U sum = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      sum = static_cast<U>(sum + a[i]);
      a[i] = sum;
    }
  }
  return a;
}

template <class U>
void decodeRow(
    const Grid& grid, const Strip& strip, const U* tiles, const U* above, Lines<U>& lines, U* out) {
  const std::uint32_t edge = grid.tile.x;
  const std::size_t tile_values = grid.tile.values();
  U* a = lines.a + kFront;
  copyPieces(edge, tiles, tile_values, a, edge, strip.n_tiles);
  if (above != nullptr) {
    for (std::uint32_t t = 0; t < strip.n_tiles; ++t) {
      a[t * edge] = static_cast<U>(a[t * edge] + above[t * edge]);
    }
  }
  std::memcpy(out, sumPieces(edge, strip.n_values, lines), strip.n_values * sizeof(U));
}

template <class U>
void decodeStripOf(const Grid& grid, std::uint64_t index, const U* in, U* out) {
  const Shape shape = grid.tile;
  const std::uint64_t plane = grid.nx * grid.ny;
  const Strip strip = stripAt(grid, index);
  const Origin& o = strip.origin;
  Lines<U> lines;
  std::fill_n(lines.a, kFront, U{0});
  std::fill_n(lines.b, kFront, U{0});
  const U* tiles = in + strip.first_tile * shape.values();
  const auto n_z = std::min<std::uint64_t>(shape.z, grid.nz - o.z);
  const auto n_y = std::min<std::uint64_t>(shape.y, grid.ny - o.y);
  for (std::uint64_t z = 0; z < n_z; ++z) {
    for (std::uint64_t y = 0; y < n_y; ++y) {
      U* row = out + (o.z + z) * plane + (o.y + y) * grid.nx + o.x;
      const U* above = y > 0 ? row - grid.nx : (z > 0 ? row - plane : nullptr);
      decodeRow(grid, strip, tiles + (z * shape.y + y) * shape.x, above, lines, row);
    }
  }
}

void encode(
    const Grid& grid, std::uint64_t strip, std::size_t value_bytes, const void* in, void* out) {
  if (value_bytes == 2) {
    encodeStripOf(grid, strip, static_cast<const std::uint16_t*>(in),
                  static_cast<std::uint16_t*>(out));
  } else {
    encodeStripOf(grid, strip, static_cast<const std::uint32_t*>(in),
                  static_cast<std::uint32_t*>(out));
  }
}
void decode(
    const Grid& grid, std::uint64_t strip, std::size_t value_bytes, const void* in, void* out) {
  if (value_bytes == 2) {
    decodeStripOf(grid, strip, static_cast<const std::uint16_t*>(in),
                  static_cast<std::uint16_t*>(out));
  } else {
    decodeStripOf(grid, strip, static_cast<const std::uint32_t*>(in),
                  static_cast<std::uint32_t*>(out));
  }
}

}  // namespace fz::tiled_lorenzo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::tiled_lorenzo {

HWY_EXPORT(encode);
HWY_EXPORT(decode);

std::uint64_t stripCount(const Grid& grid) {
  const std::uint64_t strip_tiles = kStripValues / grid.tile.x;
  return bits::ceilDiv(grid.tilesX(), strip_tiles) * grid.tilesY() * grid.tilesZ();
}

void encodeStrip(
    const Grid& grid, std::uint64_t strip, std::size_t value_bytes, const void* in, void* out) {
  HWY_DYNAMIC_DISPATCH(encode)(grid, strip, value_bytes, in, out);
}
void decodeStrip(
    const Grid& grid, std::uint64_t strip, std::size_t value_bytes, const void* in, void* out) {
  HWY_DYNAMIC_DISPATCH(decode)(grid, strip, value_bytes, in, out);
}

}  // namespace fz::tiled_lorenzo
#endif
