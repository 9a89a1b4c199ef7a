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

template <class T>
void AdaptiveBitpackStage<T>::encodeCuda(const CudaRun& run) {
  const CudaInput& in = run.inputs[0];
  const CudaOutput& out = run.outputs[0];
  FZ_REQUIRE(!in.size.isExact() || in.size.n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "AdaptiveBitpack: input of {} bytes is no whole number of {}-byte values",
             in.size.n_bytes, sizeof(T));
  const ab::BlockLayout layout = layoutOf(*this);
  const ab::CudaTiling tiling = ab::CudaTiling::ofEncoder<T>(layout);
  const std::size_t n_tiles =
      std::max<std::size_t>(1, tiling.tilesOf(in.size.n_bytes / sizeof(T), layout));
  const ab::CudaEncode args{.in = in.data,
                            .in_size = in.size,
                            .layout = layout,
                            .out = out.data,
                            .capacity_bytes = out.capacity_bytes,
                            .record = run.record,
                            .states = zeroedStates(cuda_states_, n_tiles, run),
                            .tile_blocks_log2 = tiling.tile_blocks_log2};
  if (ab::isGroupLayout(layout)) {
    ab::launchEncodeGroups<T>(args, n_tiles, run.stream);
  } else {
    ab::launchEncodeAny<T>(args, n_tiles, run.stream);
  }
}

template <class T>
void AdaptiveBitpackStage<T>::decodeCuda(const CudaRun& run) {
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
  const std::size_t most_values = std::min<std::size_t>(
      out.capacity_bytes / sizeof(T), in.size.n_bytes / layout.metaBytes() * layout.block_values);
  const ab::CudaTiling tiling = ab::CudaTiling::ofDecoder(layout);
  const std::size_t n_tiles = tiling.tilesOf(most_values, layout);
  const std::size_t n_measure_tiles = std::max<std::size_t>(
      1, bits::ceilDiv(bits::ceilDiv(most_values, std::size_t{layout.block_values}),
                       std::size_t{ab::kCudaThreads} * ab::kMeasureBlocks));
  const ab::CudaDecode args{
      .in = in.data,
      .in_size = in.size,
      .layout = layout,
      .out = out.data,
      .capacity_bytes = out.capacity_bytes,
      .size_known = out.size_known,
      .record = run.record,
      .states = zeroedStates(cuda_states_, n_measure_tiles, run),
      .offsets =
          cuda_offsets_.get<std::uint64_t>(run.pool, std::max<std::size_t>(1, n_tiles)).data(),
      .tile_blocks_log2 = tiling.tile_blocks_log2};
  ab::launchMeasure<T>(args, n_measure_tiles, run.stream);
  if (n_tiles == 0) {
    return;
  }
  if (ab::isGroupLayout(layout)) {
    ab::launchDecodeGroups<T>(args, n_tiles, run.stream);
  } else {
    ab::launchDecodeAny<T>(args, n_tiles, run.stream);
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
#define FZ_INSTANTIATE(T)                                                          \
  template std::vector<DeviceField> AdaptiveBitpackStage<T>::deviceFields() const; \
  template void AdaptiveBitpackStage<T>::encodeCuda(const CudaRun&);               \
  template void AdaptiveBitpackStage<T>::decodeCuda(const CudaRun&);               \
  template void AdaptiveBitpackStage<T>::finishEncodeCuda(const StageRecord&);     \
  template void AdaptiveBitpackStage<T>::throwDeviceError(const StageRecord&) const
FZ_INSTANTIATE(std::int16_t);
FZ_INSTANTIATE(std::int32_t);
#undef FZ_INSTANTIATE

}  // namespace fz
