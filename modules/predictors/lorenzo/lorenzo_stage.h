#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "fz/axes.h"
#include "fz/simple_stage.h"
#include "fz/stage_dims.h"

namespace fz {

namespace lorenzo {
template <class T>
class CudaSide;
const StageDescriptor& descriptor();
}  // namespace lorenzo

/// What a file stores of the stage.
struct LorenzoConfig {
  DataType data_type = DataType::INT32;
  std::uint8_t ndim = 1;
  std::uint32_t dim_x = 0;  ///< 0: as many as there are values
  std::uint32_t dim_y = 1;
  std::uint32_t dim_z = 1;
  std::uint32_t block_size = 0;  ///< 0: 256
  std::uint8_t left_out = 0;     ///< axes without differences, see Axes::leftOut
};

/// Lossless differences of integers to their neighbours, modulo 2^W: to the left one inside blocks
/// in one dimension, to all lower neighbours of the whole grid in two and three. Size preserving;
/// one port, "output".
template <class T>
class LorenzoStage final : public SimpleStage {
 public:
  static_assert(std::is_integral_v<T> && std::is_signed_v<T>);

  LorenzoStage();
  ~LorenzoStage() override;

  /// Dims of the data, x fastest; they win over those of the pipeline. x == 0 means "as many as
  /// there are". Data of another size is refused when it comes.
  void setDims(const std::array<std::size_t, 3>& dims) override { dims_.setOwn(dims); }
  void setDims(std::size_t x, std::size_t y = 1, std::size_t z = 1) { dims_.setOwn({x, y, z}); }
  void setPipelineDims(const std::array<std::size_t, 3>& dims) override {
    dims_.setFromPipeline(dims);
  }
  std::optional<std::array<std::size_t, 3>> ownDims() const override { return dims_.own(); }
  const std::array<std::size_t, 3>& getDims() const { return dims_.get(); }
  int ndim() const { return shape().ndim(); }

  /// Block-local delta along one line of values, restarted every 1 to 1024 values, also when the
  /// pipeline has more dimensions (dims set on the stage itself still count). 0: the dims decide,
  /// with blocks of 256 in one dimension. Throws InvalidArgument.
  void setBlockSize(std::size_t n_values);
  std::size_t getBlockSize() const { return block_size_; }

  /// Axes along which differences are taken; all by default. In one dimension that is x.
  void setAxes(const Axes& axes) { axes_ = axes; }
  const Axes& getAxes() const { return axes_; }

  std::array<std::size_t, 3> localTile() const override {
    return ndim() > 1 ? std::array<std::size_t, 3>{}
                      : std::array<std::size_t, 3>{blockValues(), 1, 1};
  }
  const StageDescriptor& descriptor() const override { return lorenzo::descriptor(); }
  const ParamTable& paramTable() const override;
  std::vector<DataType> elementTypes() const override { return {kDataTypeOf<T>}; }

 protected:
  DataType inputType() const override { return kDataTypeOf<T>; }
  Ports outputPorts() const override { return {{"output", kDataTypeOf<T>}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override { return {input_bytes}; }
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override;
  bool hasFixedEncodedBytes(std::size_t /*port*/) const override { return true; }
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class lorenzo::CudaSide<T>;
  struct State;

  /// Dims that hold exactly this many bytes; throws Error(code) when there are none.
  std::array<std::size_t, 3> dimsFor(std::size_t n_bytes, ErrorCode code) const;
  /// The same for encoding; they fit the config.
  std::array<std::size_t, 3> encodeDimsFor(std::size_t n_bytes) const;
  const StageDims& shape() const;
  std::uint8_t leftOut() const { return axes_.leftOut(shape().ndim()); }
  std::size_t blockValues() const;

  StageDims dims_;
  std::size_t inferred_x_ = 0;  // of the last encode, where the dims leave x open
  std::size_t block_size_ = 0;
  Axes axes_;
  std::unique_ptr<State> state_;
};

extern template class LorenzoStage<std::int8_t>;
extern template class LorenzoStage<std::int16_t>;
extern template class LorenzoStage<std::int32_t>;
extern template class LorenzoStage<std::int64_t>;

}  // namespace fz
