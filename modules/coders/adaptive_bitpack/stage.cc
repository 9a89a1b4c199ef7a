#include <limits>

#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "coders/adaptive_bitpack/codec.h"
#include "core/require.h"
#include "fz/byte_io.h"

namespace fz {

namespace {

using adaptive_bitpack::BlockLayout;
using adaptive_bitpack::kMaxBlockValues;

template <class T>
BlockLayout layoutOf(const AdaptiveBitpackStage<T>& stage) {
  return {static_cast<std::uint32_t>(stage.getBlockSize()), stage.getOutlierSelection()};
}

}  // namespace

template <class T>
void AdaptiveBitpackStage<T>::setBlockSize(std::size_t n_values) {
  FZ_REQUIRE_ARG(n_values >= 1 && n_values <= kMaxBlockValues,
                 "AdaptiveBitpack: block_size must be 1 to {}, got {}", kMaxBlockValues, n_values);
  config_.block_size = static_cast<std::uint32_t>(n_values);
}

template <class T>
const ParamTable& AdaptiveBitpackStage<T>::paramTable() const {
  using S = AdaptiveBitpackStage<T>;
  static const ParamTable kTable({
      intParam<S>("block_size", 32, {1, kMaxBlockValues},
                  "values per block; each block has its own number of bit planes", &S::getBlockSize,
                  [](S& s, std::int64_t v) { s.setBlockSize(static_cast<std::size_t>(v)); }),
      boolParam<S>("outlier_selection", false,
                   "let a block store its first value apart where that is smaller",
                   &S::getOutlierSelection, &S::setOutlierSelection),
  });
  return kTable;
}

template <class T>
SimpleStage::PortBytes AdaptiveBitpackStage<T>::encodedBytes(std::size_t input_bytes) const {
  const BlockLayout layout = layoutOf(*this);
  const std::size_t n_blocks =
      bits::ceilDiv(input_bytes / sizeof(T), std::size_t{layout.block_values});
  const std::size_t block_bytes =
      layout.metaBytes() + adaptive_bitpack::maxBlockCost<T>(layout.planeBytes());
  return {n_blocks * block_bytes};
}

template <class T>
std::size_t AdaptiveBitpackStage<T>::decodedBytes(
    std::span<const std::size_t> encoded_bytes) const {
  const BlockLayout layout = layoutOf(*this);
  const std::uint64_t n_blocks =
      bits::ceilDiv(config_.n_values, std::uint64_t{layout.block_values});
  // Every block has its metadata, so this also limits what a short stream can claim.
  FZ_REQUIRE(n_blocks <= encoded_bytes[0] / layout.metaBytes(), ErrorCode::kCorrupt,
             "AdaptiveBitpack: {} values in blocks of {} need {} metadata bytes per block, the "
             "stream has {} bytes",
             config_.n_values, layout.block_values, layout.metaBytes(), encoded_bytes[0]);
  FZ_REQUIRE(n_blocks != 0 || encoded_bytes[0] == 0, ErrorCode::kCorrupt,
             "AdaptiveBitpack: {} bytes, but no values", encoded_bytes[0]);
  FZ_REQUIRE(config_.n_values <= std::numeric_limits<std::size_t>::max() / sizeof(T),
             ErrorCode::kCorrupt, "AdaptiveBitpack: {} values do not fit into memory",
             config_.n_values);
  return static_cast<std::size_t>(config_.n_values) * sizeof(T);
}

template <class T>
void AdaptiveBitpackStage<T>::requireWholeValues(std::size_t n_bytes) const {
  FZ_REQUIRE(n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "AdaptiveBitpack: input size {} is not a multiple of {} bytes", n_bytes, sizeof(T));
}

template <class T>
void AdaptiveBitpackStage<T>::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(kDataTypeOf<T>)).u8(config_.outlier_selection ? 1 : 0).zeros(2);
  out.u32(config_.block_size).u64(config_.n_values);
}

template <class T>
void AdaptiveBitpackStage<T>::readConfig(ByteReader& in) {
  const std::uint8_t type = in.u8();
  const std::uint8_t outlier_selection = in.u8();
  const std::uint16_t reserved = in.u16();
  const std::uint32_t block_size = in.u32();
  const std::uint64_t n_values = in.u64();
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "AdaptiveBitpack: config of {} bytes, expected 16",
             in.position());
  FZ_REQUIRE(type == static_cast<std::uint8_t>(kDataTypeOf<T>), ErrorCode::kCorrupt,
             "AdaptiveBitpack: config of type {} for a stage of type {}", type,
             static_cast<int>(kDataTypeOf<T>));
  FZ_REQUIRE(outlier_selection <= 1 && reserved == 0, ErrorCode::kCorrupt,
             "AdaptiveBitpack: config with outlier selection {} and reserved bytes {:#x}",
             outlier_selection, reserved);
  FZ_REQUIRE(block_size >= 1 && block_size <= kMaxBlockValues, ErrorCode::kCorrupt,
             "AdaptiveBitpack: config with block size {}, expected 1 to {}", block_size,
             kMaxBlockValues);
  config_ = {block_size, outlier_selection != 0, n_values};
}

template class AdaptiveBitpackStage<std::int16_t>;
template class AdaptiveBitpackStage<std::int32_t>;

}  // namespace fz
