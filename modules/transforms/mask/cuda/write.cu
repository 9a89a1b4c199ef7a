// The port "mask": the places of coded bricks in the stream, then the stream.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "backends/cuda/tile_ticket.cuh"
#include "fz/cuda_part.h"
#include "transforms/mask/codec.h"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

namespace {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kTileWarps = kTileThreads / kWarp;

__device__ __forceinline__ std::uint64_t kindBytes(std::uint64_t n_bricks) {
  return (n_bricks + 3) / 4;
}
template <class T>
__device__ __forceinline__ std::uint64_t headBytes(const Findings& found) {
  return 4 + found.n_patterns * sizeof(T);
}

__device__ __forceinline__ LayerForm formOf(const Findings& found,
                                            std::uint32_t layer,
                                            std::uint64_t n_values) {
  const std::uint64_t n_ones = found.n_ones[layer];
  return n_ones == 0 ? kAllZeros : n_ones == n_values ? kAllOnes : kBricks;
}

/// A block for each layer: where the bytes of its bricks go.
__global__ void __launch_bounds__(kPlanThreads)
    placeKernel(EncodeArgs args, std::uint32_t value_bytes) {
  __shared__ std::uint64_t warp_sums[2][kPlanThreads / kWarp];
  const Field field = fieldOf(args.shape, value_bytes);
  Findings& found = *args.found;
  const std::uint32_t layer = blockIdx.x;
  if (layer >= found.n_layers) {
    return;
  }
  if (formOf(found, layer, field.n_values) != kBricks) {
    if (threadIdx.x == 0) {
      found.layer_bytes[layer] = 1;
    }
    return;
  }
  const std::uint64_t n_bricks =
      makeGrid(field.extents[0], field.extents[1], field.extents[2]).bricks();
  const std::uint64_t share = (n_bricks + kPlanThreads - 1) / kPlanThreads;
  const std::uint64_t begin = min(n_bricks, threadIdx.x * share);
  const std::uint64_t end = min(n_bricks, begin + share);
  const std::uint64_t slots = layer * args.max_bricks;
  std::uint64_t n_bytes = 0;
  std::uint64_t n_coded = 0;
  for (std::uint64_t i = begin; i < end; ++i) {
    n_bytes += args.brick_bytes[slots + i];
    n_coded += args.kinds[slots + i] == kCoded ? 1u : 0u;
  }
  std::uint64_t all_bytes = 0;
  std::uint64_t all_coded = 0;
  std::uint64_t to = cuda::blockExclusiveSum<kPlanThreads>(n_bytes, warp_sums[0], &all_bytes);
  std::uint64_t coded = cuda::blockExclusiveSum<kPlanThreads>(n_coded, warp_sums[1], &all_coded);
  const std::uint64_t bricks_at = 1 + kindBytes(n_bricks) + 2 * all_coded;
  for (std::uint64_t i = begin; i < end; ++i) {
    args.to[slots + i] = bricks_at + to;
    args.n_coded[slots + i] = static_cast<std::uint32_t>(coded);
    to += args.brick_bytes[slots + i];
    coded += args.kinds[slots + i] == kCoded ? 1u : 0u;
  }
  if (threadIdx.x == 0) {
    found.layer_bytes[layer] = bricks_at + all_bytes;
  }
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
  const std::uint64_t n_raw = found.n_patterns == 0 ? found.n_missing : 0;
  return found.n_missing == 0 ? 0 : layerAt<T>(found, found.n_layers) + n_raw * sizeof(T);
}

template <class U>
__device__ void storeBytes(std::uint8_t* out, U value, std::uint32_t n_bytes) {
  for (std::uint32_t i = 0; i < n_bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// The warp: what stands in the stream for one brick.
__device__ void writeBrick(const EncodeArgs& args,
                           std::uint64_t n_bricks,
                           std::uint64_t brick,
                           std::uint64_t slots,
                           std::uint8_t* out) {
  const std::uint64_t slot = slots + brick;
  const std::uint8_t kind = args.kinds[slot];
  if (laneId() == 0) {
    if (brick == 0) {
      out[0] = kBricks;
    }
    if (brick % 4 == 0) {
      unsigned four = 0;
      for (std::uint64_t k = 0; k < 4 && brick + k < n_bricks; ++k) {
        four |= static_cast<unsigned>(args.kinds[slot + k]) << (2 * k);
      }
      out[1 + brick / 4] = static_cast<std::uint8_t>(four);
    }
    if (kind == kCoded) {
      storeBytes(out + 1 + kindBytes(n_bricks) + 2 * std::uint64_t{args.n_coded[slot]},
                 std::uint32_t{args.brick_bytes[slot]}, 2);
    }
  }
  const std::uint8_t* const bytes = (slots == 0 ? args.slots : args.arena) + args.arena_at[slot];
  std::uint8_t* const to = out + args.to[slot];
  for (std::uint32_t i = laneId(); i < args.brick_bytes[slot]; i += kWarp) {
    to[i] = bytes[i];
  }
}

template <class T>
__global__ void __launch_bounds__(kTileThreads) streamKernel(EncodeArgs args) {
  const Findings& found = *args.found;
  const Field field = fieldOf(args.shape, sizeof(T));
  const std::uint64_t n_bytes = streamBytes<T>(found);
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * kTileThreads + threadIdx.x;
  if (thread == 0) {
    cuda::publishSize(args.record, 1, n_bytes, args.mask.capacity_bytes);
  }
  if (n_bytes == 0 || n_bytes > args.mask.capacity_bytes) {
    return;
  }
  std::uint8_t* const out = args.mask.data;
  if (thread == 0) {
    storeBytes(out, static_cast<std::uint32_t>(found.n_patterns), 4);
  }
  if (thread < found.n_patterns) {
    storeBytes(out + 4 + thread * sizeof(T), found.patterns[thread], sizeof(T));
  }
  if (thread < found.n_layers) {
    const LayerForm form = formOf(found, static_cast<std::uint32_t>(thread), field.n_values);
    if (form != kBricks) {
      out[layerAt<T>(found, thread)] = form;
    }
  }
  const std::uint64_t n_bricks =
      makeGrid(field.extents[0], field.extents[1], field.extents[2]).bricks();
  for (std::uint64_t i = thread / kWarp; i < n_bricks * found.n_layers;
       i += std::uint64_t{gridDim.x} * kTileWarps) {
    const auto layer = static_cast<std::uint32_t>(i / n_bricks);
    if (formOf(found, layer, field.n_values) == kBricks) {
      writeBrick(args, n_bricks, i % n_bricks, layer * args.max_bricks,
                 out + layerAt<T>(found, layer));
    }
  }
}

/// The block: the missing values of a tile in order.
template <class T>
__device__ void writeRaw(const EncodeArgs& args, std::uint64_t tile, std::uint8_t* out) {
  __shared__ std::uint32_t warp_sums[kTileWarps];
  __shared__ std::uint64_t before;
  constexpr unsigned kPerThread = kTileValues / kTileThreads;
  static_assert(32 % kPerThread == 0);
  const std::uint64_t first = tile * kTileValues + std::uint64_t{threadIdx.x} * kPerThread;
  const unsigned missing =
      args.words[first / 32] >> (first % 32) & static_cast<unsigned>(lowBits(kPerThread));
  std::uint32_t n_tile = 0;
  std::uint64_t rank = cuda::blockExclusiveSum<kTileThreads>(
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
__global__ void __launch_bounds__(kTileThreads) rawKernel(EncodeArgs args) {
  __shared__ std::uint32_t tile;
  const Findings& found = *args.found;
  if (found.n_missing == 0 || found.n_patterns != 0 ||
      streamBytes<T>(found) > args.mask.capacity_bytes) {
    return;
  }
  const std::uint64_t n_values = fieldOf(args.shape, sizeof(T)).n_values;
  const std::uint64_t n_tiles = (n_values + kTileValues - 1) / kTileValues;
  std::uint8_t* const out = args.mask.data + layerAt<T>(found, found.n_layers);
  while (true) {
    if (threadIdx.x == 0) {
      tile = cuda::TileTicket{&args.found->next_tile}.take();
    }
    __syncthreads();
    const std::uint32_t own = tile;
    if (own >= n_tiles) {
      return;
    }
    writeRaw<T>(args, own, out);
    __syncthreads();
  }
}

}  // namespace

template <class T>
void launchWrite(const EncodeArgs& args, const cuda::Call& call) {
  call.launch("mask: places", placeKernel, kMaxLayers, kPlanThreads, 0, args,
              static_cast<std::uint32_t>(sizeof(T)));
  call.launch("mask: stream", streamKernel<T>, cuda::gridFor(args.max_bricks, kTileWarps),
              kTileThreads, 0, args);
  call.launch("mask: values", rawKernel<T>,
              std::min(kRareBlocks * cuda::multiprocessorCount(),
                       cuda::gridFor(args.max_values, kTileValues)),
              kTileThreads, 0, args);
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
