#include "predictors/tiled_lorenzo/cpu/rows.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "predictors/tiled_lorenzo/cpu/rows.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "predictors/tiled_lorenzo/cpu/simd.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::tiled_lorenzo::HWY_NAMESPACE {  // NOLINT

// Values are handled as unsigned, so that sums and differences wrap. A strip passes through a
// staging area in natural order: rows are worked on whole, and the stream is touched in its order.

constexpr std::uint32_t kFront = 64;  // before the staging area, read by shifted loads

HWY_INLINE std::uint32_t pitchOf(const Grid& grid, const Strip& strip) {
  return strip.n_tiles * grid.tile.x;
}

/// Asks for a row of the field ahead of its use: the rows of a strip lie far apart, and hardware
/// prefetching starts anew in each.
template <int kForWriting, class U>
void prefetchRow(std::uint32_t n_values, const U* row) {
  constexpr std::uint32_t kLine = 64 / sizeof(U);
  for (std::uint32_t i = 0; i < n_values; i += kLine) {
    __builtin_prefetch(row + i, kForWriting);
  }
}

/// Copies the staging area to the tiles of the stream, tile after tile, or back from a constant
/// stream. The usual edges are constants, so that a piece of a row is one or two moves.
template <std::uint32_t kEdge, class U, class Stream>
void movePieces(const Grid& grid, const Strip& strip, U* stage, Stream* stream) {
  const std::uint32_t edge = kEdge != 0 ? kEdge : grid.tile.x;
  const std::uint32_t n_rows = grid.tile.y * grid.tile.z;
  const std::uint32_t pitch = pitchOf(grid, strip);
  for (std::uint32_t t = 0; t < strip.n_tiles; ++t) {
    U* piece = stage + t * edge;
    for (std::uint32_t row = 0; row < n_rows; ++row) {
      if constexpr (std::is_const_v<Stream>) {
        std::memcpy(piece, stream, edge * sizeof(U));
      } else {
        std::memcpy(stream, piece, edge * sizeof(U));
      }
      piece += pitch;
      stream += edge;
    }
  }
}
template <class U, class Stream>
void movePieces(const Grid& grid, const Strip& strip, U* stage, Stream* stream) {
  switch (grid.tile.x) {
    case 1:
      return movePieces<1>(grid, strip, stage, stream);
    case 2:
      return movePieces<2>(grid, strip, stage, stream);
    case 4:
      return movePieces<4>(grid, strip, stage, stream);
    case 8:
      return movePieces<8>(grid, strip, stage, stream);
    case 16:
      return movePieces<16>(grid, strip, stage, stream);
    default:
      return movePieces<0>(grid, strip, stage, stream);
  }
}

