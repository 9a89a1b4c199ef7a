#include "backends/cuda/each_field.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "coders/adaptive_bitpack/cuda/op/blocks.cuh"
#include "fz/cuda_part.h"

namespace fz::adaptive_bitpack {

namespace {

constexpr std::uint32_t kMeasureTileBlocks = kCudaThreads * kMeasureBlocks;

/// Metadata of the kMeasureBlocks blocks from `first` on; 0 behind the last block, which is an
/// empty block.
template <bool kOutlier>
struct BlockRun {
  static constexpr unsigned kMetaBytes = kOutlier ? 2 : 1;
  static constexpr unsigned kWords = kMeasureBlocks * kMetaBytes / 4;
  std::uint32_t word[kWords];

  __device__ __forceinline__ BlockRun(const std::uint8_t* meta,
                                      std::uint64_t first,
                                      std::uint64_t n_blocks) {
    const std::uint8_t* begin = meta + first * kMetaBytes;
    if (first + kMeasureBlocks <= n_blocks) {
#pragma unroll
      for (unsigned i = 0; i < kWords; i += 4) {
        const uint4 four = *reinterpret_cast<const uint4*>(begin + 4 * i);
        word[i] = four.x;
        word[i + 1] = four.y;
        word[i + 2] = four.z;
        word[i + 3] = four.w;
      }
      return;
    }
    const std::uint64_t n_bytes = first < n_blocks ? (n_blocks - first) * kMetaBytes : 0;
#pragma unroll
    for (unsigned i = 0; i < kWords; ++i) {
      word[i] = 0;
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) {
        if (4 * i + k < n_bytes) {
          word[i] |= static_cast<std::uint32_t>(begin[4 * i + k]) << (8 * k);
        }
      }
    }
  }

  __device__ __forceinline__ std::uint8_t byte(unsigned i) const {
    return static_cast<std::uint8_t>(word[i / 4] >> (8 * (i % 4)));
  }
};

/// One thread of the grid: what concerns the whole stream.
template <class T>
__device__ __forceinline__ void checkStream(const CudaDecode& args, const DecodeShape& shape) {
  if (!shape.sound) {
    args.record->value[kNeededSlot] = shape.meta_bytes;
    args.record->value[kCameSlot] = shape.stream_bytes;
    cuda::recordError(args.record, DeviceError::kCorrupt, kCountError);
  } else if (!args.size_known) {
    cuda::publishSize(args.record, 0, shape.n_values * sizeof(T), args.capacity_bytes);
  }
}

/// One thread block: the sizes in a tile of metadata, and where everything in it begins.
template <class T, bool kOutlier>
__device__ __forceinline__ void measureTile(const CudaDecode& args,
                                            const DecodeShape& shape,
                                            std::uint64_t tile) {
  __shared__ std::uint32_t warp_sums[kCudaThreads / cuda::kWarp];
  __shared__ std::uint64_t before;
  const std::uint64_t first = tile * kMeasureTileBlocks + threadIdx.x * kMeasureBlocks;
  const BlockLayout layout{args.layout.block_values, kOutlier};
  const BlockRun<kOutlier> run(args.in, first, shape.n_blocks);
  std::uint32_t cost[kMeasureBlocks];
  std::uint32_t sum = 0;
  std::uint64_t bad = ~std::uint64_t{0};
#pragma unroll
  for (unsigned j = 0; j < kMeasureBlocks; ++j) {
    const std::uint8_t meta[2] = {run.byte(j * layout.metaBytes()),
                                  kOutlier ? run.byte(2 * j + 1) : std::uint8_t{0}};
    cost[j] = blockCost(soundForm<T>(meta, layout), layout.planeBytes());
    sum += cost[j];
    if (bad == ~std::uint64_t{0} && !isForm<T>(meta, layout)) {
      bad = blockError(first + j, meta[0], meta[1]);
    }
  }
  if (bad != ~std::uint64_t{0}) {
    cuda::recordError(args.record, DeviceError::kCorrupt, bad);
  }
  std::uint32_t tile_sum;
  const std::uint32_t exclusive = cuda::blockExclusiveSum<kCudaThreads>(sum, warp_sums, &tile_sum);
  if (threadIdx.x < cuda::kWarp) {
    const cuda::LookBack look_back{args.states};
    if (threadIdx.x == 0) {
      look_back.publish(tile, tile_sum);
    }
    const std::uint64_t prefix = look_back.prefix(tile, tile_sum);
    if (threadIdx.x == 0) {
      before = prefix;
      const std::uint64_t came = shape.stream_bytes - shape.meta_bytes;
      if ((tile + 1) * kMeasureTileBlocks >= shape.n_blocks && prefix + tile_sum != came) {
        args.record->value[kNeededSlot] = prefix + tile_sum;
        args.record->value[kCameSlot] = came;
        cuda::recordError(args.record, DeviceError::kCorrupt, kPayloadError);
      }
    }
  }
  __syncthreads();
  std::uint64_t offset = before + exclusive;
  const std::uint64_t in_tile = (std::uint64_t{1} << args.tile_blocks_log2) - 1;
#pragma unroll
  for (unsigned j = 0; j < kMeasureBlocks; ++j) {
    if (((first + j) & in_tile) == 0 && first + j < shape.n_blocks) {
      args.offsets[(first + j) >> args.tile_blocks_log2] = offset;
    }
    offset += cost[j];
  }
}

/// The last thread block leaves the states at zero; the word behind them counts.
__device__ __forceinline__ void clearStates(std::uint64_t* states) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    auto* n_done = reinterpret_cast<unsigned long long*>(states + gridDim.x);
    is_last = atomicAdd(n_done, 1ull) == gridDim.x - 1;  // order-free: a count
  }
  __syncthreads();
  if (is_last) {
    for (unsigned i = threadIdx.x; i <= gridDim.x; i += kCudaThreads) {
      states[i] = 0;
    }
  }
}

