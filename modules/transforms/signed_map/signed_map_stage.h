#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

namespace signed_map {
class CudaSide;
enum class Kind : std::uint8_t { kZigzag, kNegabinary };
}  // namespace signed_map

/// A lossless map between signed integers and unsigned ones of the same width, value by value. Size
/// preserving. Base of ZigzagStage and NegabinaryStage; the config is the two DataTypes.
class SignedMapStage : public SimpleStage {
 public:
  ~SignedMapStage() override;

  std::vector<DataType> elementTypes() const override { return {signed_type_, unsigned_type_}; }
  std::array<std::size_t, 3> localTile() const override { return {1, 1, 1}; }

 protected:
  SignedMapStage(signed_map::Kind kind, DataType signed_type, DataType unsigned_type);

  DataType inputType() const override { return signed_type_; }
  Ports outputPorts() const override { return {{"output", unsigned_type_}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override { return {input_bytes}; }
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  TileOp cpuTileOp() const override { return MapOp{}; }
  CpuTilePart* cpuTilePart() override;
  bool hasFixedEncodedBytes(std::size_t /*port*/) const override { return true; }
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class signed_map::CudaSide;
  struct State;

  /// Throws Error(kBadSize), or when decoding Error(kCorrupt).
  void requireWholeValues(std::size_t n_bytes) const;

  signed_map::Kind kind_;
  DataType signed_type_;
  DataType unsigned_type_;
  std::unique_ptr<State> state_;
};

}  // namespace fz
