// Any block size: the codec text itself, by a few lanes per block, on tiles in shared memory.
#include <algorithm>

#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "coders/adaptive_bitpack/adaptive_bitpack_device.cuh"

namespace fz::adaptive_bitpack {

namespace {

constexpr unsigned kWarps = kCudaThreads / cuda::kWarp;
constexpr unsigned kBlocksPerThread = kAnyTileBlocks / kCudaThreads;
/// kAnyTileValues / 8, since a tile has a power of two of blocks.
constexpr std::uint32_t kAnyTilePlaneBytes = kAnyTileValues / 8;

/// Lanes of a warp that work on one block: a power of two of them, side by side.
struct LaneTeam {
  unsigned n_lanes;

  __device__ __forceinline__ unsigned index() const { return cuda::laneId() & (n_lanes - 1); }
  __device__ __forceinline__ unsigned mask() const {
    return (cuda::kAllLanes >> (cuda::kWarp - n_lanes)) << (cuda::laneId() & ~(n_lanes - 1));
  }
  template <class F>
  __device__ __forceinline__ void each(std::uint32_t n, F f) const {
    for (std::uint32_t i = index(); i < n; i += n_lanes) {
      f(i);
    }
  }
  template <class F>
  __device__ __forceinline__ std::uint32_t max(std::uint32_t n, F f) const {
    std::uint32_t m = 0;
    each(n, [&](std::uint32_t i) { m = ::max(m, f(i)); });
    for (unsigned step = 1; step < n_lanes; step *= 2) {
      m = ::max(m, __shfl_xor_sync(mask(), m, step));
    }
    return m;
  }
};

/// About one lane per plane byte.
unsigned lanesPerBlock(BlockLayout layout) {
  unsigned n_lanes = 1;
  while (n_lanes < cuda::kWarp && n_lanes < layout.planeBytes()) {
    n_lanes *= 2;
  }
  return n_lanes;
}

/// A tile of blocks of any size.
struct AnyTile {
  std::uint64_t first_block;
  std::uint64_t first_value;
  std::uint32_t n_blocks;
  std::uint32_t n_values;

  __device__ __forceinline__ AnyTile(std::uint64_t tile,
                                     std::uint32_t tile_blocks_log2,
                                     std::uint32_t block_values,
                                     std::uint64_t n_all_values)
      : first_block(tile << tile_blocks_log2), first_value(first_block * block_values) {
    const std::uint64_t values_left = n_all_values - first_value;
    const std::uint32_t tile_values = block_values << tile_blocks_log2;
    n_values = values_left < tile_values ? static_cast<std::uint32_t>(values_left) : tile_values;
    n_blocks = bits::ceilDiv(n_values, block_values);
  }
  __device__ __forceinline__ std::uint32_t valuesOf(std::uint32_t block,
                                                    std::uint32_t block_values) const {
    return min(block_values, n_values - block * block_values);
  }
};

/// Where a tile's values stand in shared memory: blocks an odd number of values apart, so that
/// lanes that work on the same value of different blocks meet in different banks.
struct ValuePlaces {
  std::uint32_t stride;
  std::uint32_t reciprocal;  ///< of the block size, times 2^32

  __device__ __forceinline__ explicit ValuePlaces(std::uint32_t block_values)
      : stride(block_values | 1u), reciprocal(~0u / block_values + 1) {}
  /// Place of value i of the tile; exact since i and the block size are small.
  __device__ __forceinline__ std::uint32_t of(std::uint32_t i, std::uint32_t block_values) const {
    return stride == block_values ? i : i + __umulhi(i, reciprocal);
  }
};
constexpr std::uint32_t kAnyTilePlaces = kAnyTileValues + kAnyTileBlocks;

/// Forms of a tile's blocks, and where their payloads begin in it.
struct BlockTable {
  std::uint16_t packed_form[kAnyTileBlocks];  // shared memory takes no default values
  std::uint32_t begin[kAnyTileBlocks];
  std::uint32_t warp_sums[kWarps];

