#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"

#include <limits>

#include "coders/adaptive_bitpack/adaptive_bitpack_cpu.h"
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
AdaptiveBitpackStage<T>::AdaptiveBitpackStage()
    : scratch_(std::make_unique<adaptive_bitpack::CpuScratch>()) {
}

template <class T>
AdaptiveBitpackStage<T>::~AdaptiveBitpackStage() = default;

template <class T>
void AdaptiveBitpackStage<T>::setBlockSize(std::size_t n_values) {
  FZ_REQUIRE_ARG(n_values >= 1 && n_values <= kMaxBlockValues,
                 "AdaptiveBitpack: block_size must be 1 to {}, {} came", kMaxBlockValues, n_values);
  state_.block_size = static_cast<std::uint32_t>(n_values);
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
  const std::uint64_t n_blocks = bits::ceilDiv(state_.n_values, std::uint64_t{layout.block_values});
  // Every block has its metadata, so this also limits what a short stream can claim.
  FZ_REQUIRE(n_blocks <= encoded_bytes[0] / layout.metaBytes(), ErrorCode::kCorrupt,
             "AdaptiveBitpack: {} values in blocks of {} need {} metadata bytes per block, the "
             "stream has {} bytes",
             state_.n_values, layout.block_values, layout.metaBytes(), encoded_bytes[0]);
  FZ_REQUIRE(n_blocks != 0 || encoded_bytes[0] == 0, ErrorCode::kCorrupt,
             "AdaptiveBitpack: {} bytes for no values", encoded_bytes[0]);
  FZ_REQUIRE(state_.n_values <= std::numeric_limits<std::size_t>::max() / sizeof(T),
             ErrorCode::kCorrupt, "AdaptiveBitpack: {} values do not fit into memory",
             state_.n_values);
  return static_cast<std::size_t>(state_.n_values) * sizeof(T);
}

template <class T>
void AdaptiveBitpackStage<T>::requireWholeValues(std::size_t n_bytes) const {
  FZ_REQUIRE(n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "AdaptiveBitpack: input of {} bytes is no whole number of {}-byte values", n_bytes,
             sizeof(T));
}

template <class T>
void AdaptiveBitpackStage<T>::encodeCpu(const CpuRun& run) {
  const std::size_t n_bytes = run.inputs[0].size();
  requireWholeValues(n_bytes);
  state_.n_values = n_bytes / sizeof(T);
  if (n_bytes == 0) {
    return setActualBytes(0, 0);
  }
  const std::size_t archive_bytes =
      adaptive_bitpack::encodeArchive<T>(run, layoutOf(*this), *scratch_);
  if (archive_bytes == 0) {
    return requestOutputBytes(0, encodedBytes(n_bytes)[0]);
  }
  setActualBytes(0, archive_bytes);
}

template <class T>
void AdaptiveBitpackStage<T>::decodeCpu(const CpuRun& run) {
  const std::size_t encoded_bytes[] = {run.inputs[0].size()};
  const std::size_t n_bytes = decodedBytes(encoded_bytes);
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "AdaptiveBitpack: decoding needs {} bytes, {} came", n_bytes, run.outputs[0].size());
  if (n_bytes != 0) {
    adaptive_bitpack::decodeArchive<T>(run, layoutOf(*this), n_bytes / sizeof(T), *scratch_);
  }
  setActualBytes(0, n_bytes);
}

template <class T>
TileOp AdaptiveBitpackStage<T>::cpuTileOp() const {
  return CoderOp{.tile_bytes = static_cast<std::uint32_t>(state_.block_size * sizeof(T)),
                 .value_bytes = sizeof(T)};
}

template <class T>
void AdaptiveBitpackStage<T>::beginTiles(const CpuRun& run, const TileCut& cut) {
  cut_ = cut;
  const std::size_t n_bytes = run.inputs[0].size();
  if (!isInverse()) {
    requireWholeValues(n_bytes);
    state_.n_values = n_bytes / sizeof(T);
    FZ_ASSERT(run.outputs[0].size() >= encodedBytes(n_bytes)[0]);
    archive_ = run.outputs[0].data();
    return;
  }
  const std::size_t encoded_bytes[] = {n_bytes};
  stream_ = run.inputs[0];
  if (decodedBytes(encoded_bytes) != 0) {
    tile_at_ =
        adaptive_bitpack::checkedOffsets<T>(run, layoutOf(*this), state_.n_values,
                                            cut.tile_values / state_.block_size, scratch_->sizes);
  }
}

