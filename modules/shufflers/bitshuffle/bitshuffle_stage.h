#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "fz/simple_stage.h"

namespace fz {

namespace bitshuffle {
class CudaSide;
const StageDescriptor& descriptor();
}  // namespace bitshuffle

/// Gathers equal bits of the elements of a block: first the highest bit of all of them, then the
/// next. Lossless and size preserving; a tail shorter than a block is copied. Works on bytes, so
/// any input type fits. One port, "output".
class BitshuffleStage final : public SimpleStage {
 public:
  BitshuffleStage();
  ~BitshuffleStage() override;

  /// Bytes of a block. Throws InvalidArgument unless a positive multiple of 1024 below 2^32. That
  /// it is also a multiple of 1024 elements is checked when the stage runs.
  void setBlockSize(std::size_t n_bytes);
  std::size_t getBlockSize() const { return block_bytes_; }
  /// Bytes of an element: 1, 2, 4 or 8. Throws InvalidArgument for any other.
  void setElementWidth(std::size_t n_bytes);
  std::size_t getElementWidth() const { return element_bytes_; }

  const StageDescriptor& descriptor() const override { return bitshuffle::descriptor(); }
  const ParamTable& paramTable() const override;

 protected:
  DataType inputType() const override { return DataType::UNKNOWN; }
  Ports outputPorts() const override { return {{"output", DataType::UINT8}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override { return {input_bytes}; }
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override {
    return encoded_bytes[0];
  }
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override;
  bool hasFixedEncodedBytes(std::size_t /*port*/) const override { return true; }
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class bitshuffle::CudaSide;
  struct State;

  bool hasWholeUnits() const;
  void requireWholeUnits() const;

  std::size_t block_bytes_ = 16384;
  std::size_t element_bytes_ = 4;
  std::unique_ptr<State> state_;
};

}  // namespace fz
