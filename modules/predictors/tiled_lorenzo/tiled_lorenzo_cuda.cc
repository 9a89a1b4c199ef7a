#include "predictors/tiled_lorenzo/tiled_lorenzo_cuda.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/require.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_op.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"

namespace fz {

namespace {

using Extents = std::array<std::size_t, 3>;

constexpr std::size_t kMaxExtent = std::numeric_limits<std::uint32_t>::max();  // u32 in the config
constexpr std::uint32_t kConfigExtentX = 8;                                    // SPEC: nx

/// Extents for an input whose size only the device knows: of `dims`, x may be open, and up to
/// n_values values may come.
Extents dimsForLimit(const Extents& dims, std::size_t n_values) {
  std::size_t n_lines = 0;
  std::size_t n_held = 0;
  const bool overflows = __builtin_mul_overflow(dims[1], dims[2], &n_lines) ||
                         __builtin_mul_overflow(n_lines, dims[0], &n_held);
  FZ_REQUIRE(
      !overflows && n_held <= n_values && std::max(dims[1], dims[2]) <= kMaxExtent,
      ErrorCode::kBadSize,
      "TiledLorenzo: dims {} x {} x {} hold more values than the input, which has {} at most",
      dims[0], dims[1], dims[2], n_values);
  return {dims[0] == 0 ? std::min(n_values / n_lines, kMaxExtent) : dims[0], dims[1], dims[2]};
}

tiled_lorenzo::Shape shapeOf(const Extents& tile) {
  return {static_cast<std::uint32_t>(tile[0]), static_cast<std::uint32_t>(tile[1]),
          static_cast<std::uint32_t>(tile[2])};
}

tiled_lorenzo::CudaTiles cudaTiles(const CudaRun& run,
                                   const Extents& dims,
                                   const Extents& tile,
                                   bool is_extent_open) {
  return {run.inputs[0],  run.outputs[0], {dims[0], dims[1], dims[2], shapeOf(tile)},
          is_extent_open, run.record,     run.stream};
}

}  // namespace

template <class T>
bool TiledLorenzoStage<T>::hasCuda() const {
  return true;
}

template <class T>
std::vector<DeviceField> TiledLorenzoStage<T>::deviceFields() const {
  return {{kConfigExtentX, sizeof(std::uint32_t), tiled_lorenzo::kExtentSlot}};
}

template <class T>
void TiledLorenzoStage<T>::encodeCuda(const CudaRun& run) {
  const DeviceSize& size = run.inputs[0].size;
  const Extents dims = size.isExact() ? encodeDimsFor(size.n_bytes)
                                      : dimsForLimit(dims_.get(), size.n_bytes / sizeof(T));
  const Extents tile = checkedTileShape();
  tiled_lorenzo::encodeTiles<std::make_unsigned_t<T>>(
      cudaTiles(run, dims, tile, !size.isExact() && dims_.get()[0] == 0));
  coded_dims_ = dims;
  coded_tile_ = tile;
  has_run_ = true;
}

template <class T>
void TiledLorenzoStage<T>::decodeCuda(const CudaRun& run) {
  const DeviceSize& size = run.inputs[0].size;
  if (size.isExact()) {
    const std::size_t n_encoded = size.n_bytes;
    decodedBytes({&n_encoded, 1});
  }
  FZ_REQUIRE(has_run_, ErrorCode::kInvalidState, "TiledLorenzo: nothing to decode: no config");
  tiled_lorenzo::decodeTiles<std::make_unsigned_t<T>>(
      cudaTiles(run, coded_dims_, coded_tile_, !size.isExact()));
}

template <class T>
TileOp TiledLorenzoStage<T>::cudaTileOp() const {
  const Extents tile = isInverse() ? coded_tile_ : getTileShape();
  const std::size_t n_values = tile[0] * tile[1] * tile[2];
  if (!std::has_single_bit(tile[0]) || !std::has_single_bit(tile[1]) ||
      !std::has_single_bit(tile[2]) || n_values > tiled_lorenzo::kMaxTileValues) {
    return NoOp{"has a tile operation for extents that are powers of two only"};
  }
  return OrderOp{
      .unit_values = static_cast<std::uint32_t>(std::max<std::size_t>(n_values, 32)),
      .warp_values = tiled_lorenzo::kGroupWarpValues,
      .variant = std::uint64_t{sizeof(T)} << 32 | tile[2] << 16 | tile[1] << 8 | tile[0]};
}

template <class T>
std::string TiledLorenzoStage<T>::tileOpType() const {
  const Extents tile = isInverse() ? coded_tile_ : getTileShape();
  return fmt::format("fz::tiled_lorenzo::TilesOp<std::{}_t, {}, {}, {}>",
                     dataTypeToString(kDataTypeOf<T>), tile[0], tile[1], tile[2]);
}

template <class T>
void TiledLorenzoStage<T>::beginGroupCuda(const CudaRun& run,
                                          const GroupRun& /*group*/,
                                          GroupArgs& args) {
  const std::size_t n_bytes = run.inputs[0].size.n_bytes;
  if (isInverse()) {
    decodedBytes({&n_bytes, 1});
    FZ_REQUIRE(has_run_, ErrorCode::kInvalidState, "TiledLorenzo: nothing to decode: no config");
  } else {
    coded_dims_ = encodeDimsFor(n_bytes);
    coded_tile_ = checkedTileShape();
    has_run_ = true;
  }
  using tiled_lorenzo::FastDivisor;
  const tiled_lorenzo::Grid grid = {coded_dims_[0], coded_dims_[1], coded_dims_[2],
                                    shapeOf(coded_tile_)};
  args.add(tiled_lorenzo::TilesArgs{
      .record = run.record,
      .nx = grid.nx,
      .ny = grid.ny,
      .nz = grid.nz,
      .plane = grid.nx * grid.ny,
      .tiles_x = FastDivisor::of(static_cast<std::uint32_t>(grid.tilesX())),
      .tiles_y = FastDivisor::of(static_cast<std::uint32_t>(grid.tilesY())),
      .n_tiles = grid.tileCount(),
      .has_whole_tiles =
          grid.nx % grid.tile.x == 0 && grid.ny % grid.tile.y == 0 && grid.nz % grid.tile.z == 0,
      .publishes = isInverse() && !run.outputs[0].size_known,
      .capacity_bytes = run.outputs[0].capacity_bytes});
}

template <class T>
void TiledLorenzoStage<T>::finishEncodeCuda(const StageRecord& record) {
  coded_dims_[0] = record.value[tiled_lorenzo::kExtentSlot];
}

template <class T>
void TiledLorenzoStage<T>::throwDeviceError(const StageRecord& record) const {
  detail::throwError(
      isInverse() ? ErrorCode::kCorrupt : ErrorCode::kBadSize,
      fmt::format("TiledLorenzo: dims {} x {} x {} in tiles of {} x {} x {} do not fit {} bytes",
                  coded_dims_[0], coded_dims_[1], coded_dims_[2], coded_tile_[0], coded_tile_[1],
                  coded_tile_[2], record.error_index));
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define FZ_TILED_LORENZO_INSTANTIATE(T)                                                            \
  template bool TiledLorenzoStage<T>::hasCuda() const;                                             \
  template std::vector<DeviceField> TiledLorenzoStage<T>::deviceFields() const;                    \
  template void TiledLorenzoStage<T>::encodeCuda(const CudaRun&);                                  \
  template void TiledLorenzoStage<T>::decodeCuda(const CudaRun&);                                  \
  template TileOp TiledLorenzoStage<T>::cudaTileOp() const;                                        \
  template std::string TiledLorenzoStage<T>::tileOpType() const;                                   \
  template void TiledLorenzoStage<T>::beginGroupCuda(const CudaRun&, const GroupRun&, GroupArgs&); \
  template void TiledLorenzoStage<T>::finishEncodeCuda(const StageRecord&);                        \
  template void TiledLorenzoStage<T>::throwDeviceError(const StageRecord&) const
// NOLINTEND(bugprone-macro-parentheses)
FZ_TILED_LORENZO_INSTANTIATE(std::int16_t);
FZ_TILED_LORENZO_INSTANTIATE(std::int32_t);
#undef FZ_TILED_LORENZO_INSTANTIATE

}  // namespace fz
