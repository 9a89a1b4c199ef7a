#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

using AdaptiveBitpackTypes = TypeList<std::int16_t, std::int32_t>;

namespace adaptive_bitpack {
template <class T>
class CudaSide;
const StageDescriptor& descriptor();
}  // namespace adaptive_bitpack

/// Signed integers in blocks of a fixed length, each stored with as many bit planes as its largest
/// magnitude needs. Lossless. One port, "output", a byte stream without a header of its own.
template <class T>
class AdaptiveBitpackStage final : public SimpleStage {
 public:
  AdaptiveBitpackStage();
  ~AdaptiveBitpackStage() override;

  /// Values per block, 1 to 1024; throws InvalidArgument otherwise. Default 32.
  void setBlockSize(std::size_t n_values);
  std::size_t getBlockSize() const { return config_.block_size; }
  std::array<std::size_t, 3> localTile() const override { return {config_.block_size, 1, 1}; }

  /// Lets every block choose whether its first value is stored apart from the planes, which pays
  /// where that value is much larger than the others. Costs one byte per block. Default off.
  void setOutlierSelection(bool enabled) { config_.outlier_selection = enabled; }
  bool getOutlierSelection() const { return config_.outlier_selection; }

  const StageDescriptor& descriptor() const override { return adaptive_bitpack::descriptor(); }
  const ParamTable& paramTable() const override;
  std::vector<DataType> elementTypes() const override { return {kDataTypeOf<T>}; }
  void saveState() override { saved_ = config_; }
  void restoreState() override { config_ = saved_; }

 protected:
  DataType inputType() const override { return kDataTypeOf<T>; }
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
  friend class adaptive_bitpack::CudaSide<T>;
  struct State;
  /// What the stored config holds.
  struct Config {
    std::uint32_t block_size = 32;
    bool outlier_selection = false;
    std::uint64_t n_values = 0;
  };

  /// Throws Error(kBadSize).
  void requireWholeValues(std::size_t n_bytes) const;

  Config config_;
  Config saved_;
  std::unique_ptr<State> state_;
};

extern template class AdaptiveBitpackStage<std::int16_t>;
extern template class AdaptiveBitpackStage<std::int32_t>;

}  // namespace fz
