#include <algorithm>
#include <bit>
#include <limits>

#include "backends/cuda/padding.h"
#include "core/cuda_part_maker.h"
#include "core/require.h"
#include "predictors/tiled_lorenzo/cuda/kernels.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"

namespace fz::tiled_lorenzo {

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

Shape shapeOf(const Extents& tile) {
  return {static_cast<std::uint32_t>(tile[0]), static_cast<std::uint32_t>(tile[1]),
          static_cast<std::uint32_t>(tile[2])};
}

CudaTiles cudaTiles(const cuda::Call& call,
                    const Extents& dims,
                    const Extents& tile,
                    bool is_extent_open) {
  return {call.inputs[0],
          call.outputs[0],
          {dims[0], dims[1], dims[2], shapeOf(tile)},
          is_extent_open,
          call.record};
}

}  // namespace

template <class T>
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(TiledLorenzoStage<T>& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override {
    return {{kConfigExtentX, sizeof(std::uint32_t), kExtentSlot}};
  }
  std::optional<std::uint32_t> quietValues() const override { return 0; }
  TileOp tileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override { return "predictors/tiled_lorenzo/cuda/op/op.cuh"; }
  void beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) override;

 private:
  TiledLorenzoStage<T>& stage_;
};

template <class T>
void CudaSide<T>::encode(const cuda::Call& call) {
  const DeviceSize& size = call.inputs[0].size;
  const Extents dims = size.isExact() ? stage_.encodeDimsFor(size.n_bytes)
                                      : dimsForLimit(stage_.dims_.get(), size.n_bytes / sizeof(T));
  const Extents tile = stage_.checkedTileShape();
  encodeTiles<std::make_unsigned_t<T>>(
      cudaTiles(call, dims, tile, !size.isExact() && stage_.dims_.get()[0] == 0), call);
  stage_.coded_dims_ = dims;
  stage_.coded_tile_ = tile;
  stage_.has_run_ = true;
}

template <class T>
void CudaSide<T>::decode(const cuda::Call& call) {
  const DeviceSize& size = call.inputs[0].size;
  if (size.isExact()) {
    const std::size_t n_encoded = size.n_bytes;
    stage_.decodedBytes({&n_encoded, 1});
  }
  FZ_REQUIRE(stage_.has_run_, ErrorCode::kInvalidState,
             "TiledLorenzo: cannot decode without a config");
  decodeTiles<std::make_unsigned_t<T>>(
      cudaTiles(call, stage_.coded_dims_, stage_.coded_tile_, !size.isExact()), call);
}

template <class T>
TileOp CudaSide<T>::tileOp() const {
  const Extents tile = stage_.isInverse() ? stage_.coded_tile_ : stage_.getTileShape();
  const std::size_t n_values = tile[0] * tile[1] * tile[2];
  if (!std::has_single_bit(tile[0]) || !std::has_single_bit(tile[1]) ||
      !std::has_single_bit(tile[2]) || n_values > kMaxTileValues) {
    return NoOp{"has a tile operation for extents that are powers of two only"};
  }
  return OrderOp{
      .unit_values = static_cast<std::uint32_t>(std::max<std::size_t>(n_values, 32)),
      .warp_values = kGroupWarpValues,
      .variant = std::uint64_t{sizeof(T)} << 32 | tile[2] << 16 | tile[1] << 8 | tile[0]};
}

template <class T>
std::string CudaSide<T>::tileOpType() const {
  const Extents tile = stage_.isInverse() ? stage_.coded_tile_ : stage_.getTileShape();
  return fmt::format("fz::tiled_lorenzo::TilesOp<std::{}_t, {}, {}, {}>",
                     dataTypeToString(kDataTypeOf<T>), tile[0], tile[1], tile[2]);
}

template <class T>
void CudaSide<T>::beginGroup(const cuda::Call& call, const GroupRun& /*group*/, GroupArgs& args) {
  const std::size_t n_bytes = call.inputs[0].size.n_bytes;
  if (stage_.isInverse()) {
    stage_.decodedBytes({&n_bytes, 1});
    FZ_REQUIRE(stage_.has_run_, ErrorCode::kInvalidState,
               "TiledLorenzo: cannot decode without a config");
  } else {
    stage_.coded_dims_ = stage_.encodeDimsFor(n_bytes);
    stage_.coded_tile_ = stage_.checkedTileShape();
    stage_.has_run_ = true;
  }
  const Grid grid = {stage_.coded_dims_[0], stage_.coded_dims_[1], stage_.coded_dims_[2],
                     shapeOf(stage_.coded_tile_)};
  TilesArgs own = {.record = call.record,
                   .nx = grid.nx,
                   .ny = grid.ny,
                   .nz = grid.nz,
                   .plane = grid.nx * grid.ny,
                   .tiles_x = FastDivisor::of(static_cast<std::uint32_t>(grid.tilesX())),
                   .tiles_y = FastDivisor::of(static_cast<std::uint32_t>(grid.tilesY())),
                   .n_tiles = grid.tileCount(),
                   .has_whole_tiles = grid.nx % grid.tile.x == 0 && grid.ny % grid.tile.y == 0 &&
                                      grid.nz % grid.tile.z == 0,
                   .publishes = stage_.isInverse() && !call.outputs[0].size_known,
                   .capacity_bytes = call.outputs[0].capacity_bytes};
  cuda::clearPadding(own);
  args.add(own);
}

template <class T>
void CudaSide<T>::finishEncode(const StageRecord& record) {
  stage_.coded_dims_[0] = record.value[kExtentSlot];
}

template <class T>
void CudaSide<T>::throwError(const StageRecord& record) const {
  detail::throwError(
      stage_.isInverse() ? ErrorCode::kCorrupt : ErrorCode::kBadSize,
      fmt::format("TiledLorenzo: dims {} x {} x {} in tiles of {} x {} x {} do not fit {} bytes",
                  stage_.coded_dims_[0], stage_.coded_dims_[1], stage_.coded_dims_[2],
                  stage_.coded_tile_[0], stage_.coded_tile_[1], stage_.coded_tile_[2],
                  record.error_index));
}

MakeCudaPart cudaPartMaker() {
  return &makeCudaPart<CudaSide, TiledLorenzoStage<std::int16_t>, TiledLorenzoStage<std::int32_t>>;
}

}  // namespace fz::tiled_lorenzo