/// Differences along x, then the first value of each tile against `above`.
template <class U>
void encodeRow(
    std::uint32_t edge, std::uint32_t n, std::uint32_t pitch, const Row<U>& from, U* deltas) {
  const U* row = from.row;
  if (row == nullptr) {
    std::fill_n(deltas, pitch, U{0});
    return;
  }
  for (std::uint32_t i = 1; i < n; ++i) {
    deltas[i] = static_cast<U>(row[i] - row[i - 1]);
  }
  std::fill(deltas + n, deltas + pitch, U{0});
  if (from.above != nullptr) {
    for (std::uint32_t i = 0; i < n; i += edge) {
      deltas[i] = static_cast<U>(row[i] - from.above[i]);
    }
  } else {
    for (std::uint32_t i = 0; i < n; i += edge) {
      deltas[i] = row[i];
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
/// A row of a strip from value `begin` on to its places in the tiles.
template <std::uint32_t kEdge, class U>
void encodeRestOfRow(
    const Strip& strip, const Row<U>& from, std::size_t begin, std::size_t tile_values, U* tiles) {
  const std::size_t n = from.row == nullptr ? 0 : strip.n_values;
  for (std::size_t i = begin; i < std::size_t{strip.n_tiles} * kEdge; ++i) {
    U delta = 0;
    if (i < n) {
      const U above = from.above == nullptr ? U{0} : from.above[i];
      delta = static_cast<U>(from.row[i] - (i % kEdge == 0 ? above : from.row[i - 1]));
    }
    tiles[i / kEdge * tile_values + i % kEdge] = delta;
  }
}

template <std::uint32_t kEdge, class U>
void encodeToTiles(
    const Grid& grid, const Strip& strip, const StripRows& rows, const U* next, U* tiles) {
  constexpr std::size_t kStep = kRows<kEdge, U>;
  for (std::uint32_t z = 0; z < grid.tile.z; ++z) {
    const bool is_in_grid = strip.origin.z + z < grid.nz;
    for (std::uint32_t y = 0; y < grid.tile.y; y += kStep) {
      for (std::uint32_t k = 0; next != nullptr && k < kStep; ++k) {
        prefetchRow<0>(strip.n_values, next + z * rows.plane_step + (y + k) * rows.row_step);
      }
      const std::size_t n_done = is_in_grid ? encodeRows<kEdge>(grid, strip, rows, y, z, tiles) : 0;
      for (std::uint32_t k = y; k < y + kStep; ++k) {
        encodeRestOfRow<kEdge>(strip, rowAt<U>(grid, strip, rows, k, z), n_done, grid.tile.values(),
                               tiles + (z * grid.tile.y + k) * kEdge);
      }
    }
  }
}
#endif

template <class U>
void encodeStripOf(
    const Grid& grid, const Strip& strip, const StripRows& rows, const U* next, U* tiles) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kHoldsRow<4, U>) {
    if (isOfRows<4, U>(grid, strip)) {
      return encodeToTiles<4>(grid, strip, rows, next, tiles);
    }
  }
  if constexpr (kHoldsRow<8, U>) {
    if (isOfRows<8, U>(grid, strip)) {
      return encodeToTiles<8>(grid, strip, rows, next, tiles);
    }
  }
#endif
  const std::uint32_t pitch = pitchOf(grid, strip);
  alignas(64) U stage[kStripValues];
  U* deltas = stage;
  for (std::uint32_t z = 0; z < grid.tile.z; ++z) {
    for (std::uint32_t y = 0; y < grid.tile.y; ++y) {
      if (next != nullptr) {
        prefetchRow<0>(strip.n_values, next + z * rows.plane_step + y * rows.row_step);
      }
      encodeRow(grid.tile.x, strip.n_values, pitch, rowAt<U>(grid, strip, rows, y, z), deltas);
      deltas += pitch;
    }
  }
  movePieces(grid, strip, stage, tiles);
}

/// One pass of running sums inside pieces whose length is a power of two: adds the value kDistance
/// back where that lies in the same piece. What a load finds before the row is not used.
template <std::uint32_t kDistance, class U>
void sumPass(const U* from, std::uint32_t edge_mask, std::uint32_t n, U* to) {
  for (std::uint32_t i = 0; i < n; ++i) {
    const U other = *(from + i - kDistance);
    to[i] = static_cast<U>(from[i] + ((i & edge_mask) >= kDistance ? other : U{0}));
  }
}

/// Running sums inside pieces of `edge` values. `row` is used as working memory, and so is `work`.
template <class U>
void sumPieces(std::uint32_t edge, std::uint32_t n, U* row, U* work, U* out) {
  if (edge == 4) {
    sumPass<1>(row, 3, n, work);
    sumPass<2>(work, 3, n, out);
    return;
  }
  if (edge == 8) {
    sumPass<1>(row, 7, n, work);
    sumPass<2>(work, 7, n, row);
    sumPass<4>(row, 7, n, out);
    return;
  }
  for (std::uint32_t begin = 0; begin < n; begin += edge) {
    const std::uint32_t end = std::min(n, begin + edge);
    U sum = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      sum = static_cast<U>(sum + row[i]);
      out[i] = sum;
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
/// A row of a strip from value `begin` on, which is the first of a tile, from its places.
template <std::uint32_t kEdge>
void decodeRestOfRow(const Strip& strip,
                     const std::uint32_t* tiles,
                     std::size_t begin,
                     std::size_t tile_values,
                     const Row<std::uint32_t>& to) {
  std::uint32_t sum = 0;
  for (std::size_t i = begin; i < strip.n_values; ++i) {
    if (i % kEdge == 0) {
      sum = to.above == nullptr ? 0 : to.above[i];
    }
    sum += tiles[i / kEdge * tile_values + i % kEdge];
    to.row[i] = sum;
  }
}

template <std::uint32_t kEdge>
void decodeFromTiles(const Grid& grid,
                     const Strip& strip,
                     const std::uint32_t* tiles,
                     const std::uint32_t* next,
                     const StripRows& rows) {
  using U = std::uint32_t;
  constexpr std::size_t kStep = kRows<kEdge, U>;
  const auto n_z =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(grid.tile.z, grid.nz - strip.origin.z));
  for (std::uint32_t z = 0; z < n_z; ++z) {
    for (std::uint32_t y = 0; y < grid.tile.y; y += kStep) {
      for (std::uint32_t k = 0; next != nullptr && k < kStep; ++k) {
        prefetchRow<1>(strip.n_values, next + z * rows.plane_step + (y + k) * rows.row_step);
      }
      const std::size_t n_done = decodeRows<kEdge>(grid, strip, tiles, y, z, rows);
      for (std::uint32_t k = y; k < y + kStep; ++k) {
        decodeRestOfRow<kEdge>(strip, tiles + (z * grid.tile.y + k) * kEdge, n_done,
                               grid.tile.values(), rowAt<U>(grid, strip, rows, k, z));
      }
    }
  }
}
#endif

template <class U>
void decodeStripOf(
    const Grid& grid, const Strip& strip, const U* tiles, const U* next, const StripRows& rows) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(U) == 4 && kHasSquares<4, U>) {
    if (isOfRows<4, U>(grid, strip)) {
      return decodeFromTiles<4>(grid, strip, tiles, next, rows);
    }
  }
  if constexpr (sizeof(U) == 4 && kHasSquares<8, U>) {
    if (isOfRows<8, U>(grid, strip)) {
      return decodeFromTiles<8>(grid, strip, tiles, next, rows);
    }
  }
#endif
  const std::uint32_t edge = grid.tile.x;
  const std::uint32_t pitch = pitchOf(grid, strip);
  alignas(64) U staged[kFront + kStripValues];
  alignas(64) U work[kFront + kStripValues];
  std::fill_n(staged, kFront, U{0});
  std::fill_n(work, kFront, U{0});
  movePieces(grid, strip, staged + kFront, tiles);
  U* row = staged + kFront;
  for (std::uint32_t z = 0; z < grid.tile.z; ++z) {
    for (std::uint32_t y = 0; y < grid.tile.y; ++y, row += pitch) {
      if (next != nullptr) {
        prefetchRow<1>(strip.n_values, next + z * rows.plane_step + y * rows.row_step);
      }
      const Row<U> to = rowAt<U>(grid, strip, rows, y, z);
      if (to.row == nullptr) {
        continue;
      }
      for (std::uint32_t i = 0; to.above != nullptr && i < strip.n_values; i += edge) {
        row[i] = static_cast<U>(row[i] + to.above[i]);
      }
      sumPieces(edge, strip.n_values, row, work + kFront, to.row);
    }
  }
}

