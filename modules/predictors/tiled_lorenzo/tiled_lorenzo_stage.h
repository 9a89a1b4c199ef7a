#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fz/simple_stage.h"
#include "fz/stage_dims.h"

namespace fz {

namespace tiled_lorenzo {
template <class T>
class CudaSide;
const StageDescriptor& descriptor();
}  // namespace tiled_lorenzo

/// Separable integer delta inside small tiles, written tile after tile: each tile of the output is
/// one block for a fixed-rate coder. Lossless. Edge tiles are filled up with zeros, so the output
/// may hold more values than the input. One port, "output".
template <class T>
class TiledLorenzoStage final : public SimpleStage {
 public:
  TiledLorenzoStage();
  ~TiledLorenzoStage() override;

  /// Extents of 1 to 255, product up to 1024. Throws InvalidArgument.
  void setTileShape(std::size_t x, std::size_t y = 1, std::size_t z = 1);
  /// The shape in use; for an axis that was not set, the default for the stage's dims: 64 in one
  /// dimension, 8 x 8 in two, 4 x 4 x 4 in three.
  std::array<std::size_t, 3> getTileShape() const;
  std::size_t getTileElems() const;
  std::array<std::size_t, 3> localTile() const override { return getTileShape(); }

  void setDims(std::size_t x, std::size_t y = 1, std::size_t z = 1) { dims_.setOwn({x, y, z}); }
  void setDims(const std::array<std::size_t, 3>& dims) override { dims_.setOwn(dims); }
  void setPipelineDims(const std::array<std::size_t, 3>& dims) override {
    dims_.setFromPipeline(dims);
  }
  std::optional<std::array<std::size_t, 3>> ownDims() const override { return dims_.own(); }
  const std::array<std::size_t, 3>& getDims() const { return dims_.get(); }
  int ndim() const { return dims_.ndim(); }

  const ParamTable& paramTable() const override;
  std::vector<DataType> elementTypes() const override { return {kDataTypeOf<T>}; }
  const StageDescriptor& descriptor() const override { return tiled_lorenzo::descriptor(); }

 protected:
  DataType inputType() const override { return kDataTypeOf<T>; }
  Ports outputPorts() const override { return {{"output", kDataTypeOf<T>}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override;
  bool hasFixedEncodedBytes(std::size_t /*port*/) const override { return true; }
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class tiled_lorenzo::CudaSide<T>;
  struct State;

  void setTileAxis(std::size_t axis, std::int64_t extent);
  /// Throw Error when the extents or the tile do not fit the format.
  std::array<std::size_t, 3> encodeDimsFor(std::size_t n_bytes) const;
  std::array<std::size_t, 3> checkedTileShape() const;

  StageDims dims_;
  std::array<std::size_t, 3> tile_ = {0, 0, 0};  // 0: the default for the dims
  /// Extents of the last encode, or of the stream to decode.
  std::array<std::size_t, 3> coded_dims_ = {0, 1, 1};
  std::array<std::size_t, 3> coded_tile_ = {64, 1, 1};
  bool has_run_ = false;
  std::unique_ptr<State> state_;
};

extern template class TiledLorenzoStage<std::int16_t>;
extern template class TiledLorenzoStage<std::int32_t>;

}  // namespace fz
