#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fz/simple_stage.h"
#include "fz/stage_dims.h"

namespace fz {

namespace mask {
const StageDescriptor& descriptor();
template <class T>
class CudaSide;

/// MaskStage, whatever its element type.
class MaskBase : public SimpleStage {
 public:
  ~MaskBase() override;

  /// Values that stand for "missing" besides NaN and infinities, at most kMaxFillValues, in any
  /// order; a value of the data is one of them when it compares equal. Throws InvalidArgument for
  /// more.
  void setFill(const std::vector<double>& values);
  const std::vector<double>& getFill() const { return fill_; }
  /// The same as text, separated by spaces or commas. Throws InvalidArgument.
  void setFillText(const std::string& text);
  std::string getFillText() const;

  /// How missing places are filled, which no decoder has to know. Zeros: each takes the value
  /// before it, however far that is. Otherwise, for stages that look at tiles (Stage::localTile()):
  /// the same inside of every tile of these extents, {n, 1, 1} being n values in order, and 0 where
  /// all of it is missing. Throws InvalidArgument for extents of more than 64 (x alone: 65536).
  void setHold(const std::array<std::size_t, 3>& tile);
  const std::array<std::size_t, 3>& getHold() const { return hold_; }
  /// For stages that skip NaN (Interp): all missing places become NaN of one kind.
  void keepNan() { keeps_nan_ = true; }
  bool keepsNan() const { return keeps_nan_; }
  /// The same as text: "", "32", "8x8", "4x4x4" or "nan".
  void setHoldText(const std::string& text);
  std::string getHoldText() const;

  /// Dims of the data, x fastest; they win over those of the pipeline.
  void setDims(const std::array<std::size_t, 3>& dims) override { dims_.setOwn(dims); }
  void setDims(std::size_t x, std::size_t y = 1, std::size_t z = 1) { dims_.setOwn({x, y, z}); }
  void setPipelineDims(const std::array<std::size_t, 3>& dims) override {
    dims_.setFromPipeline(dims);
  }
  std::optional<std::array<std::size_t, 3>> ownDims() const override { return dims_.own(); }
  const std::array<std::size_t, 3>& getDims() const { return dims_.get(); }

  // Valid after a run in either direction.

  /// All missing values, and those of them that are missing by declaration.
  std::uint64_t getMissingCount() const { return n_missing_; }
  std::uint64_t getFilledCount() const { return n_filled_; }

  std::optional<MissingInfo> missingInfo() const override {
    return MissingInfo{n_missing_, n_filled_, fill_};
  }
  std::uint64_t missingCount() const override { return n_missing_; }
  const StageDescriptor& descriptor() const override { return mask::descriptor(); }
  const ParamTable& paramTable() const override;
  std::vector<DataType> elementTypes() const override { return {type_}; }

 protected:
  explicit MaskBase(DataType type);

  DataType inputType() const override { return type_; }
  Ports outputPorts() const override { return {{"output", type_}, {"mask", DataType::UINT8}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  PortBytes maxEncodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override;
  bool hasFixedEncodedBytes(std::size_t port) const override { return port == 0; }
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  template <class T>
  friend class CudaSide;
  struct State;

  std::size_t valueBytes() const { return getDataTypeSize(type_); }
  std::array<std::size_t, 3> dimsFor(std::size_t n_bytes, ErrorCode code) const;

  DataType type_;
  std::vector<double> fill_;
  std::array<std::size_t, 3> hold_ = {0, 0, 0};
  bool keeps_nan_ = false;
  StageDims dims_;

  // What the last encode found or the last config said.
  std::uint64_t n_missing_ = 0;
  std::uint64_t n_filled_ = 0;
  std::array<std::uint64_t, 3> shape_ = {0, 1, 1};
  std::unique_ptr<State> state_;
};

}  // namespace mask

/// Takes missing values out of a field: NaN of any payload, infinities, and values equal to a
/// declared fill value. Port "output" is the field with something cheap in their places, port
/// "mask" says where they were, with their exact bits; decoding puts them back. Lossless.
template <class T = float>
class MaskStage final : public mask::MaskBase {
 public:
  MaskStage() : MaskBase(kDataTypeOf<T>) {}
};

}  // namespace fz
