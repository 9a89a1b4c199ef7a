// TiledLorenzo on the CPU: alone, and in a fused group.
#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "predictors/tiled_lorenzo/cpu/rows.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"

namespace fz {

namespace {

using Extents = std::array<std::size_t, 3>;
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

/// Calls f(first value in the field, first value in the buffer, values) for the rows of a strip,
/// and at once for rows that lie side by side in both places.
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

/// Rows of a strip side by side in a buffer.
template <class T>
StripRows rowsInBuffer(const Grid& grid, const Strip& strip, T* buffer) {
  const std::uint64_t pitch = std::uint64_t{strip.n_tiles} * grid.tile.x;
  return {buffer, pitch, pitch * grid.tile.y};
}

/// Rows of the strip after this one, to be asked for ahead; null where it has not the same rows.
const void* rowsOfNext(const Grid& grid,
                       std::uint64_t index,
                       std::size_t value_bytes,
                       const std::uint8_t* field) {
  if (index + 1 >= tiled_lorenzo::stripCount(grid)) {
    return nullptr;
  }
  const auto next = tiled_lorenzo::stripAt(grid, index + 1);
  if (next.origin.y + grid.tile.y > grid.ny || next.origin.z + grid.tile.z > grid.nz) {
    return nullptr;
  }
  return tiled_lorenzo::rowsInField(grid, next, value_bytes, const_cast<std::uint8_t*>(field))
      .first;
}

}  // namespace

/// The stage's part in groups.
template <class T>
struct TiledLorenzoStage<T>::State final : CpuOrder {
  explicit State(TiledLorenzoStage& owner) : stage(owner) {}

  void beginTiles(const CpuRun& run, const TileCut& cut) override;
  void gatherTile(const TileRange& range, TileFeed& feed, void* out) override;
  void scatterTile(const TileRange& range, const void* in, TileFeed& feed) override;
  void endTiles(const CpuRun& run) override;

  TiledLorenzoStage& stage;
};

template <class T>
TiledLorenzoStage<T>::TiledLorenzoStage() : state_(std::make_unique<State>(*this)) {
}
template <class T>
TiledLorenzoStage<T>::~TiledLorenzoStage() = default;

template <class T>
CpuTilePart* TiledLorenzoStage<T>::cpuTilePart() {
  return state_.get();
}

template <class T>
TileOp TiledLorenzoStage<T>::cpuTileOp() const {
  const Extents tile = isInverse() ? coded_tile_ : getTileShape();
  return OrderOp{.unit_values = static_cast<std::uint32_t>(tile[0] * tile[1] * tile[2])};
}

template <class T>
void TiledLorenzoStage<T>::encodeCpu(const CpuRun& run) {
  const Extents dims = encodeDimsFor(run.inputs[0].size());
  const Extents tile = checkedTileShape();
  const std::size_t n_out = encodedBytes(run.inputs[0].size())[0];
  if (run.outputs[0].size() < n_out) {
    requestOutputBytes(0, n_out);
    return;
  }
  const tiled_lorenzo::Grid grid = tiled_lorenzo::gridOf(dims, tile);
  const std::uint8_t* in = run.inputs[0].data();
  parallelFor(run.executor, tiled_lorenzo::stripCount(grid), [&](std::size_t index) {
    const auto strip = tiled_lorenzo::stripAt(grid, index);
    tiled_lorenzo::encodeStrip(
        grid, strip, sizeof(T),
        tiled_lorenzo::rowsInField(grid, strip, sizeof(T), const_cast<std::uint8_t*>(in)),
        rowsOfNext(grid, index, sizeof(T), in),
        run.outputs[0].data() + strip.first_tile * grid.tile.values() * sizeof(T));
  });
  coded_dims_ = dims;
  coded_tile_ = tile;
  has_run_ = true;
  setActualBytes(0, n_out);
}

template <class T>
void TiledLorenzoStage<T>::decodeCpu(const CpuRun& run) {
  const std::size_t n_encoded = run.inputs[0].size();
  const std::size_t n_bytes = decodedBytes({&n_encoded, 1});
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "TiledLorenzo: output needs {} bytes, has {}", n_bytes, run.outputs[0].size());
  const tiled_lorenzo::Grid grid = tiled_lorenzo::gridOf(coded_dims_, coded_tile_);
  std::uint8_t* out = run.outputs[0].data();
  parallelFor(run.executor, tiled_lorenzo::stripCount(grid), [&](std::size_t index) {
    const auto strip = tiled_lorenzo::stripAt(grid, index);
    tiled_lorenzo::decodeStrip(
        grid, strip, sizeof(T),
        run.inputs[0].data() + strip.first_tile * grid.tile.values() * sizeof(T),
        rowsOfNext(grid, index, sizeof(T), out),
        tiled_lorenzo::rowsInField(grid, strip, sizeof(T), out));
  });
  setActualBytes(0, n_bytes);
}

