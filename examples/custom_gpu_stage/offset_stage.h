#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fz/simple_stage.h"
#include "offset_map.h"

namespace example {

/// Integers minus a constant, modulo 2^32: brings values that are far from zero near to it. A stage
/// outside the library, made of public headers only.
class OffsetStage final : public fz::SimpleStage, private fz::CpuTileOp {
 public:
  void setOffset(std::int32_t offset) { map_.offset = static_cast<std::uint32_t>(offset); }
  std::int32_t getOffset() const { return static_cast<std::int32_t>(map_.offset); }
  const OffsetMap& map() const { return map_; }
  /// Throws Error(kBadSize), or when decoding Error(kCorrupt).
  void requireWholeValues(std::size_t n_bytes) const;

  const fz::StageDescriptor& descriptor() const override;
  const fz::ParamTable& paramTable() const override { return descriptor().params(); }

 private:
  fz::DataType inputType() const override { return fz::DataType::INT32; }
  Ports outputPorts() const override { return {{"output", fz::DataType::INT32}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override { return {input_bytes}; }
  bool hasFixedEncodedBytes(std::size_t /*port*/) const override { return true; }
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const fz::CpuRun& run) override;
  void decodeCpu(const fz::CpuRun& run) override;
  void writeConfig(fz::ByteWriter& out) const override;
  void readConfig(fz::ByteReader& in) override;

  // In a fused group on the CPU.
  fz::TileOp cpuTileOp() const override { return fz::MapOp{}; }
  fz::CpuTilePart* cpuTilePart() override { return this; }
  void beginTiles(const fz::CpuRun& run, const fz::TileCut& /*cut*/) override {
    requireWholeValues(run.inputs[0].size());
  }
  void encodeTile(const fz::TileRange& range, const void* in, void* out) override;
  void decodeTile(const fz::TileRange& range, const void* in, void* out) override;
  void endTiles(const fz::CpuRun& run) override { setActualBytes(0, run.inputs[0].size()); }

  OffsetMap map_;
};

/// Makes what the stage does on a device; null in a build without CUDA.
fz::MakeCudaPart offsetCudaPart();

}  // namespace example
