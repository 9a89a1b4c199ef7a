#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

namespace bitpack {
template <class T>
class CudaSide;
const StageDescriptor& descriptor();
}  // namespace bitpack

using BitpackTypes = TypeList<std::uint8_t, std::uint16_t, std::uint32_t>;

/// Keeps the low bits of every value, the same number for all. Lossless: a value that needs more
/// bits is an Error(kBoundViolation) that names it, never a truncation. One port, "output"; both
/// sides are byte-transparent to the type check.
template <class T>
class BitpackStage final : public SimpleStage {
 public:
  BitpackStage();
  ~BitpackStage() override;

  /// Bits per value: a power of two from 1 to 8 * sizeof(T), which is the default. Without effect
  /// while auto-detect is on. Throws InvalidArgument.
  void setNBits(std::uint32_t n_bits);
  /// The number set; while auto-detect is on, the number that the last run found.
  std::uint32_t getNBits() const;

  /// Every compress takes the smallest number of bits that holds all values. Costs one more pass
  /// over the input. Off by default.
  void setAutoDetect(bool on) { auto_detect_ = on; }
  bool isAutoDetect() const { return auto_detect_; }

  void saveState() override;
  void restoreState() override;
  const StageDescriptor& descriptor() const override { return bitpack::descriptor(); }
  const ParamTable& paramTable() const override { return params(); }
  std::vector<DataType> elementTypes() const override { return {kDataTypeOf<T>}; }

  /// The settings of this instantiation.
  static const ParamTable& params();

 protected:
  DataType inputType() const override { return DataType::UNKNOWN; }
  Ports outputPorts() const override { return {{"output", DataType::UNKNOWN}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  bool hasFixedEncodedBytes(std::size_t /*port*/) const override { return !auto_detect_; }
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class bitpack::CudaSide<T>;
  struct State;

  /// Number of values in a packed stream of this size. Throws Error(kCorrupt).
  std::uint64_t valuesIn(std::size_t packed_bytes) const;

  /// What a config says about a stream.
  struct Stream {
    std::uint32_t n_bits = 8 * sizeof(T);
    std::uint64_t n_values = 0;
    bool has_count = false;  ///< false: as many values as the stream holds
  };

  std::uint32_t n_bits_ = 8 * sizeof(T);  ///< as set
  bool auto_detect_ = false;
  bool has_run_ = false;
  Stream stream_;  ///< of the last encode, or of the config read
  std::uint32_t saved_bits_ = 8 * sizeof(T);
  Stream saved_stream_;
  std::unique_ptr<State> state_;
};

extern template class BitpackStage<std::uint8_t>;
extern template class BitpackStage<std::uint16_t>;
extern template class BitpackStage<std::uint32_t>;

}  // namespace fz
