#include <algorithm>

#include "coders/huffman/codec.h"
#include "coders/huffman/huffman_stage.h"
#include "coders/huffman/stream.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "shared/bits.h"

namespace fz {

using namespace huffman;  // NOLINT: this file is the stage's own

namespace {

/// A tree deeper than kMaxCodeBits needs at least this many values (the Fibonacci number F(30)):
/// below, code lengths are optimal and their sum at most that of a fixed-length code.
constexpr std::uint64_t kFirstLimitedCount = 832040;

/// Bytes of a stream whose codes take bits_per_value on average.
std::size_t blobBytes(std::uint64_t n_values,
                      std::uint64_t bits_per_value,
                      const BlobHeader& shape,
                      std::size_t value_bytes) {
  BlobHeader header = shape;
  header.n_partitions = bits::ceilDiv<std::uint64_t>(n_values, shape.partition_values);
  header.n_words = n_values / 32 * bits_per_value + bits_per_value + header.n_partitions;
  return static_cast<std::size_t>(layoutOf(header, value_bytes).end);
}

/// Length of a fixed-length code for so many values of a book.
std::uint64_t fixedBits(std::uint64_t n_values, std::uint32_t bklen) {
  const auto n_symbols = std::min<std::uint64_t>(n_values, bklen);
  return std::max<std::uint64_t>(1, bits::bitWidth(n_symbols - 1));
}

}  // namespace

template <class T>
void HuffmanStage<T>::setBklen(std::uint32_t bklen) {
  FZ_REQUIRE_ARG(bklen >= 1 && bklen <= kMaxBklen, "Huffman: bklen must be 1 to {}, not {}",
                 +kMaxBklen, bklen);
  bklen_ = bklen;
}

template <class T>
void HuffmanStage<T>::setEncodeMode(HuffmanEncodeMode mode) {
  FZ_REQUIRE_ARG(mode == HuffmanEncodeMode::Coarse || mode == HuffmanEncodeMode::Fine,
                 "Huffman: encode mode must be Coarse or Fine, not {}", static_cast<int>(mode));
  mode_ = mode;
}

template <class T>
std::uint32_t HuffmanStage<T>::partitionValues() const {
  return mode_ == HuffmanEncodeMode::Fine ? kFineValues : kCoarseValues;
}

template <class T>
SimpleStage::PortBytes HuffmanStage<T>::encodedBytes(std::size_t input_bytes) const {
  const std::uint64_t n = input_bytes / sizeof(T);
  const BlobHeader shape{.bklen = bklen_, .partition_values = partitionValues()};
  return {n == 0 ? 0 : blobBytes(n, fixedBits(n, bklen_), shape, sizeof(T))};
}

template <class T>
SimpleStage::PortBytes HuffmanStage<T>::maxEncodedBytes(std::size_t input_bytes) const {
  const std::uint64_t n = input_bytes / sizeof(T);
  const BlobHeader shape{.bklen = bklen_, .partition_values = partitionValues()};
  const std::uint64_t n_bits = n < kFirstLimitedCount ? fixedBits(n, bklen_) : kMaxCodeBits;
  return {n == 0 ? 0 : blobBytes(n, n_bits, shape, sizeof(T))};
}

template <class T>
std::size_t HuffmanStage<T>::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  const std::uint64_t n_bytes = encoded_bytes[0];
  FZ_REQUIRE(count_.known, ErrorCode::kCorrupt,
             "Huffman: the config with the number of values is missing");
  if (count_.n_values == 0) {
    FZ_REQUIRE(n_bytes == 0, ErrorCode::kCorrupt, "Huffman: {} bytes, but no values", n_bytes);
    return 0;
  }
  // At least one bit per value besides header and book.
  const std::uint64_t fixed = kHeaderBytes + kBookTableBytes + std::uint64_t{sizeof(T)} * bklen_;
  FZ_REQUIRE(n_bytes > fixed && count_.n_values <= 8 * (n_bytes - fixed), ErrorCode::kCorrupt,
             "Huffman: {} bytes cannot hold {} values with a book of {}", n_bytes, count_.n_values,
             bklen_);
  return static_cast<std::size_t>(count_.n_values) * sizeof(T);
}

template <class T>
void HuffmanStage<T>::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(kDataTypeOf<T>));
  out.u16(static_cast<std::uint16_t>(bklen_)).u64(count_.n_values);  // 65536 is stored as 0
}

template <class T>
void HuffmanStage<T>::readConfig(ByteReader& in) {
  if (in.remaining() == 0) {  // a file without a config means uint16; decoding misses the count,
    bklen_ = kDefaultBklen;   // whatever the frame before had
    count_ = {};
    return;
  }
  const std::uint8_t type = in.u8();
  const std::uint32_t bklen = in.u16();
  const std::uint64_t n_values = in.u64();
  FZ_REQUIRE(!in.failed() && type == static_cast<std::uint8_t>(kDataTypeOf<T>), ErrorCode::kCorrupt,
             "Huffman: expected a config of 11 bytes for {}, got type {}",
             dataTypeToString(kDataTypeOf<T>), type);
  bklen_ = bklen == 0 ? kMaxBklen : bklen;
  count_ = {.n_values = n_values, .known = true};
}

// The members that other files define are instantiated there.
template class HuffmanStage<std::uint8_t>;
template class HuffmanStage<std::uint16_t>;
template class HuffmanStage<std::uint32_t>;

}  // namespace fz
