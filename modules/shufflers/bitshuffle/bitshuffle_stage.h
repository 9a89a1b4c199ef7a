#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fz/simple_stage.h"

namespace fz {

namespace bitshuffle {
const StageDescriptor& descriptor();
}  // namespace bitshuffle

/// Gathers equal bits of the elements of a block: first the highest bit of all of them, then the
/// next. Lossless and size preserving; a tail shorter than a block is copied. Works on bytes, so
/// any input type fits. One port, "output".
class BitshuffleStage final : public SimpleStage, private CpuTileOp {
 public:
  /// Bytes of a block. Throws InvalidArgument unless a positive multiple of 1024 below 2^32. That
  /// it is also a multiple of 1024 elements is checked when the stage runs.
  void setBlockSize(std::size_t n_bytes);
  std::size_t getBlockSize() const { return block_bytes_; }
  /// Bytes of an element: 1, 2, 4 or 8. Throws InvalidArgument for any other.
  void setElementWidth(std::size_t n_bytes);
  std::size_t getElementWidth() const { return element_bytes_; }

  const StageDescriptor& descriptor() const override { return bitshuffle::descriptor(); }
  const ParamTable& paramTable() const override;
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override { return this; }
#if FZ_HAVE_CUDA
  TileOp cudaTileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override;
  void beginGroupCuda(const CudaRun& run, const GroupRun& group, GroupArgs& args) override;
#endif

 protected:
  DataType inputType() const override {
    return DataType::UNKNOWN;
  }
  Ports outputPorts() const override {
    return {{"output", DataType::UINT8}};
  }
  PortBytes encodedBytes(std::size_t input_bytes) const override {
    return {input_bytes};
  }
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override {
    return encoded_bytes[0];
  }
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  bool hasFixedEncodedBytes(std::size_t /*port*/) const override {
    return true;
  }
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;
#if FZ_HAVE_CUDA
  bool hasCuda() const override;
  void encodeCuda(const CudaRun& run) override;
  void decodeCuda(const CudaRun& run) override;
#endif

 private:
  void beginTiles(const CpuRun& run, const TileCut& cut) override;
  void encodeTile(const TileRange& range, const void* in, void* out) override;
  void decodeTile(const TileRange& range, const void* in, void* out) override;
  void endTiles(const CpuRun& run) override;

  bool hasWholeUnits() const;
  void requireWholeUnits() const;

  std::size_t block_bytes_ = 16384;
  std::size_t element_bytes_ = 4;
  std::size_t tile_value_bytes_ = 1;  // of the group at hand
};

}  // namespace fz
