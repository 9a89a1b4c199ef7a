#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fz/simple_stage.h"
#include "mem/scratch.h"
#include "mem/zeroed_scratch.h"

namespace fz {

namespace bitplane_rze {
const StageDescriptor& descriptor();
}  // namespace bitplane_rze

/// Lossless coder for uint16 codes: bit planes of chunks of 2048 codes, 16-byte groups of zeros
/// left out. The output is a self-describing archive of bytes. One port, "output"; no settings.
/// Inputs of more than 2,128,773,120 codes are refused: the archive has 32-bit offsets.
class BitplaneRZEStage final : public SimpleStage, private CpuCoder {
 public:
  const StageDescriptor& descriptor() const override { return bitplane_rze::descriptor(); }
  std::vector<DeviceField> deviceFields() const override { return {{0, 8, 0}}; }
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override { return this; }
#if FZ_HAVE_CUDA
  TileOp cudaTileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override;
  void beginGroupCuda(const CudaRun& run, const GroupRun& group, GroupArgs& args) override;
  void endGroupCuda(const CudaRun& run, const GroupRun& group) override;
#endif

 protected:
  DataType inputType() const override {
    return DataType::UINT16;
  }
  Ports outputPorts() const override {
    return {{"output", DataType::UINT8}};
  }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
#if FZ_HAVE_CUDA
  bool hasCuda() const override;
  void encodeCuda(const CudaRun& run) override;
  void decodeCuda(const CudaRun& run) override;
  void finishEncodeCuda(const StageRecord& record) override;
  void throwDeviceError(const StageRecord& record) const override;
#endif
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  void beginTiles(const CpuRun& run, const TileCut& cut) override;
  std::size_t payloadOffset() const override;
  std::size_t maxTileBytes() const override;
  std::size_t encodeTile(const TileRange& range, const void* in, std::uint8_t* out) override;
  void placeTile(const TileRange& range, std::uint64_t offset) override;
  void decodeTile(const TileRange& range, void* out) override;
  void endTiles(const CpuRun& run) override;

  std::uint64_t* encodeStates(const CudaRun& run, std::uint32_t n_blocks);
  /// Throws Error(kBadSize) unless n_bytes are whole symbols and not too many.
  void checkInput(std::uint64_t n_bytes) const;
  /// Throws Error(kCorrupt) unless the header says what n_symbols_ and the size demand.
  void checkHeader(ByteView archive) const;

  std::uint64_t n_symbols_ = 0;      ///< of the last encode or of the config read
  TileCut cut_;                      ///< of the group at hand
  std::uint8_t* archive_ = nullptr;  ///< likewise, when encoding
  ByteView stream_;                  ///< likewise, when decoding: the whole archive
  std::atomic<std::uint64_t> first_bad_chunk_ = 0;
  ZeroedScratch look_back_;
};

}  // namespace fz
