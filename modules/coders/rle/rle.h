#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

namespace rle {
template <class T>
class CudaSide;
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
  RLEStage();
  ~RLEStage() override;

  const StageDescriptor& descriptor() const override { return rle::descriptor(); }
  std::vector<DataType> elementTypes() const override { return {kDataTypeOf<T>}; }

 protected:
  DataType inputType() const override { return kDataTypeOf<T>; }
  Ports outputPorts() const override { return {{"output", kDataTypeOf<T>}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  bool hasFixedDecodedBytes() const override { return false; }
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class rle::CudaSide<T>;
  struct State;

  /// Throws Error(kBadSize) unless n_bytes are whole values and not too many.
  void checkInput(std::uint64_t n_bytes) const;

  std::uint32_t n_values_ = 0;  ///< of the last encode or of the config read
  std::unique_ptr<State> state_;
};

extern template class RLEStage<std::uint8_t>;
extern template class RLEStage<std::uint16_t>;
extern template class RLEStage<std::uint32_t>;
extern template class RLEStage<std::int32_t>;

}  // namespace fz
