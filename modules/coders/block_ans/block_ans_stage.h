#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

/// What the coder sees of a value: Zigzag for signed values and for codes that are two's complement
/// in an unsigned type (Quantizer, LorenzoQuant), None for those that are small as they are, such
/// as codes with the option zigzag.
// NOLINTBEGIN(readability-identifier-naming)
enum class BlockAnsMap : std::uint8_t { Zigzag, None };
/// Counted: tables made for the data, which are read twice. Fixed: a bank of tables, one pass.
enum class BlockAnsTables : std::uint8_t { Counted, Fixed };
// NOLINTEND(readability-identifier-naming)

namespace block_ans {

class CudaSide;

const StageDescriptor& descriptor();

/// BlockAnsStage, whatever its element type.
class BlockAnsBase : public SimpleStage {
 public:
  ~BlockAnsBase() override;

  void setMap(BlockAnsMap map);
  BlockAnsMap getMap() const { return settings_.map; }
  void setTables(BlockAnsTables tables);
  BlockAnsTables getTables() const { return settings_.tables; }

  /// Weight of a chunk, about its number of values other than zeros: 12288, 16384, 32768, 65536 or
  /// 262144. Longer chunks are fewer to work on at a time, and take fewer bytes. 0, the default:
  /// 12288 to 65536, by the size of the data. Throws InvalidArgument.
  void setChunk(std::uint32_t weight);
  std::uint32_t getChunk() const { return settings_.chunk_weight; }

  const StageDescriptor& descriptor() const override { return block_ans::descriptor(); }
  const ParamTable& paramTable() const override;
  std::vector<DataType> elementTypes() const override { return {type_}; }

  /// Keeps and brings back what deserializeHeader overwrites.
  void saveState() override { saved_ = settings_; }
  void restoreState() override { settings_ = saved_; }

 protected:
  explicit BlockAnsBase(DataType type);

  DataType inputType() const override { return DataType::UNKNOWN; }
  Ports outputPorts() const override { return {{"output", DataType::UNKNOWN}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override;
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  bool hasFixedDecodedBytes() const override { return false; }
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class CudaSide;
  struct State;
  struct Settings {
    BlockAnsMap map = BlockAnsMap::Zigzag;
    BlockAnsTables tables = BlockAnsTables::Counted;
    std::uint32_t chunk_weight = 0;
    std::uint64_t n_values = 0;  ///< of the last encode or config
  };

  std::size_t valueBytes() const { return getDataTypeSize(type_); }
  /// Throws Error(kCorrupt) where no stream of this size has the config's number of values.
  void checkSize(std::size_t stream_bytes) const;

  DataType type_;
  Settings settings_;
  Settings saved_;
  std::unique_ptr<State> state_;
};

}  // namespace block_ans

/// Entropy coder for residuals, which are mostly small; stage id 20482. T is int16_t, int32_t,
/// uint16_t or uint32_t. Blocks of 64 values have a class each, which chooses a table; values are
/// coded by range asymmetric numeral systems in 32 interleaved lanes. Lossless; no stream is more
/// than 4 bytes larger than the values.
template <class T>
class BlockAnsStage final : public block_ans::BlockAnsBase {
 public:
  BlockAnsStage() : BlockAnsBase(kDataTypeOf<T>) {}
};

}  // namespace fz
