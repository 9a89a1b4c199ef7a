#include <bit>
#include <limits>

#include "backends/cpu/delta_cpu.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "predictors/diff/diff.h"
#include "predictors/diff/diff_cpu.h"

namespace fz {

namespace {

constexpr std::size_t kMaxChunkBytes = std::size_t{1} << 31;  // the config has 32 bits for it

template <class T>
bool isChunkSize(std::size_t n_bytes) {
  return n_bytes == 0 || (n_bytes % sizeof(T) == 0 && std::has_single_bit(n_bytes / sizeof(T)) &&
                          n_bytes <= kMaxChunkBytes);
}

template <class T>
std::span<const T> valuesOf(ByteView bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// The unsigned integer of the same width; of no use for floats.
template <class T>
using UnsignedOf = std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>;

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
  FZ_REQUIRE(n_lost_ == 0, ErrorCode::kBoundViolation,
             "Difference: sums of {} differences must restore every value, but {} of {} values "
             "would change, the first at index {}",
             dataTypeToString(kDataTypeOf<T>), n_lost_, n_values_, first_lost_);
}

template <class T, class TOut>
std::size_t DifferenceStage<T, TOut>::decodedBytes(
    std::span<const std::size_t> encoded_bytes) const {
  FZ_REQUIRE(encoded_bytes[0] % sizeof(T) == 0, ErrorCode::kCorrupt,
             "Difference: {} bytes are no whole number of {}-byte values", encoded_bytes[0],
             sizeof(T));
  return encoded_bytes[0];
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::encodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  n_lost_ = 0;
  n_values_ = in.size() / sizeof(T);
  FZ_REQUIRE(in.size() % sizeof(T) == 0, ErrorCode::kBadSize,
             "Difference: input of {} bytes is no whole number of {}-byte values", in.size(),
             sizeof(T));
  FZ_ASSERT(run.outputs[0].size() >= in.size());
  const std::size_t chunk = chunk_bytes_ / sizeof(T);
  if constexpr (std::is_floating_point_v<T>) {
    const diff::Losses losses = diff::encodeFloats(run.executor, valuesOf<T>(in), chunk,
                                                   reinterpret_cast<T*>(run.outputs[0].data()));
    n_lost_ = losses.n_values;
    first_lost_ = losses.first_index;
  } else {
    using U = UnsignedOf<T>;
    const delta::Code code =
        std::is_same_v<T, TOut> ? delta::Code::kPlain : delta::Code::kNegabinary;
    delta::encodeBlocks(run.executor, valuesOf<U>(in), chunk, code,
                        reinterpret_cast<U*>(run.outputs[0].data()));
  }
  setActualBytes(0, in.size());
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::decodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  n_lost_ = 0;
  const std::size_t n_bytes = in.size();
  FZ_REQUIRE(n_bytes % sizeof(T) == 0, ErrorCode::kCorrupt,
             "Difference: {} bytes are no whole number of {}-byte values", n_bytes, sizeof(T));
  FZ_ASSERT(run.outputs[0].size() >= n_bytes);
  const std::size_t chunk = chunk_bytes_ / sizeof(T);
  if constexpr (std::is_floating_point_v<T>) {
    diff::decodeFloats(run.executor, valuesOf<T>(in), chunk,
                       reinterpret_cast<T*>(run.outputs[0].data()));
  } else {
    using U = UnsignedOf<T>;
    const delta::Code code =
        std::is_same_v<T, TOut> ? delta::Code::kPlain : delta::Code::kNegabinary;
    const std::size_t n_tiles = n_bytes / sizeof(T) / delta::kTileValues + 1;
    delta::decodeBlocks(run.executor, valuesOf<U>(in), chunk, code,
                        tile_sums_.get<U>(run.pool, n_tiles),
                        reinterpret_cast<U*>(run.outputs[0].data()));
  }
  setActualBytes(0, n_bytes);
}

template <class T, class TOut>
TileOp DifferenceStage<T, TOut>::cpuTileOp() const {
  if (std::is_floating_point_v<T>) {
    return NoOp{"must see all sums of floats before it can say that they are exact"};
  }
  if (chunk_bytes_ == 0) {
    return NoOp{"has one chunk, as long as the data"};
  }
  return RowsOp{.unit_values = static_cast<std::uint32_t>(chunk_bytes_ / sizeof(T))};
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::beginTiles(const CpuRun& run, const TileCut& /*cut*/) {
  const std::size_t n_bytes = run.inputs[0].size();
  n_lost_ = 0;
  n_values_ = n_bytes / sizeof(T);
  FZ_REQUIRE(isInverse() || n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "Difference: input of {} bytes is no whole number of {}-byte values", n_bytes,
             sizeof(T));
  FZ_REQUIRE(n_bytes % sizeof(T) == 0, ErrorCode::kCorrupt,
             "Difference: {} bytes are no whole number of {}-byte values", n_bytes, sizeof(T));
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::encodeTile(const TileRange& range, const void* in, void* out) {
  using U = UnsignedOf<T>;
  const delta::Code code = std::is_same_v<T, TOut> ? delta::Code::kPlain : delta::Code::kNegabinary;
  delta::kernels<U>(code).encode(static_cast<const U*>(in), range.n_values,
                                 chunk_bytes_ / sizeof(T), 0, static_cast<U*>(out));
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::decodeTile(const TileRange& range, const void* in, void* out) {
  using U = UnsignedOf<T>;
  const delta::Code code = std::is_same_v<T, TOut> ? delta::Code::kPlain : delta::Code::kNegabinary;
  delta::kernels<U>(code).decode(static_cast<const U*>(in), range.n_values,
                                 chunk_bytes_ / sizeof(T), 0, static_cast<U*>(out));
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::endTiles(const CpuRun& run) {
  setActualBytes(0, run.inputs[0].size());
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
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "Difference: config of {} bytes, 6 needed",
             in.position());
  FZ_REQUIRE(isChunkSize<T>(chunk_bytes), ErrorCode::kCorrupt,
             "Difference: chunk of {} bytes is no power of two of {}-byte values", chunk_bytes,
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

namespace diff {

namespace {

using SameTypes = TypeList<float,
                           double,
                           std::uint8_t,
                           std::uint16_t,
                           std::uint32_t,
                           std::uint64_t,
                           std::int8_t,
                           std::int16_t,
                           std::int32_t,
                           std::int64_t>;
using SignedTypes = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  std::unique_ptr<Stage> made;
  if (types.size() != 2) {
    return made;
  }
  // A configuration file may leave the output type out: it is then that of the input.
  const DataType output = types[1] == DataType::UNKNOWN ? types[0] : types[1];
  forEachType(SameTypes{}, [&]<class T>() {
    if (types[0] == kDataTypeOf<T> && output == kDataTypeOf<T>) {
      made = std::make_unique<DifferenceStage<T>>();
    }
  });
  forEachType(SignedTypes{}, [&]<class T>() {
    using U = std::make_unsigned_t<T>;
    if (types[0] == kDataTypeOf<T> && output == kDataTypeOf<U>) {
      made = std::make_unique<DifferenceStage<T, U>>();
    }
  });
  return made;
}

std::vector<std::vector<DataType>> combinations() {
  std::vector<std::vector<DataType>> all;
  forEachType(SameTypes{}, [&]<class T>() { all.push_back({kDataTypeOf<T>, kDataTypeOf<T>}); });
  forEachType(SignedTypes{}, [&]<class T>() {
    all.push_back({kDataTypeOf<T>, kDataTypeOf<std::make_unsigned_t<T>>});
  });
  return all;
}

StageTypes typesFromConfig(ByteView config) {
  if (config.empty()) {
    return {DataType::FLOAT32, DataType::FLOAT32};
  }
  const auto type = static_cast<DataType>(config[0]);
  DataType output = type;  // whatever is no negabinary pair goes by the first type alone
  forEachType(SignedTypes{}, [&]<class T>() {
    constexpr DataType kUnsigned = kDataTypeOf<std::make_unsigned_t<T>>;
    if (config.size() > 1 && type == kDataTypeOf<T> &&
        config[1] == static_cast<std::uint8_t>(kUnsigned)) {
      output = kUnsigned;
    }
  });
  return {type, output};
}

const ParamTable& params() {
  static const DifferenceStage<float> kStage;
  return kStage.paramTable();
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 2,
      .name = "Difference",
      .category = "predictor",
      .summary = "each value minus its left neighbour, optionally in negabinary",
      .type_keys = {{"input_type", DataType::FLOAT32}, {"output_type", DataType::UNKNOWN}},
      .type_combinations = combinations(),
      .aliases = {"diff"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
  };
  return kDescriptor;
}

}  // namespace diff
}  // namespace fz
