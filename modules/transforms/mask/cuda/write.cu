// The port "mask": the places of coded bricks in the stream, then the stream.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "backends/cuda/tile_ticket.cuh"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/place.cuh"

namespace fz::mask {

namespace {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

template <class T>
__device__ __forceinline__ std::uint64_t headBytes(const Findings& found) {
  return 4 + found.n_patterns * sizeof(T);
}

/// Where layers begin in the stream.
template <class T>
__device__ std::uint64_t layerAt(const Findings& found, std::uint64_t layer) {
  std::uint64_t at = headBytes<T>(found);
  for (std::uint64_t i = 0; i < layer; ++i) {
    at += found.layer_bytes[i];
  }
  return at;
}

template <class T>
__device__ std::uint64_t streamBytes(const Findings& found) {
  const std::uint64_t n_raw = found.n_patterns == 0 ? found.n_ones[0] : 0;
  return found.n_layers == 0 ? 0 : layerAt<T>(found, found.n_layers) + n_raw * sizeof(T);
}

template <class U>
__device__ void storeBytes(std::uint8_t* out, U value, std::uint32_t n_bytes) {
  for (std::uint32_t i = 0; i < n_bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// The block: what stands in the stream for the bricks of a group, a thread each.
__device__ void writeGroup(const EncodeArgs& args,
                           const Grid& grid,
                           std::uint32_t layer,
                           std::uint64_t group,
                           std::uint8_t* out) {
  __shared__ std::uint32_t warp_sums[2][kGroupThreads / kWarp];
  const std::uint64_t n_group = groupBricks(grid);
  const std::uint64_t n_bricks = grid.bricks();
  const std::uint64_t brick = group * n_group + threadIdx.x;
  const bool is_there = threadIdx.x < n_group && brick < n_bricks;
  const std::uint64_t slot = layer * args.max_bricks + brick;
  const std::uint32_t kind = is_there ? args.kinds[slot] : 0;
  const std::uint32_t n_bytes = is_there ? args.brick_bytes[slot] : 0;
  const BrickGroup& own = args.groups[layer * args.max_groups + group];
  std::uint32_t total = 0;
  const std::uint32_t before =
      cuda::blockExclusiveSum<kGroupThreads>(n_bytes, warp_sums[0], &total);
  const std::uint32_t rank =
      cuda::blockExclusiveSum<kGroupThreads>(kind == kCoded ? 1u : 0u, warp_sums[1], &total);
  unsigned four = kind;
#pragma unroll
  for (unsigned k = 1; k < 4; ++k) {
    four |= __shfl_down_sync(kAllLanes, kind, k) << (2 * k);
  }
  const LayerForm form =
      layer == 0 && args.found->has_own_chances != 0 ? kBricksOfChances : kBricks;
  std::uint8_t* const kinds = out + frontBytes(grid, form);
  if (is_there && threadIdx.x % 4 == 0) {
    kinds[brick / 4] = static_cast<std::uint8_t>(four);
  }
  if (kind == kCoded) {
    kinds[kindBytes(n_bricks) + own.first_coded + rank] =
        static_cast<std::uint8_t>(n_bytes / kUnitBytes);
  }
  if (n_bytes != 0) {
    const std::uint8_t* const bytes =
        layer == 0 ? args.slots + brick * slotBytes(grid) : args.arena + args.arena_at[slot];
    std::uint8_t* const to = out + own.at + before;
    for (std::uint32_t i = 0; i < n_bytes; ++i) {
      to[i] = bytes[i];
    }
  }
  __syncthreads();
}

/// A block: patterns, and the fronts of layers.
template <class T>
__device__ void writeHeads(const EncodeArgs& args,
                           const Field& field,
                           const Grid& grid,
                           std::uint8_t* out) {
  const Findings& found = *args.found;
  if (threadIdx.x == 0) {
    storeBytes(out, static_cast<std::uint32_t>(found.n_patterns), 4);
  }
  for (std::uint64_t i = threadIdx.x; i < found.n_patterns; i += kGroupThreads) {
    storeBytes(out + 4 + i * sizeof(T), found.patterns[i], sizeof(T));
  }
  if (threadIdx.x < found.n_layers) {
    out[layerAt<T>(found, threadIdx.x)] = formOf(found, threadIdx.x, field.n_values);
  }
  if (threadIdx.x < contextsOf(grid) && formOf(found, 0, field.n_values) == kBricksOfChances) {
    out[headBytes<T>(found) + 1 + threadIdx.x] = found.chances.of_one[threadIdx.x];
  }
}

/// The block: the missing values of a tile in order.
template <class T>
__device__ void writeRaw(const EncodeArgs& args,
                         std::uint64_t n_values,
                         std::uint64_t tile,
                         std::uint8_t* out) {
  __shared__ std::uint32_t warp_sums[kGroupThreads / kWarp];
  __shared__ std::uint64_t before;
  constexpr unsigned kPerThread = kTileValues / kGroupThreads;
  static_assert(32 % kPerThread == 0);
  const std::uint64_t first = tile * kTileValues + std::uint64_t{threadIdx.x} * kPerThread;
  const std::uint64_t left = first < n_values ? n_values - first : 0;
  const unsigned missing =
      left == 0 ? 0
                : args.words[first / 32] >> (first % 32) &
                      lowRow(left < kPerThread ? static_cast<std::uint32_t>(left) : kPerThread);
  std::uint32_t n_tile = 0;
  std::uint64_t rank = cuda::blockExclusiveSum<kGroupThreads>(
      static_cast<std::uint32_t>(__popc(missing)), warp_sums, &n_tile);
  const cuda::LookBack look_back{args.ranks};
  if (warpId() == 0) {
    if (laneId() == 0) {
      look_back.publish(tile, n_tile);
    }
    __syncwarp();
    const std::uint64_t sum = look_back.prefix(tile, n_tile);
    if (laneId() == 0) {
      before = sum;
    }
  }
  __syncthreads();
  rank += before;
  const auto* values = reinterpret_cast<const BitsOf<T>*>(args.in);
  for (unsigned left = missing; left != 0; left &= left - 1, ++rank) {
    storeBytes(out + rank * sizeof(T), values[first + bits::firstSet(left)], sizeof(T));
  }
}

/// Where missing values have too many patterns, they stand in the stream one by one.
template <class T>
__device__ void writeRawTiles(const EncodeArgs& args, std::uint64_t n_values, std::uint8_t* out) {
  __shared__ std::uint32_t tile;
  const std::uint64_t n_tiles = (n_values + kTileValues - 1) / kTileValues;
  while (true) {
    if (threadIdx.x == 0) {
      tile = cuda::TileTicket{&args.found->next_tile}.take();
    }
    __syncthreads();
    const std::uint32_t own = tile;
    if (own >= n_tiles) {
      return;
    }
    writeRaw<T>(args, n_values, own, out);
    __syncthreads();
  }
}

/// A block for each group of bricks, and some for values one by one.
template <class T>
__global__ void __launch_bounds__(kGroupThreads) streamKernel(EncodeArgs args) {
  const Findings& found = *args.found;
  const Field field = fieldOf(args.shape, sizeof(T));
  const std::uint64_t n_bytes = streamBytes<T>(found);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    cuda::publishSize(args.record, 1, n_bytes, args.mask.capacity_bytes);
  }
  if (n_bytes == 0 || n_bytes > args.mask.capacity_bytes) {
    return;
  }
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  std::uint8_t* const out = args.mask.data;
  if (blockIdx.x == 0) {
    writeHeads<T>(args, field, grid, out);
  }
  if (blockIdx.x < args.max_groups) {
    for (std::uint32_t layer = 0; layer < found.n_layers; ++layer) {
      if (formOf(found, layer, field.n_values) >= kBricks && blockIdx.x < groupsOf(grid)) {
        writeGroup(args, grid, layer, blockIdx.x, out + layerAt<T>(found, layer));
      }
    }
  } else if (found.n_patterns == 0) {
    writeRawTiles<T>(args, field.n_values, out + layerAt<T>(found, found.n_layers));
  }
}

}  // namespace

template <class T>
void launchWrite(const EncodeArgs& args, const cuda::Call& call) {
  call.launch("mask: stream", streamKernel<T>,
              static_cast<unsigned>(args.max_groups) + rareBlocks(args.max_values / kTileValues),
              kGroupThreads, 0, args);
}

template <class T>
void launchEncode(const EncodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  launchFind(args, fills, call);
  launchHold<T>(args, call);
  launchBricks<T>(args, call);
  launchWrite<T>(args, call);
}

template void launchWrite<float>(const EncodeArgs&, const cuda::Call&);
template void launchWrite<double>(const EncodeArgs&, const cuda::Call&);
template void launchEncode(const EncodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchEncode(const EncodeArgs&, const Fills<double>&, const cuda::Call&);

}  // namespace fz::mask