  __device__ __forceinline__ void setForm(std::uint32_t block, BlockForm form) {
    packed_form[block] = static_cast<std::uint16_t>(form.rate | form.outlier_bytes << 8);
  }
  __device__ __forceinline__ BlockForm form(std::uint32_t block) const {
    return {packed_form[block] & 0xFFu, static_cast<std::uint32_t>(packed_form[block] >> 8)};
  }
  /// All threads, after the forms are in place: begins and the sum. Ends with a barrier.
  __device__ __forceinline__ std::uint32_t findBegins(std::uint32_t n_blocks,
                                                      std::uint32_t plane_bytes) {
    std::uint32_t cost[kBlocksPerThread];
    std::uint32_t sum = 0;
    const std::uint32_t first = threadIdx.x * kBlocksPerThread;
#pragma unroll
    for (unsigned j = 0; j < kBlocksPerThread; ++j) {
      cost[j] = first + j < n_blocks ? blockCost(form(first + j), plane_bytes) : 0;
      sum += cost[j];
    }
    std::uint32_t total;
    std::uint32_t at = cuda::blockExclusiveSum<kCudaThreads>(sum, warp_sums, &total);
#pragma unroll
    for (unsigned j = 0; j < kBlocksPerThread; ++j) {
      begin[first + j] = at;
      at += cost[j];
    }
    __syncthreads();
    return total;
  }
};

/// Calls f(team, block) for every block of the tile, by the team that has it.
template <class F>
__device__ __forceinline__ void forEachBlock(LaneTeam team, std::uint32_t n_blocks, F f) {
  for (std::uint32_t b = threadIdx.x / team.n_lanes; b < n_blocks;
       b += kCudaThreads / team.n_lanes) {
    f(b);
  }
}

template <class T>
__global__ void __launch_bounds__(kCudaThreads) encodeAny(const CudaEncode args, LaneTeam team) {
  __shared__ T values[kAnyTilePlaces];
  __shared__ std::uint32_t staged[kAnyTilePlaneBytes * (kValueBits<T> + 1) / 4 + 1];
  __shared__ BlockTable table;
  __shared__ std::uint64_t before;
  const EncodeShape shape = encodeShape<T>(args);
  const BlockLayout layout = args.layout;
  if ((std::uint64_t{blockIdx.x} << args.tile_blocks_log2) >= shape.n_blocks) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      finishEncode<T>(args, shape, 0);
    }
    return;
  }
  const AnyTile tile(blockIdx.x, args.tile_blocks_log2, layout.block_values, shape.n_values);
  const ValuePlaces places(layout.block_values);
  const T* in = reinterpret_cast<const T*>(args.in) + tile.first_value;
  for (std::uint32_t i = threadIdx.x; i < tile.n_values; i += kCudaThreads) {
    values[places.of(i, layout.block_values)] = in[i];
  }
  __syncthreads();
  const bool has_room = shape.meta_bytes <= args.capacity_bytes;
  forEachBlock(team, tile.n_blocks, [&](std::uint32_t b) {
    const BlockForm form =
        blockForm(team, values + b * places.stride, tile.valuesOf(b, layout.block_values), layout);
    if (team.index() == 0) {
      table.setForm(b, form);
      if (has_room) {
        putForm(form, layout, args.out + (tile.first_block + b) * layout.metaBytes());
      }
    }
  });
  __syncthreads();
  const std::uint32_t tile_bytes = table.findBegins(tile.n_blocks, layout.planeBytes());
  const cuda::LookBack look_back{args.states};
  if (threadIdx.x == 0) {
    look_back.publish(blockIdx.x, tile_bytes);
  }
  forEachBlock(team, tile.n_blocks, [&](std::uint32_t b) {
    encodeBlock(team, values + b * places.stride, tile.valuesOf(b, layout.block_values), layout,
                table.form(b), reinterpret_cast<std::uint8_t*>(staged) + table.begin[b]);
  });
  __syncwarp();
  if (cuda::warpId() == 0) {
    const std::uint64_t prefix = look_back.prefix(blockIdx.x, tile_bytes);
    if (threadIdx.x == 0) {
      before = prefix;
      if (tile.first_block + tile.n_blocks == shape.n_blocks) {
        finishEncode<T>(args, shape, prefix + tile_bytes);
      }
    }
  }
  __syncthreads();
  const std::uint64_t begin = shape.meta_bytes + before;
  if (begin + tile_bytes <= args.capacity_bytes) {
    cuda::copyFromStaging({threadIdx.x, kCudaThreads}, staged, tile_bytes, args.out + begin);
  }
}