template <class T>
void TiledLorenzoStage<T>::State::beginTiles(const CpuRun& run, const TileCut& /*cut*/) {
  if (stage.isInverse()) {
    const std::size_t n_encoded = run.inputs[0].size();
    const std::size_t n_bytes = stage.decodedBytes({&n_encoded, 1});
    FZ_ASSERT(run.outputs[0].size() >= n_bytes);
    return;
  }
  const Extents dims = stage.encodeDimsFor(run.inputs[0].size());
  const Extents tile = stage.checkedTileShape();
  stage.coded_dims_ = dims;
  stage.coded_tile_ = tile;
  stage.has_run_ = true;
  FZ_ASSERT(run.outputs[0].size() >= stage.encodedBytes(run.inputs[0].size())[0]);
}

template <class T>
void TiledLorenzoStage<T>::State::gatherTile(const TileRange& range, TileFeed& feed, void* out) {
  const Grid grid = tiled_lorenzo::gridOf(stage.coded_dims_, stage.coded_tile_);
  alignas(64) T buffer[tiled_lorenzo::kStripValues];
  forStrips(grid, range, [&](const Strip& strip, std::size_t at) {
    const StripRows rows = rowsInBuffer(grid, strip, buffer);
    Ahead ahead(grid, strip, feed);
    forRows(grid, strip, rows,
            [&](std::uint64_t in_field, std::uint64_t in_buffer, std::size_t n_values) {
              feed.fetch(in_field, n_values, buffer + in_buffer);
              ahead.expect(in_field, n_values);
            });
    tiled_lorenzo::encodeStrip(grid, strip, sizeof(T), rows, nullptr, static_cast<T*>(out) + at);
  });
}

template <class T>
void TiledLorenzoStage<T>::State::scatterTile(const TileRange& range,
                                              const void* in,
                                              TileFeed& feed) {
  const Grid grid = tiled_lorenzo::gridOf(stage.coded_dims_, stage.coded_tile_);
  alignas(64) T buffer[tiled_lorenzo::kStripValues];
  forStrips(grid, range, [&](const Strip& strip, std::size_t at) {
    const StripRows rows = rowsInBuffer(grid, strip, buffer);
    tiled_lorenzo::decodeStrip(grid, strip, sizeof(T), static_cast<const T*>(in) + at, nullptr,
                               rows);
    Ahead ahead(grid, strip, feed);
    forRows(grid, strip, rows,
            [&](std::uint64_t in_field, std::uint64_t in_buffer, std::size_t n_values) {
              feed.put(in_field, n_values, buffer + in_buffer);
              ahead.expect(in_field, n_values);
            });
  });
}

template <class T>
void TiledLorenzoStage<T>::State::endTiles(const CpuRun& run) {
  const std::size_t n_bytes = run.inputs[0].size();
  stage.setActualBytes(
      0, stage.isInverse() ? stage.decodedBytes({&n_bytes, 1}) : stage.encodedBytes(n_bytes)[0]);
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define FZ_TILED_LORENZO_INSTANTIATE(T)                         \
  template TiledLorenzoStage<T>::TiledLorenzoStage();           \
  template TiledLorenzoStage<T>::~TiledLorenzoStage();          \
  template TileOp TiledLorenzoStage<T>::cpuTileOp() const;      \
  template CpuTilePart* TiledLorenzoStage<T>::cpuTilePart();    \
  template void TiledLorenzoStage<T>::encodeCpu(const CpuRun&); \
  template void TiledLorenzoStage<T>::decodeCpu(const CpuRun&)
// NOLINTEND(bugprone-macro-parentheses)
FZ_TILED_LORENZO_INSTANTIATE(std::int16_t);
FZ_TILED_LORENZO_INSTANTIATE(std::int32_t);
#undef FZ_TILED_LORENZO_INSTANTIATE

}  // namespace fz
