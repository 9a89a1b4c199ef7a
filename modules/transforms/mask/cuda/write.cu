// The port "mask": the dictionary of patterns, then the bricks of all layers, which are coded to
// wherever there is room, then their places in the stream, then the stream.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "backends/cuda/tile_ticket.cuh"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/bricks.cuh"
#include "transforms/mask/cuda/lane_coder.cuh"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

namespace {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kBrickThreads = kBrickWarps * kWarp;
constexpr unsigned kTileWarps = kTileThreads / kWarp;
constexpr unsigned kBrickRoom = 4;  // more blocks, where a rare kernel does long work

__device__ __forceinline__ std::uint64_t kindBytes(std::uint64_t n_bricks) {
  return (n_bricks + 3) / 4;
}
template <class T>
__device__ __forceinline__ std::uint64_t headBytes(const Findings& found) {
  return 4 + found.n_patterns * sizeof(T);
}

/// One block: patterns in order.
template <class T>
__global__ void __launch_bounds__(kKeySlots) dictionaryKernel(EncodeArgs args) {
  __shared__ std::uint64_t keys[kMaxKeys];
  __shared__ std::uint32_t n_taken;
  Findings& found = *args.found;
  if (threadIdx.x == 0) {
    n_taken = 0;
    args.record->value[kMissingSlot] = found.n_missing;
    args.record->value[kFilledSlot] = found.n_filled;
  }
  __syncthreads();
  const std::uint32_t n = found.has_too_many != 0 ? 0 : static_cast<std::uint32_t>(found.n_keys);
  const std::uint64_t key = found.keys[threadIdx.x];
  if (n != 0 && key != 0) {
    keys[atomicAdd(&n_taken, 1u)] = key ^ args.marker;  // order-free: they are sorted
  }
  __syncthreads();
  if (threadIdx.x < n) {
    const std::uint64_t pattern = keys[threadIdx.x];
    std::uint32_t rank = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      rank += keys[i] < pattern ? 1u : 0u;
    }
    found.patterns[rank] = pattern;
  }
  if (threadIdx.x == 0) {
    found.n_patterns = n;
    found.n_layers = found.n_missing == 0 ? 0 : 1 + (n < 2 ? 0 : bits::bitWidth(n - 1));
  }
}

/// One of the bits of a missing value's place in the dictionary.
template <class T>
__device__ bool indexBit(const Findings& found, BitsOf<T> value, std::uint32_t bit) {
  std::uint32_t low = 0;
  std::uint32_t n = static_cast<std::uint32_t>(found.n_patterns);
  while (n > 1) {
    const std::uint32_t half = n / 2;
    low = found.patterns[low + half] <= value ? low + half : low;
    n -= half;
  }
  return (low >> bit & 1) != 0;
}

/// The warp: rows of a brick as they are in a layer.
template <class T>
__device__ BrickKind loadRows(const EncodeArgs& args,
                              const Grid& grid,
                              const Brick& brick,
                              std::uint32_t layer,
                              std::uint64_t* rows) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(args.words);
  std::uint64_t ones = 0;
  std::uint64_t zeros = 0;
  forLaneRows(brick, [&](std::uint32_t row) {
    const std::uint32_t n = brick.rowBits(grid, row);
    rows[row] = loadBits(words, brick.rowStart(grid, row), n);
    ones |= rows[row];
    zeros |= rows[row] ^ lowBits(n);
  });
  BrickKind kind = kindOf(ones, zeros);
  if (layer == 0 || kind == kNone) {
    return kind;
  }
  const auto* values = reinterpret_cast<const BitsOf<T>*>(args.in);
  ones = 0;
  zeros = 0;
  for (std::uint32_t row = 0; row < brick.rows(); ++row) {
    const std::uint64_t missing = rows[row];
    const std::uint64_t start = brick.rowStart(grid, row);
    std::uint64_t bits = 0;
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t place = half * kWarp + laneId();
      const bool is_one =
          (missing >> place & 1) != 0 && indexBit<T>(*args.found, values[start + place], layer - 1);
      bits |= std::uint64_t{__ballot_sync(kAllLanes, is_one)} << (half * kWarp);
    }
    ones |= bits;
    zeros |= bits ^ lowBits(brick.rowBits(grid, row));
    __syncwarp();
    if (laneId() == 0) {
      rows[row] = bits;
    }
  }
  __syncwarp();
  return kindOf(ones, zeros);
}

__device__ __forceinline__ std::uint32_t countOnes(const Brick& brick, const std::uint64_t* rows) {
  std::uint32_t n = 0;
  forLaneRows(brick,
              [&](std::uint32_t row) { n += static_cast<std::uint32_t>(__popcll(rows[row])); });
  return cuda::warpSum(n);
}

/// The warp: bytes to where the arena has room. What does not fit will not fit the output either.
__device__ std::uint64_t keepBytes(const EncodeArgs& args,
                                   const std::uint8_t* bytes,
                                   std::uint32_t n_bytes) {
  std::uint64_t at = 0;
  if (laneId() == 0) {
    at = atomicAdd(reinterpret_cast<unsigned long long*>(&args.found->arena_bytes),
                   static_cast<unsigned long long>(n_bytes));  // order-free: a place to copy from
  }
  at = __shfl_sync(kAllLanes, at, 0);
  if (at + n_bytes <= args.mask.capacity_bytes) {
    for (std::uint32_t i = laneId(); i < n_bytes; i += kWarp) {
      args.arena[at + i] = bytes[i];
    }
  }
  return at;
}