void encode(const Grid& grid,
            const Strip& strip,
            std::size_t value_bytes,
            const StripRows& rows,
            const void* next,
            void* tiles) {
  if (value_bytes == 2) {
    encodeStripOf(grid, strip, rows, static_cast<const std::uint16_t*>(next),
                  static_cast<std::uint16_t*>(tiles));
  } else {
    encodeStripOf(grid, strip, rows, static_cast<const std::uint32_t*>(next),
                  static_cast<std::uint32_t*>(tiles));
  }
}
void decode(const Grid& grid,
            const Strip& strip,
            std::size_t value_bytes,
            const void* tiles,
            const void* next,
            const StripRows& rows) {
  if (value_bytes == 2) {
    decodeStripOf(grid, strip, static_cast<const std::uint16_t*>(tiles),
                  static_cast<const std::uint16_t*>(next), rows);
  } else {
    decodeStripOf(grid, strip, static_cast<const std::uint32_t*>(tiles),
                  static_cast<const std::uint32_t*>(next), rows);
  }
}

}  // namespace fz::tiled_lorenzo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::tiled_lorenzo {

HWY_EXPORT(encode);
HWY_EXPORT(decode);

Strip stripFrom(const Grid& grid, std::uint64_t first_tile, std::uint64_t n_tiles) {
  const std::uint64_t tiles_x = grid.tilesX();
  const std::uint64_t n_here =
      std::min({n_tiles, stripTiles(grid), tiles_x - first_tile % tiles_x});
  const Origin origin = originOf(grid, first_tile);
  const std::uint64_t n = std::min<std::uint64_t>(n_here * grid.tile.x, grid.nx - origin.x);
  return {first_tile, origin, static_cast<std::uint32_t>(n_here), static_cast<std::uint32_t>(n)};
}

Strip stripAt(const Grid& grid, std::uint64_t index) {
  const std::uint64_t strips_x = bits::ceilDiv(grid.tilesX(), stripTiles(grid));
  const std::uint64_t first =
      index / strips_x * grid.tilesX() + index % strips_x * stripTiles(grid);
  return stripFrom(grid, first, stripTiles(grid));
}

void encodeStrip(const Grid& grid,
                 const Strip& strip,
                 std::size_t value_bytes,
                 const StripRows& rows,
                 const void* next,
                 void* tiles) {
  HWY_DYNAMIC_DISPATCH(encode)(grid, strip, value_bytes, rows, next, tiles);
}
void decodeStrip(const Grid& grid,
                 const Strip& strip,
                 std::size_t value_bytes,
                 const void* tiles,
                 const void* next,
                 const StripRows& rows) {
  HWY_DYNAMIC_DISPATCH(decode)(grid, strip, value_bytes, tiles, next, rows);
}

}  // namespace fz::tiled_lorenzo
#endif
