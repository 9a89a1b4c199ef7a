#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

namespace diff {
template <class T, class TOut>
class CudaSide;
const StageDescriptor& descriptor();
}  // namespace diff

/// Each value minus its left neighbour, in chunks that start anew. Size preserving; one port,
/// "output".
///
/// TOut is T, or for signed T the unsigned type of the same width: the difference is then written
/// in negabinary. Integers wrap and are lossless. Floats are accepted when the decoder's running
/// sum restores every value to the bit (whole numbers of moderate size, say): the encoder checks
/// it, and checkResult() throws Error(kBoundViolation) otherwise.
template <class T = float, class TOut = T>
class DifferenceStage final : public SimpleStage {
 public:
  static_assert(std::is_same_v<T, TOut> || (std::is_integral_v<T> && std::is_signed_v<T> &&
                                            std::is_unsigned_v<TOut> && sizeof(T) == sizeof(TOut)),
                "TOut is T or, for negabinary, its unsigned type");

  DifferenceStage();
  ~DifferenceStage() override;

  /// Bytes per chunk: 0 for one chunk, else a power of two of values. Throws InvalidArgument.
  void setChunkSize(std::size_t n_bytes);
  std::size_t getChunkSize() const { return chunk_bytes_; }

  /// Chunks; of long ones so much as a warp has on a device.
  std::array<std::size_t, 3> localTile() const override {
    const std::size_t most = kLocalBytes / sizeof(T);
    const std::size_t chunk = chunk_bytes_ / sizeof(T);
    return {chunk == 0 ? most : std::min(chunk, most), 1, 1};
  }
  const StageDescriptor& descriptor() const override { return diff::descriptor(); }
  const ParamTable& paramTable() const override;
  std::vector<DataType> elementTypes() const override {
    return {kDataTypeOf<T>, kDataTypeOf<TOut>};
  }
  /// Throws Error(kBoundViolation) when floats of the last run would not come back exactly.
  void checkResult() const override;

 protected:
  DataType inputType() const override { return kDataTypeOf<T>; }
  Ports outputPorts() const override { return {{"output", kDataTypeOf<TOut>}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override { return {input_bytes}; }
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override;
  bool hasFixedEncodedBytes(std::size_t /*port*/) const override { return true; }
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 private:
  friend class diff::CudaSide<T, TOut>;
  struct State;
  static constexpr std::size_t kLocalBytes = 2048;

  /// Throws Error(kBadSize), or when decoding Error(kCorrupt).
  void requireWholeValues(std::size_t n_bytes) const;

  std::size_t chunk_bytes_ = 0;
  std::uint64_t n_values_ = 0;  // of the last encode, for the message of checkResult
  std::uint64_t n_lost_ = 0;
  std::uint64_t first_lost_ = 0;
  std::unique_ptr<State> state_;
};

extern template class DifferenceStage<float>;
extern template class DifferenceStage<double>;
extern template class DifferenceStage<std::uint8_t>;
extern template class DifferenceStage<std::uint16_t>;
extern template class DifferenceStage<std::uint32_t>;
extern template class DifferenceStage<std::uint64_t>;
extern template class DifferenceStage<std::int8_t>;
extern template class DifferenceStage<std::int16_t>;
extern template class DifferenceStage<std::int32_t>;
extern template class DifferenceStage<std::int64_t>;
extern template class DifferenceStage<std::int8_t, std::uint8_t>;
extern template class DifferenceStage<std::int16_t, std::uint16_t>;
extern template class DifferenceStage<std::int32_t, std::uint32_t>;
extern template class DifferenceStage<std::int64_t, std::uint64_t>;

}  // namespace fz
