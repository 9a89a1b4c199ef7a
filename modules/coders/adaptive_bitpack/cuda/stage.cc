#include <algorithm>

#include <cuda_runtime_api.h>

#include "backends/cuda/launch.h"
#include "backends/cuda/padding.h"
#include "backends/cuda/zeroed_scratch.h"
#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "coders/adaptive_bitpack/cuda/kernels.h"
#include "core/cuda_part_maker.h"
#include "core/require.h"
#include "mem/scratch.h"

namespace fz::adaptive_bitpack {

namespace {

template <class T>
BlockLayout layoutOf(const AdaptiveBitpackStage<T>& stage) {
  return {static_cast<std::uint32_t>(stage.getBlockSize()), stage.getOutlierSelection()};
}

}  // namespace

template <class T>
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(AdaptiveBitpackStage<T>& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override { return {{8, 8, kCountSlot}}; }  // SPEC: n
  std::optional<std::uint32_t> quietValues() const override { return 0; }
  TileOp tileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override { return "coders/adaptive_bitpack/cuda/op/op.cuh"; }
  void beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) override;
  void endGroup(const cuda::Call& call, const GroupRun& group) override;

 private:
  /// Arguments of the register kernels, which leave control_ at zero.
  void prepareEncode(const cuda::Call& call, std::size_t n_tiles, GroupsArgs& args);
  CudaDecode measure(const cuda::Call& call, std::size_t& n_values);

  AdaptiveBitpackStage<T>& stage_;
  ZeroedScratch control_;  ///< words by which the thread blocks of a kernel talk to each other
  Scratch states_;         ///< of the encoder for any block size
  Scratch offsets_;
};

template <class T>
void CudaSide<T>::prepareEncode(const cuda::Call& call, std::size_t n_tiles, GroupsArgs& args) {
  std::uint8_t* words = control_.get(call, kControlBytes + 2 * n_tiles * sizeof(std::uint64_t));
  args.record = call.record;
  args.in_size = call.inputs[0].size;
  args.out = call.outputs[0].data;
  args.capacity_bytes = call.outputs[0].capacity_bytes;
  args.block_values = layoutOf(stage_).block_values;
  args.control = reinterpret_cast<EncodeControl*>(words);
  args.sums = reinterpret_cast<std::uint64_t*>(words + kControlBytes);
  args.bases = args.sums + n_tiles;
}

template <class T>
void CudaSide<T>::encode(const cuda::Call& call) {
  const CudaInput& in = call.inputs[0];
  const CudaOutput& out = call.outputs[0];
  if (in.size.isExact()) {
    stage_.requireWholeValues(in.size.n_bytes);
  }
  const BlockLayout layout = layoutOf(stage_);
  const std::size_t n_values = in.size.n_bytes / sizeof(T);
  if (isGroupLayout(layout)) {
    const GroupShape shape = groupsEncoderShape<T>(layout.outlier_selection);
    GroupsArgs args = {};
    prepareEncode(call, bits::ceilDiv<std::size_t>(n_values, shape.tile_values), args);
    args.in = in.data;
    launchEncodeGroups<T>(args, layout.outlier_selection, n_values, call);
    control_.recordZero();
    return;
  }
  const std::size_t n_tiles = std::max<std::size_t>(1, tileCount(n_values, layout));
  const auto states = states_.get<std::uint64_t>(call.pool, n_tiles);
  FZ_CUDA_CHECK(cudaMemsetAsync(states.data(), 0, states.size_bytes(), call.stream));
  const CudaEncode args{.in = in.data,
                        .in_size = in.size,
                        .layout = layout,
                        .out = out.data,
                        .capacity_bytes = out.capacity_bytes,
                        .record = call.record,
                        .states = states.data(),
                        .tile_blocks_log2 = tileBlocksLog2(layout)};
  launchEncodeAny<T>(args, n_tiles, call);
}

