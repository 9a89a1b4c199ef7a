// Any block size: one lane per column of 8 values, on tiles in shared memory.
#include <algorithm>

#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "coders/adaptive_bitpack/adaptive_bitpack_columns.cuh"

namespace fz::adaptive_bitpack {

namespace {

constexpr unsigned kWarps = kCudaThreads / cuda::kWarp;
constexpr unsigned kBlocksPerThread = kAnyTileBlocks / kCudaThreads;

/// Lanes of a warp that work on one block: a power of two of them, side by side.
struct LaneTeam {
  unsigned n_lanes;
  std::uint32_t row_bytes;  ///< columns of a block

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
  /// OR over the team's lanes, for all of them.
  __device__ __forceinline__ std::uint32_t any(std::uint32_t value) const {
    for (unsigned step = 1; step < n_lanes; step *= 2) {
      value |= __shfl_xor_sync(mask(), value, step);
    }
    return value;
  }
};

/// One lane per column, as far as a warp has them.
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
    __syncthreads();  // the sums are read before anything behind them is written
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

/// Form of a block that has n values.
template <class T>
__device__ __forceinline__ BlockForm
columnsForm(LaneTeam team, const T* values, std::uint32_t n, BlockLayout layout) {
  std::uint32_t rest = 0;
  team.each(bits::ceilDiv(n, kColumnValues), [&](std::uint32_t k) {
    Column column;
    column.read(values + k * ColumnPlaces::kStep, n - kColumnValues * k);
#pragma unroll
    for (unsigned i = 0; i < kColumnValues; ++i) {
      rest |= i == 0 && k == 0 ? 0 : column.magnitude[i];
    }
  });
  return chooseForm(bits::magnitude(values[0]), bits::bitWidth(team.any(rest)), layout);
}

/// Writes the payload of a block that has n values.
template <class T>
__device__ __forceinline__ void putColumns(
    LaneTeam team, const T* values, std::uint32_t n, BlockForm form, std::uint8_t* at) {
  if (form.rate == 0 && form.outlier_bytes == 0) {
    return;
  }
  team.each(team.row_bytes, [&](std::uint32_t k) {
    const std::uint32_t n_before = kColumnValues * k;
    Column column;
    column.read(values + k * ColumnPlaces::kStep, n_before < n ? n - n_before : 0);
    if (k == 0 && form.outlier_bytes != 0) {
      for (unsigned i = 0; i < form.outlier_bytes; ++i) {
        at[i] = static_cast<std::uint8_t>(column.magnitude[0] >> (8 * i));
      }
      column.magnitude[0] = 0;
    }
    column.putRows(form.rate, team.row_bytes, at + form.outlier_bytes + k);
  });
}

/// Reads a block; what is behind its last value is garbage.
template <class T>
__device__ __forceinline__ void getColumns(LaneTeam team,
                                           const std::uint8_t* at,
                                           BlockForm form,
                                           T* values) {
  team.each(team.row_bytes, [&](std::uint32_t k) {
    Column column = {};
    if (form.rate != 0 || form.outlier_bytes != 0) {
      column.getRows(at + form.outlier_bytes + k, form.rate, team.row_bytes);
    }
    if (k == 0 && form.outlier_bytes != 0) {
      column.magnitude[0] = outlierMagnitude(at, form.outlier_bytes);
    }
    column.write(values + k * ColumnPlaces::kStep);
  });
}

template <class T>
__global__ void __launch_bounds__(kCudaThreads) encodeAny(const CudaEncode args, LaneTeam team) {
  __shared__ T values[ColumnPlaces::kMost];
  __shared__ std::uint32_t staged[kAnyTileColumns * (kValueBits<T> + 1) / 4 + 1];
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
  const ColumnPlaces places(layout);
  const T* in = reinterpret_cast<const T*>(args.in) + tile.first_value;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x; i < tile.n_values; i += kCudaThreads) {
    values[places.ofValue(i)] = in[i];
  }
  __syncthreads();
  const bool has_room = shape.meta_bytes <= args.capacity_bytes;
  forEachBlock(team, tile.n_blocks, [&](std::uint32_t b) {
    const BlockForm form = columnsForm(team, values + b * places.stride,
                                       tile.valuesOf(b, layout.block_values), layout);
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
    putColumns(team, values + b * places.stride, tile.valuesOf(b, layout.block_values),
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
      kAnyTileColumns * (kValueBits<T> + 1) + kAnyTileBlocks * sizeof(T);
  __shared__ T values[ColumnPlaces::kMost];
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
  const ColumnPlaces places(layout);
  forEachBlock(team, tile.n_blocks, [&](std::uint32_t b) {
    getColumns(team, staged + range.skew() + table.begin[b], table.form(b),
               values + b * places.stride);
  });
  __syncthreads();
  T* out = reinterpret_cast<T*>(args.out) + tile.first_value;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x; i < tile.n_values; i += kCudaThreads) {
    out[i] = values[places.ofValue(i)];
  }
}

}  // namespace

template <class T>
void launchEncodeAny(const CudaEncode& args, std::size_t n_tiles, cudaStream_t stream) {
  const LaneTeam team{lanesPerBlock(args.layout), args.layout.planeBytes()};
  encodeAny<T><<<cuda::gridFor(n_tiles, 1), kCudaThreads, 0, stream>>>(args, team);
  cuda::checkLaunch("AdaptiveBitpack encodeAny");
}

template <class T>
void launchDecodeAny(const CudaDecode& args, std::size_t n_tiles, cudaStream_t stream) {
  const LaneTeam team{lanesPerBlock(args.layout), args.layout.planeBytes()};
  decodeAny<T><<<cuda::gridFor(n_tiles, 1), kCudaThreads, 0, stream>>>(args, team);
  cuda::checkLaunch("AdaptiveBitpack decodeAny");
}

template void launchEncodeAny<std::int16_t>(const CudaEncode&, std::size_t, cudaStream_t);
template void launchEncodeAny<std::int32_t>(const CudaEncode&, std::size_t, cudaStream_t);
template void launchDecodeAny<std::int16_t>(const CudaDecode&, std::size_t, cudaStream_t);
template void launchDecodeAny<std::int32_t>(const CudaDecode&, std::size_t, cudaStream_t);

}  // namespace fz::adaptive_bitpack