__device__ void noteBrick(const EncodeArgs& args,
                          std::uint32_t layer,
                          std::uint64_t brick,
                          BrickKind kind,
                          std::uint32_t n_bytes,
                          std::uint64_t at) {
  const std::uint64_t slot = layer * args.max_bricks + brick;
  args.kinds[slot] = kind;
  args.brick_bytes[slot] = static_cast<std::uint16_t>(n_bytes);
  args.arena_at[slot] = at;
}

/// A warp for several bricks of the first layer, each to its own slot.
template <class T>
__global__ void __launch_bounds__(kWarp) firstLayerKernel(EncodeArgs args) {
  __shared__ std::uint64_t rows[kLaneBricks][kBrickRows + 1];  // threads meet in no bank
  __shared__ LaneChances<kLaneBricks>::Table chances;
  if (args.found->n_missing == 0) {
    return;
  }
  const Field field = fieldOf(args.shape, sizeof(T));
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  const std::uint64_t n_bricks = grid.bricks();
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kLaneBricks;
  const std::uint64_t slot_bytes = slotBytes(grid);
  BrickKind kind = kNone;
  std::uint32_t n_ones = 0;
  for (std::uint32_t k = 0; k < kLaneBricks && first + k < n_bricks; ++k) {
    const Brick brick = brickAt(grid, first + k);
    const BrickKind found = loadRows<T>(args, grid, brick, 0, rows[k]);
    kind = laneId() == k ? found : kind;
    n_ones += found == kNone ? 0 : countOnes(brick, rows[k]);
  }
  const std::uint64_t own = first + laneId();
  std::uint32_t n_bytes = 0;
  if (laneId() < kLaneBricks && own < n_bricks && kind == kCoded) {
    const Brick brick = brickAt(grid, own);
    const std::uint32_t raw_bytes = brick.rawBytes(grid);
    LaneEncoder<kLaneBricks> encoder({chances, laneId()}, args.slots + own * slot_bytes, raw_bytes);
    codeLaneBrick(encoder, grid, brick, rows[laneId()]);
    n_bytes = encoder.isDone() ? raw_bytes : encoder.finish();
    if (n_bytes >= raw_bytes) {
      kind = kRaw;
      n_bytes = raw_bytes;
    }
  }
  __syncwarp();
  const unsigned raw = __ballot_sync(kAllLanes, kind == kRaw);
  for (std::uint32_t k = 0; k < kLaneBricks; ++k) {
    if ((raw >> k & 1) != 0) {
      packRaw(grid, brickAt(grid, first + k), rows[k], args.slots + (first + k) * slot_bytes);
    }
  }
  if (laneId() < kLaneBricks && own < n_bricks) {
    noteBrick(args, 0, own, kind, n_bytes, own * slot_bytes);
  }
  if (laneId() == 0 && n_ones != 0) {
    addTo(&args.found->n_ones[0], n_ones);
  }
}

/// A warp for each brick of the layers that tell patterns apart.
template <class T>
__global__ void __launch_bounds__(kBrickThreads) brickKernel(EncodeArgs args) {
  __shared__ std::uint64_t all_rows[kBrickWarps][kBrickRows];
  __shared__ std::uint8_t all_bytes[kBrickWarps][kMaxRawBytes];
  std::uint64_t* const rows = all_rows[warpId()];
  std::uint8_t* const bytes = all_bytes[warpId()];
  const Field field = fieldOf(args.shape, sizeof(T));
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  const std::uint64_t n_bricks = grid.bricks();
  const std::uint64_t n_all = n_bricks * args.found->n_layers;
  for (std::uint64_t i = n_bricks + std::uint64_t{blockIdx.x} * kBrickWarps + warpId(); i < n_all;
       i += std::uint64_t{gridDim.x} * kBrickWarps) {
    const auto layer = static_cast<std::uint32_t>(i / n_bricks);
    const Brick brick = brickAt(grid, i % n_bricks);
    BrickKind kind = loadRows<T>(args, grid, brick, layer, rows);
    std::uint32_t n_bytes = 0;
    std::uint64_t at = 0;
    if (kind == kCoded) {
      const std::uint32_t raw_bytes = brick.rawBytes(grid);
      if (laneId() == 0) {
        BitEncoder encoder(bytes, raw_bytes);
        codeBrick(encoder, grid, brick, rows);
        n_bytes = encoder.finish();
      }
      n_bytes = __shfl_sync(kAllLanes, n_bytes, 0);
      __syncwarp();
      if (n_bytes >= raw_bytes) {
        kind = kRaw;
        n_bytes = raw_bytes;
        packRaw(grid, brick, rows, bytes);
      }
      at = keepBytes(args, bytes, n_bytes);
    }
    const std::uint32_t n_ones = kind == kNone ? 0 : countOnes(brick, rows);
    if (laneId() == 0) {
      noteBrick(args, layer, i % n_bricks, kind, n_bytes, at);
      if (n_ones != 0) {
        addTo(&args.found->n_ones[layer], n_ones);
      }
    }
    __syncwarp();
  }
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
  call.launch("mask: dictionary", dictionaryKernel<T>, 1, kKeySlots, 0, args);
  call.launch("mask: bricks", firstLayerKernel<T>, cuda::gridFor(args.max_bricks, kLaneBricks),
              kWarp, 0, args);
  call.launch("mask: bricks of patterns", brickKernel<T>,
              std::min(kRareBlocks * kBrickRoom * cuda::multiprocessorCount(),
                       cuda::gridFor(args.max_bricks, kBrickWarps)),
              kBrickThreads, 0, args);
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
  launchWrite<T>(args, call);
}

template void launchWrite<float>(const EncodeArgs&, const cuda::Call&);
template void launchWrite<double>(const EncodeArgs&, const cuda::Call&);
template void launchEncode(const EncodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchEncode(const EncodeArgs&, const Fills<double>&, const cuda::Call&);

}  // namespace fz::mask
