#include <bit>

#include "core/require.h"
#include "fz/byte_io.h"
#include "predictors/diff/diff.h"

namespace fz {

namespace {

constexpr std::size_t kMaxChunkBytes = std::size_t{1} << 31;  // the config has 32 bits for it

template <class T>
bool isChunkSize(std::size_t n_bytes) {
  return n_bytes == 0 || (n_bytes % sizeof(T) == 0 && std::has_single_bit(n_bytes / sizeof(T)) &&
                          n_bytes <= kMaxChunkBytes);
}

}  // namespace

template <class T, class TOut>
void DifferenceStage<T, TOut>::setChunkSize(std::size_t n_bytes) {
  FZ_REQUIRE_ARG(isChunkSize<T>(n_bytes),
                 "Difference: chunk_size must be 0 or hold a power of two of {}-byte values and "
                 "be at most {} bytes, not {}",
                 sizeof(T), kMaxChunkBytes, n_bytes);
  chunk_bytes_ = n_bytes;
}

template <class T, class TOut>
const ParamTable& DifferenceStage<T, TOut>::paramTable() const {
  static const ParamTable kTable({intParam<DifferenceStage>(
      "chunk_size", 0, {0, static_cast<std::int64_t>(kMaxChunkBytes)},
      "bytes per chunk, a power of two of values; 0 for one chunk", &DifferenceStage::getChunkSize,
      [](DifferenceStage& stage, std::int64_t n) {
        stage.setChunkSize(static_cast<std::size_t>(n));
      })});
  return kTable;
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::checkResult() const {
  FZ_REQUIRE(
      n_lost_ == 0, ErrorCode::kBoundViolation,
      "Difference: sums of {} differences would change {} of {} values, the first at index {}",
      dataTypeToString(kDataTypeOf<T>), n_lost_, n_values_, first_lost_);
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::requireWholeValues(std::size_t n_bytes) const {
  FZ_REQUIRE(n_bytes % sizeof(T) == 0, isInverse() ? ErrorCode::kCorrupt : ErrorCode::kBadSize,
             "Difference: input size {} is not a multiple of {} bytes", n_bytes, sizeof(T));
}

template <class T, class TOut>
std::size_t DifferenceStage<T, TOut>::decodedBytes(
    std::span<const std::size_t> encoded_bytes) const {
  FZ_REQUIRE(encoded_bytes[0] % sizeof(T) == 0, ErrorCode::kCorrupt,
             "Difference: input size {} is not a multiple of {} bytes", encoded_bytes[0],
             sizeof(T));
  return encoded_bytes[0];
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(kDataTypeOf<T>))
      .u8(static_cast<std::uint8_t>(kDataTypeOf<TOut>));
  out.u32(static_cast<std::uint32_t>(chunk_bytes_));
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::readConfig(ByteReader& in) {
  chunk_bytes_ = 0;
  if (in.remaining() <= 1) {
    return;  // absent, or the old form with the type alone: one chunk
  }
  in.skip(2);  // the types, which chose this instantiation
  const std::uint32_t chunk_bytes = in.u32();
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "Difference: config of {} bytes, expected 6",
             in.position());
  FZ_REQUIRE(isChunkSize<T>(chunk_bytes), ErrorCode::kCorrupt,
             "Difference: chunk of {} bytes is not a power of two of {}-byte values", chunk_bytes,
             sizeof(T));
  chunk_bytes_ = chunk_bytes;
}

template class DifferenceStage<float>;
template class DifferenceStage<double>;
template class DifferenceStage<std::uint8_t>;
template class DifferenceStage<std::uint16_t>;
template class DifferenceStage<std::uint32_t>;
template class DifferenceStage<std::uint64_t>;
template class DifferenceStage<std::int8_t>;
template class DifferenceStage<std::int16_t>;
template class DifferenceStage<std::int32_t>;
template class DifferenceStage<std::int64_t>;
template class DifferenceStage<std::int8_t, std::uint8_t>;
template class DifferenceStage<std::int16_t, std::uint16_t>;
template class DifferenceStage<std::int32_t, std::uint32_t>;
template class DifferenceStage<std::int64_t, std::uint64_t>;

}  // namespace fz
