#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "fz/simple_stage.h"

namespace fz {

namespace rze {
class CudaSide;
const StageDescriptor& descriptor();
}  // namespace rze

/// Removes zero bytes from chunks, and repeated bytes from the bitmaps that say where they were.
/// Lossless; works on bytes, so any input type fits. Best behind a Bitshuffle. One port, "output".
/// Takes inputs below 2^32 bytes: the stream counts in 32 bits.
class RZEStage final : public SimpleStage {
 public:
  RZEStage();
  ~RZEStage() override;

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
  void saveState() override { saved_original_bytes_ = original_bytes_; }
  void restoreState() override { original_bytes_ = saved_original_bytes_; }

 protected:
  DataType inputType() const override { return DataType::UNKNOWN; }
  Ports outputPorts() const override { return {{"output", DataType::UINT8}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override;
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class rze::CudaSide;
  struct State;

  /// Throws Error(kBadSize) for an input that the format cannot count.
  void requireCountable(std::size_t n_bytes) const;

  std::size_t chunk_bytes_ = 16384;
  int levels_ = 4;
  std::size_t original_bytes_ = 0;
  std::size_t saved_original_bytes_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace fz
