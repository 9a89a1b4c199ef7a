#include "coders/bitpack/bitpack_stage.h"
#include "coders/bitpack/codec.h"
#include "core/require.h"
#include "fz/byte_io.h"

namespace fz {

template <class T>
void BitpackStage<T>::setNBits(std::uint32_t n_bits) {
  FZ_REQUIRE_ARG(bitpack::isPowerOfTwoUpTo(n_bits, bitpack::kWidth<T>),
                 "Bitpack: nbits must be a power of two from 1 to {}, not {}", bitpack::kWidth<T>,
                 n_bits);
  n_bits_ = n_bits;
}

template <class T>
std::uint32_t BitpackStage<T>::getNBits() const {
  return auto_detect_ && has_run_ ? stream_.n_bits : n_bits_;
}

template <class T>
void BitpackStage<T>::saveState() {
  saved_bits_ = n_bits_;
  saved_stream_ = stream_;
}

template <class T>
void BitpackStage<T>::restoreState() {
  n_bits_ = saved_bits_;
  stream_ = saved_stream_;
}

template <class T>
SimpleStage::PortBytes BitpackStage<T>::encodedBytes(std::size_t input_bytes) const {
  if (auto_detect_ || n_bits_ == bitpack::kWidth<T>) {
    return {input_bytes};
  }
  return {static_cast<std::size_t>(bitpack::packedBytes(input_bytes / sizeof(T), n_bits_))};
}

template <class T>
std::uint64_t BitpackStage<T>::valuesIn(std::size_t packed_bytes) const {
  const std::uint64_t most = bitpack::packedValues(packed_bytes, stream_.n_bits);
  if (!stream_.has_count) {
    FZ_REQUIRE(packed_bytes % sizeof(T) == 0, ErrorCode::kCorrupt,
               "{}: stream size {} is not a multiple of {} bytes", getName(), packed_bytes,
               sizeof(T));
    return most;
  }
  FZ_REQUIRE(stream_.n_values <= most &&
                 bitpack::packedBytes(stream_.n_values, stream_.n_bits) == packed_bytes,
             ErrorCode::kCorrupt, "{}: {} values of {} bits do not make {} bytes", getName(),
             stream_.n_values, stream_.n_bits, packed_bytes);
  return stream_.n_values;
}

template <class T>
std::size_t BitpackStage<T>::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  return static_cast<std::size_t>(valuesIn(encoded_bytes[0])) * sizeof(T);
}

template <class T>
void BitpackStage<T>::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(kDataTypeOf<T>));
  out.u8(static_cast<std::uint8_t>(stream_.n_bits)).u64(stream_.n_values);
}

template <class T>
void BitpackStage<T>::readConfig(ByteReader& in) {
  const std::size_t n_bytes = in.remaining();
  if (n_bytes == 0) {
    stream_ = {};
    return;
  }
  const std::uint8_t type = in.u8();
  const std::uint8_t n_bits = in.u8();
  const std::uint64_t n_values = in.u64();
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "{}: expected a config of 10 bytes, got {}",
             getName(), n_bytes);
  FZ_REQUIRE(type == static_cast<std::uint8_t>(kDataTypeOf<T>), ErrorCode::kCorrupt,
             "{}: expected a config for type {}, got {}", getName(),
             static_cast<unsigned>(kDataTypeOf<T>), type);
  FZ_REQUIRE(bitpack::isPowerOfTwoUpTo(n_bits, bitpack::kWidth<T>), ErrorCode::kCorrupt,
             "{}: expected a power of two up to {} as nbits in the config, got {}", getName(),
             bitpack::kWidth<T>, n_bits);
  n_bits_ = n_bits;
  stream_ = {n_bits, n_values, true};
}

// The members that other files define are instantiated there.
template class BitpackStage<std::uint8_t>;
template class BitpackStage<std::uint16_t>;
template class BitpackStage<std::uint32_t>;

}  // namespace fz
