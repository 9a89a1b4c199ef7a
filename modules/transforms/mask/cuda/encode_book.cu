// What masks of several patterns have behind the first layer: layers that tell them apart, or the
// missing values one by one.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/last_block.cuh"
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

constexpr unsigned kWarps = kOtherThreads / kWarp;

/// One of the bits of a missing value's place in the dictionary.
template <class T>
__device__ bool indexBit(const Findings& found, BitsOf<T> value, std::uint32_t bit) {
  std::uint32_t low = 0;
  std::uint32_t n = patternsOf(found);
  while (n > 1) {
    const std::uint32_t half = n / 2;
    low = found.patterns[low + half] <= value ? low + half : low;
    n -= half;
  }
  return (low >> bit & 1) != 0;
}

/// The warp: rows of a brick in a layer that tells patterns apart.
template <class T>
__device__ BrickKind loadRows(const EncodeArgs& args,
                              const Grid& grid,
                              const Brick& brick,
                              std::uint32_t layer,
                              std::uint32_t* rows) {
  std::uint32_t ones = 0;
  std::uint32_t zeros = 0;
  forLaneRows(brick, [&](std::uint32_t row) {
    rows[row] = loadRow(args.words, brick.rowStart(grid, row), brick.rowBits(grid, row));
    ones |= rows[row];
  });
  if (kindOf(ones, ones) == kNone) {
    return kNone;
  }
  const auto* values = reinterpret_cast<const BitsOf<T>*>(args.in);
  ones = 0;
  zeros = 0;
  for (std::uint32_t row = 0; row < brick.rows(); ++row) {
    const std::uint64_t start = brick.rowStart(grid, row);
    const bool is_one = (rows[row] >> laneId() & 1) != 0 &&
                        indexBit<T>(*args.found, values[start + laneId()], layer - 1);
    const std::uint32_t bits = __ballot_sync(kAllLanes, is_one);
    ones |= bits;
    zeros |= bits ^ lowRow(brick.rowBits(grid, row));
    __syncwarp();
    if (laneId() == 0) {
      rows[row] = bits;
    }
  }
  __syncwarp();
  return kindOf(ones, zeros);
}

__device__ __forceinline__ std::uint32_t countOnes(const Brick& brick, const std::uint32_t* rows) {
  std::uint32_t n = 0;
  forLaneRows(brick,
              [&](std::uint32_t row) { n += static_cast<std::uint32_t>(__popc(rows[row])); });
  return cuda::warpSum(n);
}

/// The warp: bytes to where the arena has room. What does not fit will not fit the output either.
__device__ std::uint64_t keepBytes(const EncodeArgs& args,
                                   const std::uint8_t* bytes,
                                   std::uint32_t n_bytes) {
  std::uint64_t at = 0;
  if (laneId() == 0) {
    auto* const n_taken = reinterpret_cast<unsigned long long*>(&args.found->arena_bytes);
    const unsigned long long n_more = n_bytes;
    at = atomicAdd(n_taken, n_more);  // order-free: a place to copy from
  }
  at = __shfl_sync(kAllLanes, at, 0);
  if (at + n_bytes <= args.mask.capacity_bytes) {
    for (std::uint32_t i = laneId(); i < n_bytes; i += kWarp) {
      args.arena[at + i] = bytes[i];
    }
  }
  return at;
}

/// What becomes of a brick; layers count from 1.
__device__ void noteBrick(const EncodeArgs& args,
                          std::uint32_t layer,
                          std::uint64_t brick,
                          BrickKind kind,
                          std::uint32_t n_bytes,
                          std::uint64_t at) {
  const std::uint64_t slot = (layer - 1) * args.max_bricks + brick;
  args.kinds[slot] = kind;
  args.brick_bytes[slot] = static_cast<std::uint16_t>(n_bytes);
  args.arena_at[slot] = at;
}

