#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

/// How long the independently decodable partitions are: 768 values (Coarse) or 1024 (Fine). The
/// names are those of the original system's two kernels; codes and everything else are the same.
// NOLINTBEGIN(readability-identifier-naming)
enum class HuffmanEncodeMode : std::uint8_t { Coarse, Fine };
// NOLINTEND(readability-identifier-naming)

namespace huffman {

template <class T>
class CudaSide;
const StageDescriptor& descriptor();

}  // namespace huffman

/// Canonical Huffman coder for values below a book length; stage id 6. T is uint8_t, uint16_t or
/// uint32_t. Optimal code lengths, at most 27 bits; lossless; the bytes depend on input, book
/// length and mode alone.
template <class T>
class HuffmanStage final : public SimpleStage {
 public:
  static constexpr std::uint32_t kMaxBklen = 65536;

  HuffmanStage();
  ~HuffmanStage() override;

  /// Number of possible symbols: every value must be below it, or encoding throws
  /// Error(kBadSize). 1 .. 65536, else InvalidArgument. Default 256 for uint8_t, 1024 otherwise.
  void setBklen(std::uint32_t bklen);
  std::uint32_t getBklen() const { return bklen_; }

  void setEncodeMode(HuffmanEncodeMode mode);
  HuffmanEncodeMode getEncodeMode() const { return mode_; }

  std::vector<DataType> elementTypes() const override { return {kDataTypeOf<T>}; }
  const ParamTable& paramTable() const override;
  const StageDescriptor& descriptor() const override { return huffman::descriptor(); }

  /// Keeps and brings back what deserializeHeader overwrites: book length and value count.
  void saveState() override {
    saved_ = count_;
    saved_bklen_ = bklen_;
  }
  void restoreState() override {
    count_ = saved_;
    bklen_ = saved_bklen_;
  }

 protected:
  DataType inputType() const override { return DataType::UNKNOWN; }
  Ports outputPorts() const override { return {{"output", DataType::UNKNOWN}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  PortBytes maxEncodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class huffman::CudaSide<T>;
  struct State;
  static constexpr std::uint32_t kDefaultBklen = sizeof(T) == 1 ? 256 : 1024;

  struct Count {
    std::uint64_t n_values = 0;
    bool known = false;  ///< by an encode or a config
  };

  std::uint32_t partitionValues() const;

  std::uint32_t bklen_ = kDefaultBklen;
  std::uint32_t saved_bklen_ = kDefaultBklen;
  HuffmanEncodeMode mode_ = HuffmanEncodeMode::Coarse;
  Count count_;
  Count saved_;
  std::unique_ptr<State> state_;
};

extern template class HuffmanStage<std::uint8_t>;
extern template class HuffmanStage<std::uint16_t>;
extern template class HuffmanStage<std::uint32_t>;

}  // namespace fz
