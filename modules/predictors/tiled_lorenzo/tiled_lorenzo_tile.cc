// TiledLorenzo as part of a fused group on the CPU.
#include "core/require.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_cpu.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_impl.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"

namespace fz {

namespace {

using tiled_lorenzo::Grid;
using tiled_lorenzo::Strip;
using tiled_lorenzo::StripRows;

/// Calls f(strip, its first value in the range) for the strips of a range of whole tiles.
template <class F>
void forStrips(const Grid& grid, const TileRange& range, F f) {
  const std::uint64_t tile_values = grid.tile.values();
  const std::uint64_t first = range.first / tile_values;
  const std::uint64_t end = first + range.n_values / tile_values;
  for (std::uint64_t tile = first; tile < end;) {
    const Strip strip = tiled_lorenzo::stripFrom(grid, tile, end - tile);
    f(strip, static_cast<std::size_t>((tile - first) * tile_values));
    tile += strip.n_tiles;
  }
}

/// Calls f(first value in the field, first value at the desk, values) for the rows of a strip, and
/// at once for rows that lie side by side in both places.
template <class F>
void forRows(const Grid& grid, const Strip& strip, const StripRows& rows, F f) {
  const std::uint64_t n_z = std::min<std::uint64_t>(grid.tile.z, grid.nz - strip.origin.z);
  const std::uint64_t n_y = std::min<std::uint64_t>(grid.tile.y, grid.ny - strip.origin.y);
  const bool is_joined = rows.row_step == grid.nx;
  for (std::uint64_t z = 0; z < n_z; ++z) {
    for (std::uint64_t y = 0; y < (is_joined ? 1 : n_y); ++y) {
      f(((strip.origin.z + z) * grid.ny + strip.origin.y + y) * grid.nx + strip.origin.x,
        z * rows.plane_step + y * rows.row_step, strip.n_values * (is_joined ? n_y : 1));
    }
  }
}

/// Tells what the strip behind this one will need: its rows lie far apart. To be asked row by row
/// while this strip is worked on, since memory takes only so many requests at a time.
class Ahead {
 public:
  Ahead(const Grid& grid, const Strip& strip, TileFeed& feed)
      : feed_(feed), n_values_(grid.nx * grid.ny * grid.nz) {
    const std::uint64_t next = strip.first_tile + strip.n_tiles;
    if (next < grid.tileCount() && grid.tile.y * grid.tile.z > 1) {
      const tiled_lorenzo::Origin& from = strip.origin;
      const tiled_lorenzo::Origin to = tiled_lorenzo::originOf(grid, next);
      distance_ =
          ((to.z - from.z) * grid.ny + (to.y - from.y)) * grid.nx + (to.x - from.x);  // modulo 2^64
    }
  }

  /// The row there that these values of the field have here.
  void expect(std::uint64_t in_field, std::size_t n_values) {
    if (distance_ != 0 && in_field + distance_ + n_values <= n_values_) {
      feed_.expect(in_field + distance_, n_values);
    }
  }

 private:
  TileFeed& feed_;
  std::uint64_t n_values_;
  std::uint64_t distance_ = 0;  ///< 0: nothing is asked for
};

/// Rows of a strip side by side.
template <class T>
StripRows rowsAtDesk(const Grid& grid, const Strip& strip, T* desk) {
  const std::uint64_t pitch = std::uint64_t{strip.n_tiles} * grid.tile.x;
  return {desk, pitch, pitch * grid.tile.y};
}

}  // namespace

template <class T>
TileOp TiledLorenzoStage<T>::cpuTileOp() const {
  const std::array<std::size_t, 3> tile = isInverse() ? coded_tile_ : getTileShape();
  return OrderOp{.unit_values = static_cast<std::uint32_t>(tile[0] * tile[1] * tile[2])};
}

template <class T>
void TiledLorenzoStage<T>::beginTiles(const CpuRun& run, const TileCut& /*cut*/) {
  if (isInverse()) {
    const std::size_t n_encoded = run.inputs[0].size();
    const std::size_t n_bytes = decodedBytes({&n_encoded, 1});
    FZ_ASSERT(run.outputs[0].size() >= n_bytes);
    return;
  }
  const std::array<std::size_t, 3> dims = encodeDimsFor(run.inputs[0].size());
  const std::array<std::size_t, 3> tile = checkedTileShape();
  coded_dims_ = dims;
  coded_tile_ = tile;
  has_run_ = true;
  FZ_ASSERT(run.outputs[0].size() >= encodedBytes(run.inputs[0].size())[0]);
}

template <class T>
void TiledLorenzoStage<T>::gatherTile(const TileRange& range, TileFeed& feed, void* out) {
  const Grid grid = tiled_lorenzo::gridOf(coded_dims_, coded_tile_);
  alignas(64) T desk[tiled_lorenzo::kStripValues];
  forStrips(grid, range, [&](const Strip& strip, std::size_t at) {
    const StripRows rows = rowsAtDesk(grid, strip, desk);
    Ahead ahead(grid, strip, feed);
    forRows(grid, strip, rows,
            [&](std::uint64_t in_field, std::uint64_t at_desk, std::size_t n_values) {
              feed.fetch(in_field, n_values, desk + at_desk);
              ahead.expect(in_field, n_values);
            });
    tiled_lorenzo::encodeStrip(grid, strip, sizeof(T), rows, nullptr, static_cast<T*>(out) + at);
  });
}

template <class T>
void TiledLorenzoStage<T>::scatterTile(const TileRange& range, const void* in, TileFeed& feed) {
  const Grid grid = tiled_lorenzo::gridOf(coded_dims_, coded_tile_);
  alignas(64) T desk[tiled_lorenzo::kStripValues];
  forStrips(grid, range, [&](const Strip& strip, std::size_t at) {
    const StripRows rows = rowsAtDesk(grid, strip, desk);
    tiled_lorenzo::decodeStrip(grid, strip, sizeof(T), static_cast<const T*>(in) + at, nullptr,
                               rows);
    Ahead ahead(grid, strip, feed);
    forRows(grid, strip, rows,
            [&](std::uint64_t in_field, std::uint64_t at_desk, std::size_t n_values) {
              feed.put(in_field, n_values, desk + at_desk);
              ahead.expect(in_field, n_values);
            });
  });
}

template <class T>
void TiledLorenzoStage<T>::endTiles(const CpuRun& run) {
  const std::size_t n_bytes = run.inputs[0].size();
  setActualBytes(0, isInverse() ? decodedBytes({&n_bytes, 1}) : encodedBytes(n_bytes)[0]);
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define FZ_TILED_LORENZO_INSTANTIATE(T)                                                      \
  template TileOp TiledLorenzoStage<T>::cpuTileOp() const;                                   \
  template void TiledLorenzoStage<T>::beginTiles(const CpuRun&, const TileCut&);             \
  template void TiledLorenzoStage<T>::gatherTile(const TileRange&, TileFeed&, void*);        \
  template void TiledLorenzoStage<T>::scatterTile(const TileRange&, const void*, TileFeed&); \
  template void TiledLorenzoStage<T>::endTiles(const CpuRun&)
// NOLINTEND(bugprone-macro-parentheses)
FZ_TILED_LORENZO_INSTANTIATE(std::int16_t);
FZ_TILED_LORENZO_INSTANTIATE(std::int32_t);
#undef FZ_TILED_LORENZO_INSTANTIATE

}  // namespace fz