template <class T>
std::size_t AdaptiveBitpackStage<T>::payloadOffset() const {
  return bits::ceilDiv<std::size_t>(state_.n_values, state_.block_size) *
         layoutOf(*this).metaBytes();
}

template <class T>
std::size_t AdaptiveBitpackStage<T>::maxTileBytes() const {
  const BlockLayout layout = layoutOf(*this);
  return cut_.tile_values / state_.block_size *
             adaptive_bitpack::maxBlockCost<T>(layout.planeBytes()) +
         adaptive_bitpack::kEncodeSlackBytes;
}

template <class T>
std::size_t AdaptiveBitpackStage<T>::encodeTile(const TileRange& range,
                                                const void* in,
                                                std::uint8_t* out) {
  const BlockLayout layout = layoutOf(*this);
  return adaptive_bitpack::kernelsFor<T>().encode(
      static_cast<const T*>(in), range.n_values, layout,
      archive_ + range.first / state_.block_size * layout.metaBytes(), out);
}

template <class T>
void AdaptiveBitpackStage<T>::decodeTile(const TileRange& range, void* out) {
  const BlockLayout layout = layoutOf(*this);
  const std::size_t tile = range.first / cut_.tile_values;
  adaptive_bitpack::kernelsFor<T>().decode(
      stream_.data() + range.first / state_.block_size * layout.metaBytes(),
      stream_.subspan(payloadOffset() + tile_at_[tile]), range.n_values, layout,
      static_cast<T*>(out));
}

template <class T>
void AdaptiveBitpackStage<T>::endTiles(const CpuRun& /*run*/) {
  setActualBytes(0, isInverse() ? static_cast<std::size_t>(state_.n_values) * sizeof(T)
                                : payloadOffset() + static_cast<std::size_t>(payloadBytes()));
}

template <class T>
void AdaptiveBitpackStage<T>::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(kDataTypeOf<T>)).u8(state_.outlier_selection ? 1 : 0).zeros(2);
  out.u32(state_.block_size).u64(state_.n_values);
}

template <class T>
void AdaptiveBitpackStage<T>::readConfig(ByteReader& in) {
  const std::uint8_t type = in.u8();
  const std::uint8_t outlier_selection = in.u8();
  const std::uint16_t reserved = in.u16();
  const std::uint32_t block_size = in.u32();
  const std::uint64_t n_values = in.u64();
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "AdaptiveBitpack: config of {} bytes, 16 needed",
             in.position());
  FZ_REQUIRE(type == static_cast<std::uint8_t>(kDataTypeOf<T>), ErrorCode::kCorrupt,
             "AdaptiveBitpack: config of type {} for a stage of type {}", type,
             static_cast<int>(kDataTypeOf<T>));
  FZ_REQUIRE(outlier_selection <= 1 && reserved == 0, ErrorCode::kCorrupt,
             "AdaptiveBitpack: config with outlier selection {} and reserved bytes {:#x}",
             outlier_selection, reserved);
  FZ_REQUIRE(block_size >= 1 && block_size <= kMaxBlockValues, ErrorCode::kCorrupt,
             "AdaptiveBitpack: config with block size {}, 1 to {} needed", block_size,
             kMaxBlockValues);
  state_ = {block_size, outlier_selection != 0, n_values};
}

template class AdaptiveBitpackStage<std::int16_t>;
template class AdaptiveBitpackStage<std::int32_t>;

namespace adaptive_bitpack {

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<AdaptiveBitpackStage>(types, AdaptiveBitpackTypes{});
}

StageTypes typesFromConfig(ByteView config) {
  if (config.empty()) {
    return {};  // the block size and the number of values are nowhere else
  }
  return {static_cast<DataType>(config[0])};
}

const ParamTable& params() {
  static const AdaptiveBitpackStage<std::int32_t> kStage;
  return kStage.paramTable();
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 24,
      .name = "AdaptiveBitpack",
      .category = "coder",
      .summary = "signed integers in blocks, each with the bit planes its largest magnitude needs",
      .type_keys = {{"input_type", DataType::INT32}},
      .type_combinations = combinationsOf(AdaptiveBitpackTypes{}),
      .aliases = {"abp"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .graph_compatible_forward = true,
      .graph_compatible_inverse = true,
  };
  return kDescriptor;
}

}  // namespace adaptive_bitpack
}  // namespace fz