/// Checks the stream and finds the offsets; n_values is the most that can come.
template <class T>
CudaDecode CudaSide<T>::measure(const cuda::Call& call, std::size_t& n_values) {
  const CudaInput& in = call.inputs[0];
  const CudaOutput& out = call.outputs[0];
  if (in.size.isExact()) {
    const std::size_t encoded_bytes[] = {in.size.n_bytes};
    const std::size_t n_bytes = stage_.decodedBytes(encoded_bytes);
    FZ_REQUIRE(out.capacity_bytes >= n_bytes, ErrorCode::kBufferTooSmall,
               "AdaptiveBitpack: decoding needs {} bytes, got {}", n_bytes, out.capacity_bytes);
  }
  // The number of values is read on the device, so that a graph can be replayed with another one.
  const BlockLayout layout = layoutOf(stage_);
  n_values = std::min<std::size_t>(out.capacity_bytes / sizeof(T),
                                   in.size.n_bytes / layout.metaBytes() * layout.block_values);
  const std::size_t n_tiles = tileCount(n_values, layout);
  const std::size_t n_measure_tiles = std::max<std::size_t>(
      1, bits::ceilDiv(bits::ceilDiv(n_values, std::size_t{layout.block_values}),
                       std::size_t{kCudaThreads} * kMeasureBlocks));
  std::uint8_t* words = control_.get(call, (n_measure_tiles + 1) * sizeof(std::uint64_t));
  const CudaDecode args{
      .in = in.data,
      .in_size = in.size,
      .layout = layout,
      .out = out.data,
      .capacity_bytes = out.capacity_bytes,
      .size_known = out.size_known,
      .record = call.record,
      .states = reinterpret_cast<std::uint64_t*>(words),
      .offsets = offsets_.get<std::uint64_t>(call.pool, std::max<std::size_t>(1, n_tiles)).data(),
      .tile_blocks_log2 = tileBlocksLog2(layout)};
  launchMeasure<T>(args, n_measure_tiles, call);
  control_.recordZero();
  return args;
}

template <class T>
void CudaSide<T>::decode(const cuda::Call& call) {
  std::size_t n_values = 0;
  const CudaDecode args = measure(call, n_values);
  if (n_values == 0) {
    return;
  }
  if (isGroupLayout(args.layout)) {
    launchDecodeGroups<T>(groupsArgs(args), args.layout.outlier_selection, n_values, call);
  } else {
    launchDecodeAny<T>(args, tileCount(n_values, args.layout), call);
  }
}

template <class T>
TileOp CudaSide<T>::tileOp() const {
  const BlockLayout layout = layoutOf(stage_);
  if (!isGroupLayout(layout)) {
    return NoOp{"has a tile operation for blocks of 32, 64, 128 ... 1024 values only"};
  }
  return CoderOp{
      .tile_bytes = kWarpValues * sizeof(T),
      .value_bytes = sizeof(T),
      .warp_bytes = kWarpValues * sizeof(T),
      .variant = std::uint64_t{layout.block_values} << 8 | (layout.outlier_selection ? 1u : 0u)};
}

template <class T>
std::string CudaSide<T>::tileOpType() const {
  const BlockLayout layout = layoutOf(stage_);
  return fmt::format("fz::adaptive_bitpack::GroupsOp<std::{}_t, {}, {}>",
                     dataTypeToString(kDataTypeOf<T>), layout.outlier_selection,
                     groupsOf(layout.block_values));
}

template <class T>
void CudaSide<T>::beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) {
  if (stage_.isInverse()) {
    std::size_t n_values = 0;
    GroupsArgs own = groupsArgs(measure(call, n_values));
    cuda::clearPadding(own);
    args.add(own);
  } else {
    GroupsArgs own = {};
    prepareEncode(call, group.n_tiles, own);
    cuda::clearPadding(own);
    args.add(own);
  }
}

template <class T>
void CudaSide<T>::endGroup(const cuda::Call& /*call*/, const GroupRun& /*group*/) {
  if (!stage_.isInverse()) {
    control_.recordZero();
  }
}

template <class T>
void CudaSide<T>::finishEncode(const StageRecord& record) {
  stage_.config_.n_values = record.value[kCountSlot];
}

template <class T>
void CudaSide<T>::throwError(const StageRecord& record) const {
  const std::uint64_t needed = record.value[kNeededSlot];
  const std::uint64_t came = record.value[kCameSlot];
  FZ_REQUIRE(stage_.isInverse(), ErrorCode::kBadSize,
             "AdaptiveBitpack: input size {} is not a multiple of {} bytes", came, sizeof(T));
  FZ_REQUIRE(record.error_index != kCountError, ErrorCode::kCorrupt,
             "AdaptiveBitpack: {} values need {} bytes of metadata, the stream has {} bytes",
             record.value[kCountSlot], needed, came);
  FZ_REQUIRE(record.error_index != kPayloadError, ErrorCode::kCorrupt,
             "AdaptiveBitpack: the blocks need {} payload bytes, got {}", needed, came);
  detail::throwError(
      ErrorCode::kCorrupt,
      fmt::format(
          "AdaptiveBitpack: block {} has rate {} and selection {}, invalid for {}-bit values",
          record.error_index >> 16, record.error_index & 0xFF, record.error_index >> 8 & 0xFF,
          kValueBits<T>));
}

MakeCudaPart cudaPartMaker() {
  return &makeCudaPart<CudaSide, AdaptiveBitpackStage<std::int16_t>,
                       AdaptiveBitpackStage<std::int32_t>>;
}

}  // namespace fz::adaptive_bitpack
