#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fz/simple_stage.h"
#include "mem/scratch.h"

namespace fz {

using AdaptiveBitpackTypes = TypeList<std::int16_t, std::int32_t>;

namespace adaptive_bitpack {
struct CpuScratch;
struct CudaDecode;
struct GroupsArgs;
const StageDescriptor& descriptor();
}  // namespace adaptive_bitpack

/// Signed integers in blocks of a fixed length, each stored with as many bit planes as its largest
/// magnitude needs. Lossless. One port, "output", a byte stream without a header of its own.
template <class T>
class AdaptiveBitpackStage final : public SimpleStage, private CpuCoder {
 public:
  AdaptiveBitpackStage();
  ~AdaptiveBitpackStage() override;

  /// Values per block, 1 to 1024; throws InvalidArgument otherwise. Default 32.
  void setBlockSize(std::size_t n_values);
  std::size_t getBlockSize() const { return state_.block_size; }

  /// Lets every block choose whether its first value is stored apart from the planes, which pays
  /// where that value is much larger than the others. Costs one byte per block. Default off.
  void setOutlierSelection(bool enabled) { state_.outlier_selection = enabled; }
  bool getOutlierSelection() const { return state_.outlier_selection; }

  const StageDescriptor& descriptor() const override { return adaptive_bitpack::descriptor(); }
  const ParamTable& paramTable() const override;
  std::vector<DataType> elementTypes() const override { return {kDataTypeOf<T>}; }
  void saveState() override { saved_ = state_; }
  void restoreState() override { state_ = saved_; }
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override { return this; }

 protected:
  DataType inputType() const override { return kDataTypeOf<T>; }
  Ports outputPorts() const override { return {{"output", DataType::UINT8}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

#if FZ_HAVE_CUDA
 public:
  bool hasCuda() const override {
    return true;
  }
  std::vector<DeviceField> deviceFields() const override;
  TileOp cudaTileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override {
    return "coders/adaptive_bitpack/adaptive_bitpack_op.cuh";
  }
  void beginGroupCuda(const CudaRun& run, const GroupRun& group, GroupArgs& args) override;

 protected:
  void encodeCuda(const CudaRun& run) override;
  void decodeCuda(const CudaRun& run) override;
  void finishEncodeCuda(const StageRecord& record) override;
  void throwDeviceError(const StageRecord& record) const override;
#endif

 private:
  void beginTiles(const CpuRun& run, const TileCut& cut) override;
  std::size_t payloadOffset() const override;
  std::size_t maxTileBytes() const override;
  std::size_t encodeTile(const TileRange& range, const void* in, std::uint8_t* out) override;
  void decodeTile(const TileRange& range, void* out) override;
  void endTiles(const CpuRun& run) override;
  /// Throws Error(kBadSize).
  void requireWholeValues(std::size_t n_bytes) const;

#if FZ_HAVE_CUDA
  /// Words by which the thread blocks of a kernel talk to each other, all zero between kernels.
  std::uint8_t* control(const CudaRun& run, std::size_t n_bytes);
  /// Arguments of the register kernels; enqueues what must be done before them.
  void prepareEncode(const CudaRun& run, std::size_t n_tiles, adaptive_bitpack::GroupsArgs& args);
  adaptive_bitpack::CudaDecode measure(const CudaRun& run, std::size_t& n_values);
#endif
  /// What the stored config holds.
  struct State {
    std::uint32_t block_size = 32;
    bool outlier_selection = false;
    std::uint64_t n_values = 0;
  };

  State state_;
  State saved_;
  std::unique_ptr<adaptive_bitpack::CpuScratch> scratch_;
  TileCut cut_;                             ///< of the group at hand
  std::uint8_t* archive_ = nullptr;         ///< likewise, when encoding
  ByteView stream_;                         ///< likewise, when decoding: the whole archive
  std::span<const std::uint64_t> tile_at_;  ///< likewise: payload of every tile
  Scratch cuda_states_;
  Scratch cuda_offsets_;
  Scratch cuda_control_;
  std::size_t control_bytes_ = 0;  ///< of cuda_control_ that are known to be zero between runs
};

extern template class AdaptiveBitpackStage<std::int16_t>;
extern template class AdaptiveBitpackStage<std::int32_t>;

}  // namespace fz
