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

namespace rze {
const StageDescriptor& descriptor();
}  // namespace rze

/// Removes zero bytes from chunks, and repeated bytes from the bitmaps that say where they were.
/// Lossless; works on bytes, so any input type fits. Best behind a Bitshuffle. One port, "output".
/// Takes inputs below 2^32 bytes: the stream counts in 32 bits.
class RZEStage final : public SimpleStage, private CpuCoder {
 public:
  /// Bytes of a chunk: 4096, 8192 or 16384. Throws InvalidArgument for any other.
  void setChunkSize(std::size_t n_bytes);
  std::size_t getChunkSize() const { return chunk_bytes_; }
  /// How often bitmaps are themselves reduced, 1 to 4. Throws InvalidArgument for any other.
  void setLevels(int levels);
  int getLevels() const { return levels_; }
  /// Bytes that went into the last encode, or that the config of an archive names.
  std::size_t getCachedOrigBytes() const { return original_bytes_; }

  const StageDescriptor& descriptor() const override { return rze::descriptor(); }
  const ParamTable& paramTable() const override;
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override { return this; }
  void saveState() override { saved_original_bytes_ = original_bytes_; }
  void restoreState() override { original_bytes_ = saved_original_bytes_; }
  std::vector<DeviceField> deviceFields() const override { return {{5, 4, 0}}; }
#if FZ_HAVE_CUDA
  TileOp cudaTileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override;
  void beginGroupCuda(const CudaRun& run, const GroupRun& group, GroupArgs& args) override;
  void endGroupCuda(const CudaRun& run, const GroupRun& group) override;
#endif

 protected:
  DataType inputType() const override {
    return DataType::UNKNOWN;
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
  void decodeTile(const TileRange& range, void* out) override;
  void endTiles(const CpuRun& run) override;
  std::uint64_t* encodeStates(const CudaRun& run, std::uint32_t n_chunks);
  std::uint64_t* decodeStates(const CudaRun& run, std::uint32_t n_chunks, bool has_own_blocks);
  /// Throws Error(kBadSize) for an input that the format cannot count.
  void checkInput(std::size_t n_bytes) const;
  /// Checks the header and the table of a stream and fills offsets_. Throws Error(kCorrupt).
  std::span<const std::uint64_t> checkedOffsets(const CpuRun& run);

  std::size_t chunk_bytes_ = 16384;
  int levels_ = 4;
  std::size_t original_bytes_ = 0;
  std::size_t saved_original_bytes_ = 0;
  TileCut cut_;                              ///< of the group at hand
  std::uint8_t* stream_out_ = nullptr;       ///< likewise
  ByteView stream_in_;                       ///< likewise
  std::span<const std::uint64_t> chunk_at_;  ///< likewise
  std::atomic<std::uint64_t> first_bad_chunk_ = 0;
  Scratch plans_;
  Scratch offsets_;
  ZeroedScratch look_back_;
  Scratch places_;
};

}  // namespace fz