template <class T>
__global__ void __launch_bounds__(kCudaThreads) decodeAny(const CudaDecode args, LaneTeam team) {
  // The outlier form at the full rate, which no encoder writes, is the longest.
  constexpr std::uint32_t kMostBytes =
      kAnyTilePlaneBytes * (kValueBits<T> + 1) + kAnyTileBlocks * sizeof(T);
  __shared__ T values[kAnyTilePlaces];
  __shared__ __align__(16) std::uint8_t staged[cuda::stagingBytes(kMostBytes)];
  __shared__ BlockTable table;
  const DecodeShape shape = decodeShape<T>(args);
  const BlockLayout layout = args.layout;
  if (!shape.sound || (std::uint64_t{blockIdx.x} << args.tile_blocks_log2) >= shape.n_blocks) {
    return;
  }
  const AnyTile tile(blockIdx.x, args.tile_blocks_log2, layout.block_values, shape.n_values);
  for (std::uint32_t b = threadIdx.x; b < tile.n_blocks; b += kCudaThreads) {
    table.setForm(b, soundForm<T>(args.in + (tile.first_block + b) * layout.metaBytes(), layout));
  }
  __syncthreads();
  const std::uint32_t tile_bytes = table.findBegins(tile.n_blocks, layout.planeBytes());
  const std::uint64_t begin = shape.meta_bytes + args.offsets[blockIdx.x];
  if (begin + tile_bytes > shape.stream_bytes) {
    return;  // reported by measureBlocks
  }
  const cuda::StagedRange range{args.in, shape.stream_bytes, begin, tile_bytes};
  cuda::copyToStaging({threadIdx.x, kCudaThreads}, range, staged);
  __syncthreads();
  const ValuePlaces places(layout.block_values);
  forEachBlock(team, tile.n_blocks, [&](std::uint32_t b) {
    decodeBlock(team, staged + range.skew() + table.begin[b], table.form(b), layout,
                tile.valuesOf(b, layout.block_values), values + b * places.stride);
  });
  __syncthreads();
  T* out = reinterpret_cast<T*>(args.out) + tile.first_value;
  for (std::uint32_t i = threadIdx.x; i < tile.n_values; i += kCudaThreads) {
    out[i] = values[places.of(i, layout.block_values)];
  }
}

}  // namespace

template <class T>
void launchEncodeAny(const CudaEncode& args, std::size_t n_tiles, cudaStream_t stream) {
  const LaneTeam team{lanesPerBlock(args.layout)};
  encodeAny<T><<<cuda::gridFor(n_tiles, 1), kCudaThreads, 0, stream>>>(args, team);
  cuda::checkLaunch("AdaptiveBitpack encodeAny");
}

template <class T>
void launchDecodeAny(const CudaDecode& args, std::size_t n_tiles, cudaStream_t stream) {
  const LaneTeam team{lanesPerBlock(args.layout)};
  decodeAny<T><<<cuda::gridFor(n_tiles, 1), kCudaThreads, 0, stream>>>(args, team);
  cuda::checkLaunch("AdaptiveBitpack decodeAny");
}

template void launchEncodeAny<std::int16_t>(const CudaEncode&, std::size_t, cudaStream_t);
template void launchEncodeAny<std::int32_t>(const CudaEncode&, std::size_t, cudaStream_t);
template void launchDecodeAny<std::int16_t>(const CudaDecode&, std::size_t, cudaStream_t);
template void launchDecodeAny<std::int32_t>(const CudaDecode&, std::size_t, cudaStream_t);

}  // namespace fz::adaptive_bitpack
