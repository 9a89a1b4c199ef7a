#include "coders/bitpack/bitpack_stage.h"

#include <algorithm>

#include "backends/cpu/parallel_for.h"
#include "coders/bitpack/bitpack_codec.h"
#include "coders/bitpack/bitpack_cpu.h"
#include "core/require.h"
#include "fz/byte_io.h"

namespace fz {

namespace {

constexpr std::size_t kTile = bitpack::kTileValues;

std::size_t tileCount(std::size_t n_values) {
  return bits::ceilDiv(n_values, kTile);
}
std::size_t tileSize(std::size_t n_values, std::size_t tile) {
  return std::min(kTile, n_values - tile * kTile);
}

}  // namespace

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
const ParamTable& BitpackStage<T>::params() {
  using Self = BitpackStage<T>;
  static const ParamTable kTable = [] {
    Param n_bits = intParam<Self>(
        "nbits", bitpack::kWidth<T>, {1, bitpack::kWidth<T>},
        "bits per value, a power of two; values that need more are an error",
        [](const Self& s) { return s.n_bits_; },
        [](Self& s, std::int64_t v) { s.setNBits(static_cast<std::uint32_t>(v)); });
    n_bits.choices = {"1", "2", "4", "8"};
    if (sizeof(T) >= 2) {
      n_bits.choices.push_back("16");
    }
    if (sizeof(T) >= 4) {
      n_bits.choices.push_back("32");
    }
    return ParamTable({std::move(n_bits),
                       boolParam<Self>("auto_detect", false,
                                       "take the smallest nbits that holds all values of a run",
                                       &Self::isAutoDetect, &Self::setAutoDetect)});
  }();
  return kTable;
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
               "{}: {} bytes are no whole number of {}-byte values", getName(), packed_bytes,
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
std::uint32_t BitpackStage<T>::detectBits(const CpuRun& run, std::size_t n_values) {
  const std::uint8_t* in = run.inputs[0].data();
  const auto ors = tile_ors_.get<std::uint32_t>(run.pool, tileCount(n_values));
  parallelFor(run.executor, ors.size(), [&](std::size_t tile) {
    ors[tile] = bitpack::orOf(in + tile * kTile * sizeof(T), tileSize(n_values, tile), sizeof(T));
  });
  const std::uint32_t any = bitpack::orOf(ors.data(), ors.size(), sizeof(std::uint32_t));
  return bitpack::bitsFor(any, bitpack::kWidth<T>);
}

template <class T>
void BitpackStage<T>::encodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  FZ_REQUIRE(in.size() % sizeof(T) == 0, ErrorCode::kBadSize,
             "{}: input of {} bytes is no whole number of {}-byte values", getName(), in.size(),
             sizeof(T));
  const std::size_t n_values = in.size() / sizeof(T);
  const std::uint32_t n_bits = auto_detect_ ? detectBits(run, n_values) : n_bits_;
  stream_ = {n_bits, n_values, true};
  has_run_ = true;

  const std::size_t tile_bytes = kTile / 8 * n_bits;
  const std::uint64_t n_bytes = bitpack::packedBytes(n_values, n_bits);
  if (out.size() < n_bytes) {
    requestOutputBytes(0, static_cast<std::size_t>(n_bytes));
    return;
  }
  const T* values = reinterpret_cast<const T*>(in.data());
  FirstIndex too_wide;
  parallelFor(run.executor, tileCount(n_values), [&](std::size_t tile) {
    const T* from = values + tile * kTile;
    const std::size_t n = tileSize(n_values, tile);
    const std::uint32_t any =
        bitpack::packValues(from, n, {sizeof(T), n_bits}, out.data() + tile * tile_bytes);
    if (!bitpack::fits(any, n_bits)) {
      const T* first = std::find_if(from, from + n, [&](T v) { return !bitpack::fits(v, n_bits); });
      too_wide.note(static_cast<std::uint64_t>(first - values));
    }
  });
  FZ_REQUIRE(!too_wide.found(), ErrorCode::kBoundViolation,
             "{}: value {} at index {} does not fit into {} bits", getName(),
             values[too_wide.value()], too_wide.value(), n_bits);
  setActualBytes(0, static_cast<std::size_t>(n_bytes));
}

template <class T>
void BitpackStage<T>::decodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  const auto n_values = static_cast<std::size_t>(valuesIn(in.size()));
  FZ_REQUIRE(out.size() / sizeof(T) >= n_values, ErrorCode::kBufferTooSmall,
             "{}: room for {} values needed, {} bytes came", getName(), n_values, out.size());
  const std::size_t tile_bytes = kTile / 8 * stream_.n_bits;
  parallelFor(run.executor, tileCount(n_values), [&](std::size_t tile) {
    bitpack::unpackValues(in.data() + tile * tile_bytes, tileSize(n_values, tile),
                          {sizeof(T), stream_.n_bits}, out.data() + tile * kTile * sizeof(T));
  });
  setActualBytes(0, n_values * sizeof(T));
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
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "{}: config of 10 bytes needed, {} came", getName(),
             n_bytes);
  FZ_REQUIRE(type == static_cast<std::uint8_t>(kDataTypeOf<T>), ErrorCode::kCorrupt,
             "{}: config for type {} needed, {} came", getName(),
             static_cast<unsigned>(kDataTypeOf<T>), type);
  FZ_REQUIRE(bitpack::isPowerOfTwoUpTo(n_bits, bitpack::kWidth<T>), ErrorCode::kCorrupt,
             "{}: config with a power of two up to {} as nbits needed, {} came", getName(),
             bitpack::kWidth<T>, n_bits);
  n_bits_ = n_bits;
  stream_ = {n_bits, n_values, true};
}

template class BitpackStage<std::uint8_t>;
template class BitpackStage<std::uint16_t>;
template class BitpackStage<std::uint32_t>;

namespace bitpack {

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<BitpackStage>(types, BitpackTypes{});
}

StageTypes typesFromConfig(ByteView config) {
  return {config.empty() ? DataType::UINT16 : static_cast<DataType>(config[0])};
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 7,
      .name = "Bitpack",
      .category = "coder",
      .summary = "the low bits of every value, the same number for all",
      .type_keys = {{"input_type", DataType::UINT16}},
      .type_combinations = combinationsOf(BitpackTypes{}),
      .aliases = {"bpack"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &BitpackStage<std::uint16_t>::params,
      .adjust_config_defaults = nullptr,
  };
  return kDescriptor;
}

}  // namespace bitpack
}  // namespace fz
