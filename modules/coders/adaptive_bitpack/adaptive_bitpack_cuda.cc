#include "coders/adaptive_bitpack/adaptive_bitpack_cuda.h"

#include <algorithm>

#include <cuda_runtime_api.h>

#include "backends/cuda/launch.h"
#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "core/require.h"

namespace fz {

namespace ab = adaptive_bitpack;

namespace {

template <class T>
ab::BlockLayout layoutOf(const AdaptiveBitpackStage<T>& stage) {
  return {static_cast<std::uint32_t>(stage.getBlockSize()), stage.getOutlierSelection()};
}

std::uint64_t* zeroedStates(Scratch& scratch, std::size_t n_states, const CudaRun& run) {
  const auto states = scratch.get<std::uint64_t>(run.pool, n_states);
  FZ_CUDA_CHECK(cudaMemsetAsync(states.data(), 0, states.size_bytes(), run.stream));
  return states.data();
}

}  // namespace

template <class T>
std::vector<DeviceField> AdaptiveBitpackStage<T>::deviceFields() const {
  return {{8, 8, ab::kCountSlot}};  // SPEC: config, n
}

/// The kernels leave their control words at zero, so only new memory must be cleared.
template <class T>
std::uint8_t* AdaptiveBitpackStage<T>::control(const CudaRun& run, std::size_t n_bytes) {
  std::uint8_t* words = cuda_control_.get<std::uint8_t>(run.pool, n_bytes).data();
  if (n_bytes > control_bytes_) {
    FZ_CUDA_CHECK(cudaMemsetAsync(words, 0, n_bytes, run.stream));
    control_bytes_ = n_bytes;
  }
  return words;
}

template <class T>
void AdaptiveBitpackStage<T>::prepareEncode(const CudaRun& run,
                                            std::size_t n_tiles,
                                            ab::GroupsArgs& args) {
  std::uint8_t* words = control(run, ab::kControlBytes + 2 * n_tiles * sizeof(std::uint64_t));
  args.record = run.record;
  args.in_size = run.inputs[0].size;
  args.out = run.outputs[0].data;
  args.capacity_bytes = run.outputs[0].capacity_bytes;
  args.block_values = layoutOf(*this).block_values;
  args.control = reinterpret_cast<ab::EncodeControl*>(words);
  args.sums = reinterpret_cast<std::uint64_t*>(words + ab::kControlBytes);
  args.bases = args.sums + n_tiles;
}

template <class T>
void AdaptiveBitpackStage<T>::encodeCuda(const CudaRun& run) {
  const CudaInput& in = run.inputs[0];
  const CudaOutput& out = run.outputs[0];
  FZ_REQUIRE(!in.size.isExact() || in.size.n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "AdaptiveBitpack: input of {} bytes is no whole number of {}-byte values",
             in.size.n_bytes, sizeof(T));
  const ab::BlockLayout layout = layoutOf(*this);
  const std::size_t n_values = in.size.n_bytes / sizeof(T);
  if (ab::isGroupLayout(layout)) {
    const GroupShape shape = ab::groupsEncoderShape<T>(layout.outlier_selection);
    ab::GroupsArgs args = {};
    prepareEncode(run, bits::ceilDiv<std::size_t>(n_values, shape.tile_values), args);
    args.in = in.data;
    ab::launchEncodeGroups<T>(args, layout.outlier_selection, n_values, run.stream);
    return;
  }
  const ab::CudaTiling tiling = ab::CudaTiling::ofAnyEncoder(layout);
  const std::size_t n_tiles = std::max<std::size_t>(1, tiling.tilesOf(n_values, layout));
  const ab::CudaEncode args{.in = in.data,
                            .in_size = in.size,
                            .layout = layout,
                            .out = out.data,
                            .capacity_bytes = out.capacity_bytes,
                            .record = run.record,
                            .states = zeroedStates(cuda_states_, n_tiles, run),
                            .tile_blocks_log2 = tiling.tile_blocks_log2};
  ab::launchEncodeAny<T>(args, n_tiles, run.stream);
}

/// Checks the stream and finds the offsets; n_values is the most that can come.
template <class T>
ab::CudaDecode AdaptiveBitpackStage<T>::measure(const CudaRun& run, std::size_t& n_values) {
  const CudaInput& in = run.inputs[0];
  const CudaOutput& out = run.outputs[0];
  if (in.size.isExact()) {
    const std::size_t encoded_bytes[] = {in.size.n_bytes};
    const std::size_t n_bytes = decodedBytes(encoded_bytes);
    FZ_REQUIRE(out.capacity_bytes >= n_bytes, ErrorCode::kBufferTooSmall,
               "AdaptiveBitpack: decoding needs {} bytes, {} came", n_bytes, out.capacity_bytes);
  }
  // The number of values is read on the device, so that a graph can be replayed with another one.
  const ab::BlockLayout layout = layoutOf(*this);
  n_values = std::min<std::size_t>(out.capacity_bytes / sizeof(T),
                                   in.size.n_bytes / layout.metaBytes() * layout.block_values);
  const ab::CudaTiling tiling = ab::CudaTiling::ofDecoder(layout);
  const std::size_t n_tiles = tiling.tilesOf(n_values, layout);
  const std::size_t n_measure_tiles = std::max<std::size_t>(
      1, bits::ceilDiv(bits::ceilDiv(n_values, std::size_t{layout.block_values}),
                       std::size_t{ab::kCudaThreads} * ab::kMeasureBlocks));
  std::uint8_t* words = control(run, (n_measure_tiles + 1) * sizeof(std::uint64_t));
  const ab::CudaDecode args{
      .in = in.data,
      .in_size = in.size,
      .layout = layout,
      .out = out.data,
      .capacity_bytes = out.capacity_bytes,
      .size_known = out.size_known,
      .record = run.record,
      .states = reinterpret_cast<std::uint64_t*>(words),
      .offsets =
          cuda_offsets_.get<std::uint64_t>(run.pool, std::max<std::size_t>(1, n_tiles)).data(),
      .tile_blocks_log2 = tiling.tile_blocks_log2};
  ab::launchMeasure<T>(args, n_measure_tiles, run.stream);
  return args;
}

template <class T>
void AdaptiveBitpackStage<T>::decodeCuda(const CudaRun& run) {
  std::size_t n_values = 0;
  const ab::CudaDecode args = measure(run, n_values);
  if (n_values == 0) {
    return;
  }
  if (ab::isGroupLayout(args.layout)) {
    ab::launchDecodeGroups<T>(ab::groupsArgs(args), args.layout.outlier_selection, n_values,
                              run.stream);
  } else {
    ab::launchDecodeAny<T>(
        args, ab::CudaTiling::ofDecoder(args.layout).tilesOf(n_values, args.layout), run.stream);
  }
}

template <class T>
TileOp AdaptiveBitpackStage<T>::cudaTileOp() const {
  const ab::BlockLayout layout = layoutOf(*this);
  if (!ab::isGroupLayout(layout)) {
    return NoOp{"has a tile operation for blocks of 32, 64, 128 ... 1024 values only"};
  }
  return CoderOp{
      .tile_bytes = ab::kWarpValues * sizeof(T),
      .value_bytes = sizeof(T),
      .warp_bytes = ab::kWarpValues * sizeof(T),
      .variant = std::uint64_t{layout.block_values} << 8 | (layout.outlier_selection ? 1u : 0u)};
}

template <class T>
std::string AdaptiveBitpackStage<T>::tileOpType() const {
  const ab::BlockLayout layout = layoutOf(*this);
  return fmt::format("fz::adaptive_bitpack::GroupsOp<std::{}_t, {}, {}>",
                     dataTypeToString(kDataTypeOf<T>), layout.outlier_selection,
                     ab::groupsOf(layout.block_values));
}

template <class T>
void AdaptiveBitpackStage<T>::beginGroupCuda(const CudaRun& run,
                                             const GroupRun& group,
                                             GroupArgs& args) {
  if (isInverse()) {
    std::size_t n_values = 0;
    args.add(ab::groupsArgs(measure(run, n_values)));
  } else {
    ab::GroupsArgs own = {};
    prepareEncode(run, group.n_tiles, own);
    args.add(own);
  }
}

template <class T>
void AdaptiveBitpackStage<T>::finishEncodeCuda(const StageRecord& record) {
  state_.n_values = record.value[ab::kCountSlot];
}

template <class T>
void AdaptiveBitpackStage<T>::throwDeviceError(const StageRecord& record) const {
  const std::uint64_t needed = record.value[ab::kNeededSlot];
  const std::uint64_t came = record.value[ab::kCameSlot];
  FZ_REQUIRE(isInverse(), ErrorCode::kBadSize,
             "AdaptiveBitpack: input of {} bytes is no whole number of {}-byte values", came,
             sizeof(T));
  FZ_REQUIRE(record.error_index != ab::kCountError, ErrorCode::kCorrupt,
             "AdaptiveBitpack: {} values need {} bytes of metadata, the stream has {} bytes",
             record.value[ab::kCountSlot], needed, came);
  FZ_REQUIRE(record.error_index != ab::kPayloadError, ErrorCode::kCorrupt,
             "AdaptiveBitpack: the blocks need {} payload bytes, {} came", needed, came);
  FZ_REQUIRE(false, ErrorCode::kCorrupt,
             "AdaptiveBitpack: block {} has rate {} and selection {}, which no block of {}-bit "
             "values has",
             record.error_index >> 16, record.error_index & 0xFF, record.error_index >> 8 & 0xFF,
             ab::kValueBits<T>);
}

// The rest of the class is instantiated in adaptive_bitpack_stage.cc.
#define FZ_INSTANTIATE(T)                                                                 \
  template std::vector<DeviceField> AdaptiveBitpackStage<T>::deviceFields() const;        \
  template void AdaptiveBitpackStage<T>::encodeCuda(const CudaRun&);                      \
  template void AdaptiveBitpackStage<T>::decodeCuda(const CudaRun&);                      \
  template std::uint8_t* AdaptiveBitpackStage<T>::control(const CudaRun&, std::size_t);   \
  template void AdaptiveBitpackStage<T>::prepareEncode(const CudaRun&, std::size_t,       \
                                                       ab::GroupsArgs&);                  \
  template ab::CudaDecode AdaptiveBitpackStage<T>::measure(const CudaRun&, std::size_t&); \
  template TileOp AdaptiveBitpackStage<T>::cudaTileOp() const;                            \
  template std::string AdaptiveBitpackStage<T>::tileOpType() const;                       \
  template void AdaptiveBitpackStage<T>::beginGroupCuda(const CudaRun&, const GroupRun&,  \
                                                        GroupArgs&);                      \
  template void AdaptiveBitpackStage<T>::finishEncodeCuda(const StageRecord&);            \
  template void AdaptiveBitpackStage<T>::throwDeviceError(const StageRecord&) const
FZ_INSTANTIATE(std::int16_t);
FZ_INSTANTIATE(std::int32_t);
#undef FZ_INSTANTIATE

}  // namespace fz