/// Payload sizes from the metadata, and from them where every tile begins.
template <class T, bool kOutlier>
__device__ __forceinline__ void measureStream(const CudaDecode& args) {
  const DecodeShape shape = decodeShape<T>(args);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    checkStream<T>(args, shape);
  }
  if (shape.sound && std::uint64_t{blockIdx.x} * kMeasureTileBlocks < shape.n_blocks) {
    measureTile<T, kOutlier>(args, shape, blockIdx.x);
  }
  clearStates(args.states);
}

template <class T, bool kOutlier>
__global__ void __launch_bounds__(kCudaThreads) measureBlocks(const CudaDecode args) {
  measureStream<T, kOutlier>(args);
}

template <class T, bool kOutlier>
__global__ void __launch_bounds__(kCudaThreads) measureEachField(const EachField fields) {
  measureStream<T, kOutlier>(cuda::argumentsOf<CudaDecode>(fields));
}

template <class T, bool kOutlier>
auto measureKernel() {
  return cuda::withEach(measureBlocks<T, kOutlier>, measureEachField<T, kOutlier>);
}

}  // namespace

template <class T>
void launchMeasure(const CudaDecode& args, std::size_t n_measure_tiles, const cuda::Call& call) {
  const unsigned n_thread_blocks = cuda::gridFor(n_measure_tiles, 1);
  call.launch("AdaptiveBitpack measureBlocks",
              args.layout.outlier_selection ? measureKernel<T, true>() : measureKernel<T, false>(),
              n_thread_blocks, kCudaThreads, 0, args);
}

template void launchMeasure<std::int16_t>(const CudaDecode&, std::size_t, const cuda::Call&);
template void launchMeasure<std::int32_t>(const CudaDecode&, std::size_t, const cuda::Call&);

}  // namespace fz::adaptive_bitpack
