#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fz/simple_stage.h"
#include "mem/scratch.h"

namespace fz {

namespace rle {
const StageDescriptor& descriptor();
}  // namespace rle

using RLETypes = TypeList<std::uint8_t, std::uint16_t, std::uint32_t, std::int32_t>;

/// Run lengths of equal values. Lossless; good where most values repeat, and up to 1 + 4 /
/// sizeof(T) times the input where none does. One port, "output", which keeps the type T although
/// it carries a packed stream. Inputs of 2^32 values or more are refused: counts have 32 bits. No
/// settings.
template <class T = std::uint16_t>
class RLEStage final : public SimpleStage {
 public:
  const StageDescriptor& descriptor() const override { return rle::descriptor(); }
  std::vector<DataType> elementTypes() const override { return {kDataTypeOf<T>}; }
  std::vector<DeviceField> deviceFields() const override { return {{1, 4, 0}}; }

 protected:
  DataType inputType() const override { return kDataTypeOf<T>; }
  Ports outputPorts() const override { return {{"output", kDataTypeOf<T>}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  bool hasFixedDecodedBytes() const override { return false; }
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
  /// Throws Error(kBadSize) unless n_bytes are whole values and not too many.
  void checkInput(std::uint64_t n_bytes) const;
  /// Checks count, size and lengths of an untrusted stream; returns the runs, and in tile_starts_
  /// the position of every kTileRuns-th run.
  std::uint64_t checkStream(const CpuRun& run);

  std::uint32_t n_values_ = 0;  ///< of the last encode or of the config read
  Scratch marks_;               ///< one bit per value: a run begins here
  Scratch tile_starts_;
  Scratch next_starts_;
  Scratch look_back_;
};

extern template class RLEStage<std::uint8_t>;
extern template class RLEStage<std::uint16_t>;
extern template class RLEStage<std::uint32_t>;
extern template class RLEStage<std::int32_t>;

}  // namespace fz