/// A warp of some blocks for each brick of the layers that tell patterns apart.
template <class T>
__device__ void codeOthers(const EncodeArgs& args, const Grid& grid) {
  __shared__ std::uint32_t all_rows[kWarps][kBrickRows];
  __shared__ std::uint8_t all_bytes[kWarps][kMaxRawBytes];
  std::uint32_t* const rows = all_rows[warpId()];
  std::uint8_t* const bytes = all_bytes[warpId()];
  Chances first;
  first.reset();
  const std::uint64_t n_bricks = grid.bricks();
  const std::uint64_t n_all = n_bricks * layersOf(*args.found);
  for (std::uint64_t i = n_bricks + std::uint64_t{blockIdx.x} * kWarps + warpId(); i < n_all;
       i += std::uint64_t{gridDim.x} * kWarps) {
    const auto layer = static_cast<std::uint32_t>(i / n_bricks);
    const Brick brick = brickAt(grid, i % n_bricks);
    BrickKind kind = loadRows<T>(args, grid, brick, layer, rows);
    std::uint32_t n_bytes = 0;
    std::uint64_t at = 0;
    if (kind == kCoded) {
      const std::uint32_t raw_bytes = brick.rawBytes(grid);
      if (laneId() == 0) {
        BitEncoder encoder(first, bytes, raw_bytes);
        codeBrick(encoder, grid, brick, rows);
        n_bytes = encoder.finish();
      }
      n_bytes = __shfl_sync(kAllLanes, n_bytes, 0);
      __syncwarp();
      if (!isWorthCoding(n_bytes, raw_bytes)) {
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
  const std::uint64_t n_raw = patternsOf(found) == 0 ? found.n_ones[0] : 0;
  return layerAt<T>(found, layersOf(found)) + n_raw * sizeof(T);
}

/// One thread: bytes of a group's record.
__device__ std::uint32_t recordBytes(const EncodeArgs& args,
                                     const Grid& grid,
                                     std::uint32_t layer,
                                     std::uint64_t group) {
  const std::uint32_t n = grid.bricksOf(group);
  const std::uint64_t first = (layer - 1) * args.max_bricks + group * kGroupBricks;
  bool is_zero = true;
  bool is_all_ones = true;
  std::uint32_t n_bytes = kindBytes(n);
#pragma unroll 8
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint8_t kind = args.kinds[first + i];
    is_zero = is_zero && kind == kNone;
    is_all_ones = is_all_ones && kind == kAll;
    n_bytes += args.brick_bytes[first + i] + (kind == kCoded ? 1u : 0u);
  }
  return is_zero ? 0 : is_all_ones ? 1 : n_bytes;
}

/// All threads of a block, when all bricks are coded: where the groups of a layer end.
__device__ void placeLayer(const EncodeArgs& args,
                           std::uint64_t n_values,
                           const Grid& grid,
                           std::uint32_t layer) {
  __shared__ std::uint64_t warp_sums[kWarps];
  Findings& found = *args.found;
  if (formOf(found, layer, found.n_ones[layer], n_values) < kBricks) {
    if (threadIdx.x == 0) {
      found.layer_bytes[layer] = 1;
    }
    return;
  }
  const std::uint64_t n_groups = grid.groups();
  const std::uint64_t share = (n_groups + kOtherThreads - 1) / kOtherThreads;
  const std::uint64_t begin = min(n_groups, threadIdx.x * share);
  const std::uint64_t end = min(n_groups, begin + share);
  std::uint32_t* const ends = args.group_ends + (layer - 1) * args.max_groups;
  std::uint64_t n_bytes = 0;
  for (std::uint64_t i = begin; i < end; ++i) {
    ends[i] = recordBytes(args, grid, layer, i);
    n_bytes += ends[i];
  }
  std::uint64_t all_bytes = 0;
  std::uint64_t at = cuda::blockExclusiveSum<kOtherThreads>(n_bytes, warp_sums, &all_bytes);
  for (std::uint64_t i = begin; i < end; ++i) {
    at += ends[i];
    ends[i] = static_cast<std::uint32_t>(at);
  }
  if (threadIdx.x == 0) {
    found.layer_bytes[layer] = 1 + n_groups * kEndBytes + all_bytes;
  }
}

/// Bricks of the layers that tell patterns apart; then, when all of them are coded, where they go.
template <class T>
__global__ void __launch_bounds__(kOtherThreads) otherBricksKernel(EncodeArgs args) {
  if (!hasMissing(*args.found) || !hasOthers(*args.found)) {
    return;
  }
  const Field field = fieldOf(args.shape, sizeof(T));
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  codeOthers<T>(args, grid);
  if (cuda::isLastBlock(&args.found->n_done)) {
    for (std::uint32_t layer = 1; layer < layersOf(*args.found); ++layer) {
      placeLayer(args, field.n_values, grid, layer);
      __syncthreads();
    }
  }
}

/// The block: a group of a layer.
__device__ void writeGroup(const EncodeArgs& args,
                           const Grid& grid,
                           std::uint32_t layer,
                           std::uint64_t group,
                           std::uint8_t* layer_out) {
  __shared__ std::uint32_t warp_sums[2][kWarps];
  const std::uint32_t n = grid.bricksOf(group);
  const std::uint64_t slot =
      (layer - 1) * args.max_bricks + group * kGroupBricks + (threadIdx.x < n ? threadIdx.x : 0);
  const GroupRecord record = planRecord<kOtherThreads>(n, static_cast<BrickKind>(args.kinds[slot]),
                                                       args.brick_bytes[slot], warp_sums);
  const std::uint32_t end = args.group_ends[(layer - 1) * args.max_groups + group];
  if (threadIdx.x < kEndBytes) {
    layer_out[1 + group * kEndBytes + threadIdx.x] =
        static_cast<std::uint8_t>(end >> (8 * threadIdx.x));
  }
  record.write(layer_out + 1 + grid.groups() * kEndBytes + end - record.n_bytes,
               args.arena + (record.brick_bytes != 0 ? args.arena_at[slot] : 0));
  __syncthreads();
}

/// The block: the missing values of a tile in order.
template <class T>
__device__ void writeRaw(const EncodeArgs& args,
                         std::uint64_t n_values,
                         std::uint64_t tile,
                         std::uint8_t* out) {
  __shared__ std::uint32_t warp_sums[kOtherThreads / kWarp];
  __shared__ std::uint64_t before;
  constexpr unsigned kPerThread = kTileValues / kOtherThreads;
  static_assert(32 % kPerThread == 0);
  const std::uint64_t first = tile * kTileValues + std::uint64_t{threadIdx.x} * kPerThread;
  const std::uint64_t left = first < n_values ? n_values - first : 0;
  const unsigned missing =
      left == 0 ? 0
                : args.words[first / 32] >> (first % 32) &
                      lowRow(left < kPerThread ? static_cast<std::uint32_t>(left) : kPerThread);
  std::uint32_t n_tile = 0;
  std::uint64_t rank = cuda::blockExclusiveSum<kOtherThreads>(
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

/// What stands behind the first layer.
template <class T>
__global__ void __launch_bounds__(kOtherThreads) othersKernel(EncodeArgs args) {
  const Findings& found = *args.found;
  if (!hasMissing(found) || !hasOthers(found)) {
    return;
  }
  const Field field = fieldOf(args.shape, sizeof(T));
  const std::uint64_t n_bytes = streamBytes<T>(found);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    cuda::publishSize(args.record, 1, n_bytes, args.mask.capacity_bytes);
  }
  if (n_bytes > args.mask.capacity_bytes) {
    return;
  }
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  std::uint8_t* const out = args.mask.data;
  for (std::uint32_t layer = 1; layer < layersOf(found); ++layer) {
    std::uint8_t* const layer_out = out + layerAt<T>(found, layer);
    const LayerForm form = formOf(found, layer, found.n_ones[layer], field.n_values);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      *layer_out = form;
    }
    for (std::uint64_t group = blockIdx.x; form >= kBricks && group < grid.groups();
         group += gridDim.x) {
      writeGroup(args, grid, layer, group, layer_out);
    }
  }
  if (patternsOf(found) == 0) {
    writeRawTiles<T>(args, field.n_values, out + layerAt<T>(found, layersOf(found)));
  }
}

/// Blocks for work that there seldom is, in a grid that has more.
unsigned rareBlocks(std::uint64_t most) {
  return static_cast<unsigned>(
      std::min<std::uint64_t>(kRareBlocks * cuda::multiprocessorCount(), most + 1));
}

}  // namespace

template <class T>
void launchWriteOthers(const EncodeArgs& args, const cuda::Call& call) {
  call.launch("mask: other bricks", otherBricksKernel<T>, rareBlocks(args.max_bricks / kWarps),
              kOtherThreads, 0, args);
  call.launch("mask: others", othersKernel<T>, rareBlocks(args.max_values / kTileValues),
              kOtherThreads, 0, args);
}

template <class T>
void launchEncode(const EncodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  launchFind(args, fills, call);
  launchHold<T>(args, call);
  launchLook<T>(args, call);
  launchBricks<T>(args, call);
  launchPlace<T>(args, call);
  launchWriteOthers<T>(args, call);
}

template void launchWriteOthers<float>(const EncodeArgs&, const cuda::Call&);
template void launchWriteOthers<double>(const EncodeArgs&, const cuda::Call&);
template void launchEncode(const EncodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchEncode(const EncodeArgs&, const Fills<double>&, const cuda::Call&);

}  // namespace fz::mask
