#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "fz/simple_stage.h"

namespace fz {

namespace bitplane_rze {
class CudaSide;
const StageDescriptor& descriptor();
}  // namespace bitplane_rze

/// Lossless coder for uint16 codes: bit planes of chunks of 2048 codes, 16-byte groups of zeros
/// left out. The output is a self-describing archive of bytes. One port, "output"; no settings.
/// Inputs of more than 2,128,773,120 codes are refused: the archive has 32-bit offsets.
class BitplaneRZEStage final : public SimpleStage {
 public:
  BitplaneRZEStage();
  ~BitplaneRZEStage() override;

  const StageDescriptor& descriptor() const override { return bitplane_rze::descriptor(); }

 protected:
  DataType inputType() const override { return DataType::UINT16; }
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
  friend class bitplane_rze::CudaSide;
  struct State;

  /// Throws Error(kBadSize) unless n_bytes are whole symbols and not too many.
  void checkInput(std::uint64_t n_bytes) const;

  std::uint64_t n_symbols_ = 0;  ///< of the last encode or of the config read
  std::unique_ptr<State> state_;
};

}  // namespace fz
