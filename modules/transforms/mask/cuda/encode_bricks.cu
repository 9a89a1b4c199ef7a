// The dictionary of patterns, and the bricks of all layers, coded to wherever there is room.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/lane_coder.cuh"
#include "transforms/mask/cuda/place.cuh"

namespace fz::mask {

namespace {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kGroupWarps = kGroupThreads / kWarp;

/// All threads of a block of kBrickRows: patterns in order.
__device__ void findPatterns(const EncodeArgs& args) {
  __shared__ std::uint64_t keys[kMaxKeys];
  __shared__ std::uint32_t n_taken;
  Findings& found = *args.found;
  if (threadIdx.x == 0) {
    n_taken = 0;
  }
  __syncthreads();
  const std::uint32_t n = found.has_too_many != 0 ? 0 : static_cast<std::uint32_t>(found.n_keys);
  for (std::uint32_t i = threadIdx.x; n != 0 && i < kKeySlots; i += kBrickRows) {
    const std::uint64_t key = found.keys[i];
    if (key != 0) {
      keys[atomicAdd(&n_taken, 1u)] = key ^ args.marker;  // order-free: they are sorted
    }
  }
  __syncthreads();
  for (std::uint32_t k = threadIdx.x; k < n; k += kBrickRows) {
    const std::uint64_t pattern = keys[k];
    std::uint32_t rank = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      rank += keys[i] < pattern ? 1u : 0u;
    }
    found.patterns[rank] = pattern;
  }
  if (threadIdx.x == 0) {
    found.n_patterns = n;
    found.n_layers = 1 + (n < 2 ? 0 : bits::bitWidth(n - 1));
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

constexpr std::uint32_t kCounts = sizeof(LayerCounts) / sizeof(std::uint32_t);

/// All threads, one for each row: what a brick of the first layer asks, added to all counts.
__device__ void countBrick(const EncodeArgs& args,
                           const Grid& grid,
                           const Brick& brick,
                           LayerCounts& counts) {
  __shared__ std::uint32_t rows[kBrickRows];
  auto* const own = reinterpret_cast<std::uint32_t*>(&counts);
  auto* const all = reinterpret_cast<std::uint32_t*>(&args.found->counts);
  for (std::uint32_t i = threadIdx.x; i < kCounts; i += kBrickRows) {
    own[i] = 0;
  }
  const bool is_there = threadIdx.x < brick.rows();
  std::uint32_t row = 0;
  std::uint32_t full = 0;
  if (is_there) {
    const std::uint32_t n_bits = brick.rowBits(grid, threadIdx.x);
    row = loadRow(args.words, brick.rowStart(grid, threadIdx.x), n_bits);
    full = lowRow(n_bits);
  }
  rows[threadIdx.x] = row;
  const bool has_ones = __syncthreads_or(row != 0 ? 1 : 0) != 0;
  const bool has_zeros = __syncthreads_or(row != full ? 1 : 0) != 0;
  if (!has_ones || !has_zeros) {
    return;
  }
  if (is_there) {
    countRow(grid, brick, rows, threadIdx.x, counts,
             [](std::uint32_t& n) { atomicAdd(&n, 1u); });  // order-free: only sums
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < kCounts; i += kBrickRows) {
    if (own[i] != 0) {
      atomicAdd(all + i, own[i]);  // order-free: only sums
    }
  }
}

/// All threads of the last block: chances from what was counted.
__device__ void findChances(const EncodeArgs& args, const Grid& grid, LayerCounts& counts) {
  __shared__ std::uint32_t costs[3];  // of 2^21 decisions at most
  auto* const own = reinterpret_cast<std::uint32_t*>(&counts);
  const auto* const all = reinterpret_cast<const std::uint32_t*>(&args.found->counts);
  for (std::uint32_t i = threadIdx.x; i < kCounts; i += kBrickRows) {
    own[i] = __ldcg(all + i);
  }
  if (threadIdx.x < 3) {
    costs[threadIdx.x] = 0;
  }
  __syncthreads();
  Chances first;
  first.reset();
  if (threadIdx.x < contextsOf(grid)) {
    const LayerCosts part = costsOf(counts, first, threadIdx.x);
    atomicAdd(&costs[0], static_cast<std::uint32_t>(part.asking));  // order-free: only sums
    atomicAdd(&costs[1], static_cast<std::uint32_t>(part.plain));   // order-free: only sums
    atomicAdd(&costs[2], static_cast<std::uint32_t>(part.first));   // order-free: only sums
  }
  __syncthreads();
  const LayerWay way = chooseWay({costs[0], costs[1], costs[2]}, grid);
  if (threadIdx.x < kContexts) {
    args.found->chances.of_one[threadIdx.x] =
        static_cast<std::uint8_t>(chanceIn(counts, way, first, threadIdx.x));
  }
  if (threadIdx.x == 0) {
    args.found->has_own_chances = way.has_own ? 1 : 0;
  }
}

/// Blocks that look at a brick each: what the first layer's bricks ask. The last one finds the
/// chances, and the patterns.
__global__ void __launch_bounds__(kBrickRows)
    sampleKernel(EncodeArgs args, std::uint32_t value_bytes) {
  __shared__ LayerCounts counts;
  const Field field = fieldOf(args.shape, value_bytes);
  if (blockIdx.x == 0 && threadIdx.x == 0 && field.is_good) {
    for (unsigned axis = 0; axis < 3; ++axis) {
      args.record->value[kExtentSlot + axis] = field.extents[axis];
    }
  }
  if (!hasMissing(*args.found)) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      args.found->n_patterns = 0;
      args.found->n_layers = 0;
    }
    return;
  }
  if (args.found->has_too_many != 0) {
    const std::uint64_t n_tiles = (field.n_values + kTileValues - 1) / kTileValues;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * kBrickRows + threadIdx.x; i < n_tiles;
         i += std::uint64_t{gridDim.x} * kBrickRows) {
      args.ranks[i] = 0;
    }
  }
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  const std::uint64_t index = blockIdx.x * sampleStep(grid.bricks());
  if (index < grid.bricks()) {
    countBrick(args, grid, brickAt(grid, index), counts);
  }
  if (cuda::isLastBlock(&args.found->n_sampled)) {
    findPatterns(args);
    findChances(args, grid, counts);
  }
}

/// One thread: rows back to back.
__device__ void packLane(const Grid& grid,
                         const Brick& brick,
                         const std::uint32_t* rows,
                         std::uint8_t* out) {
  std::uint64_t held = 0;
  std::uint32_t n_held = 0;
  for (std::uint32_t row = 0; row < brick.rows(); ++row) {
    held |= std::uint64_t{rows[row]} << n_held;
    n_held += brick.rowBits(grid, row);
    for (; n_held >= 8; n_held -= 8, held >>= 8) {
      *out++ = static_cast<std::uint8_t>(held);
    }
  }
  if (n_held != 0) {
    *out = static_cast<std::uint8_t>(held);
  }
}

/// A thread's brick, and what becomes of it.
struct LaneBrick {
  BrickKind kind = kNone;
  std::uint32_t n_bytes = 0;
};

/// One thread: codes a brick to its slot.
template <bool kHasBehind>
__device__ __forceinline__ LaneBrick codeLane(const Grid& grid,
                                              const Brick& brick,
                                              const LaneTable& table,
                                              std::uint32_t* rows,
                                              std::uint8_t* slot) {
  const std::uint32_t raw_bytes = brick.rawBytes(grid);
  LaneEncoder encoder(slot, raw_bytes);
  codeLaneBrick<kHasBehind>(encoder, table, grid, brick, rows);
  const std::uint32_t n_bytes = encoder.finish();
  if (isWorthCoding(n_bytes, raw_bytes)) {
    return {kCoded, n_bytes};
  }
  packLane(grid, brick, rows, slot);
  return {kRaw, raw_bytes};
}

/// What a block sums up.
struct GroupSums {
  std::uint32_t n_ones;
  std::uint32_t n_coded;
  std::uint32_t n_bytes;
};

/// All threads: which of the group's bricks are to be coded; others are noted. Returns how many.
template <bool kHasBehind>
__device__ __forceinline__ std::uint32_t listCoded(const EncodeArgs& args,
                                                   const Grid& grid,
                                                   std::uint64_t first,
                                                   std::uint32_t n,
                                                   SharedGroup& shared,
                                                   GroupSums& sums) {
  BrickKind kind = kNone;
  if (threadIdx.x < n) {
    const Brick& brick = shared.bricks[threadIdx.x];
    const std::uint32_t* const rows = shared.rows + threadIdx.x * GroupOf<kHasBehind>::kStride;
    std::uint32_t ones = 0;
    std::uint32_t zeros = 0;
    std::uint32_t n_ones = 0;
    for (std::uint32_t row = 0; row < brick.rows(); ++row) {
      ones |= rows[row];
      zeros |= rows[row] ^ lowRow(brick.rowBits(grid, row));
      n_ones += static_cast<std::uint32_t>(__popc(rows[row]));
    }
    kind = ones == 0 ? kNone : zeros == 0 ? kAll : kCoded;
    if (kind != kCoded) {
      args.kinds[first + threadIdx.x] = kind;
      args.brick_bytes[first + threadIdx.x] = 0;
    }
    if (n_ones != 0) {
      atomicAdd(&sums.n_ones, n_ones);  // order-free: only sums
    }
  }
  std::uint32_t n_coded = 0;
  const std::uint32_t rank = cuda::blockExclusiveSum<kGroupThreads>(kind == kCoded ? 1u : 0u,
                                                                    shared.warp_sums[0], &n_coded);
  if (kind == kCoded) {
    shared.coded[rank] = threadIdx.x;
  }
  __syncthreads();
  return n_coded;
}

/// A block: the bricks of its group.
template <bool kHasBehind>
__device__ __forceinline__ void codeGroup(const EncodeArgs& args,
                                          const Grid& grid,
                                          SharedGroup& shared,
                                          LaneTable& table) {
  using Group = GroupOf<kHasBehind>;
  __shared__ GroupSums sums;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * Group::kBricks;
  if (threadIdx.x == 0) {
    sums = {};
  }
  table.fill(args.found->chances);
  const std::uint32_t n = openGroup<kHasBehind>(grid, grid.bricks(), blockIdx.x, shared);
  forGroupRows<kHasBehind>(grid, n, shared,
                           [&](std::uint32_t, std::uint64_t start, std::uint32_t n_bits,
                               std::uint32_t& row) { row = loadRow(args.words, start, n_bits); });
  __syncthreads();
  const std::uint32_t n_coded = listCoded<kHasBehind>(args, grid, first, n, shared, sums);
  if (threadIdx.x < n_coded) {
    const std::uint32_t own = shared.coded[threadIdx.x];
    const LaneBrick coded =
        codeLane<kHasBehind>(grid, shared.bricks[own], table, shared.rows + own * Group::kStride,
                             args.slots + (first + own) * slotBytes(grid));
    args.kinds[first + own] = coded.kind;
    args.brick_bytes[first + own] = static_cast<std::uint16_t>(coded.n_bytes);
    atomicAdd(&sums.n_coded, coded.kind == kCoded ? 1u : 0u);  // order-free: only sums
    atomicAdd(&sums.n_bytes, coded.n_bytes);                   // order-free: only sums
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    args.groups[blockIdx.x].n_coded = sums.n_coded;
    args.groups[blockIdx.x].n_bytes = sums.n_bytes;
    if (sums.n_ones != 0) {
      addTo(&args.found->n_ones[0], sums.n_ones);
    }
  }
}

/// A warp of some blocks for each brick of the layers that tell patterns apart.
template <class T>
__device__ void codeOthers(const EncodeArgs& args, const Grid& grid) {
  __shared__ std::uint32_t all_rows[kGroupWarps][kBrickRows];
  __shared__ std::uint8_t all_bytes[kGroupWarps][kMaxRawBytes];
  std::uint32_t* const rows = all_rows[warpId()];
  std::uint8_t* const bytes = all_bytes[warpId()];
  Chances first;
  first.reset();
  const std::uint64_t n_bricks = grid.bricks();
  const std::uint64_t n_all = n_bricks * args.found->n_layers;
  for (std::uint64_t i = n_bricks + std::uint64_t{blockIdx.x} * kGroupWarps + warpId(); i < n_all;
       i += std::uint64_t{gridDim.x} * kGroupWarps) {
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

/// The layers that tell patterns apart; then, when all bricks are coded, where their bytes go.
template <class T>
__global__ void __launch_bounds__(kGroupThreads) placeKernel(EncodeArgs args) {
  if (!hasMissing(*args.found)) {
    return;
  }
  const Field field = fieldOf(args.shape, sizeof(T));
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  codeOthers<T>(args, grid);
  if (cuda::isLastBlock(&args.found->n_done)) {
    for (std::uint32_t layer = 0; layer < args.found->n_layers; ++layer) {
      placeLayer(args, field.n_values, grid, layer);
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      args.record->value[kMissingSlot] = args.found->n_ones[0];
      args.record->value[kFilledSlot] = args.found->n_filled;
    }
  }
}

/// A thread for each brick of the first layer that is not of one kind.
__global__ void __launch_bounds__(kGroupThreads, kGroupBlocks)
    brickKernel(EncodeArgs args, std::uint32_t value_bytes) {
  __shared__ SharedGroup shared;
  __shared__ LaneTable table;
  if (!hasMissing(*args.found)) {
    return;
  }
  const Field field = fieldOf(args.shape, value_bytes);
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  if (grid.rows_z > 1) {
    codeGroup<true>(args, grid, shared, table);
  } else {
    codeGroup<false>(args, grid, shared, table);
  }
}

}  // namespace

template <class T>
void launchBricks(const EncodeArgs& args, const cuda::Call& call) {
  call.launch("mask: sample", sampleKernel,
              std::min(cuda::gridFor(args.max_bricks, 1), static_cast<unsigned>(kSampledBricks)),
              kBrickRows, 0, args, static_cast<std::uint32_t>(sizeof(T)));
  call.launch("mask: bricks", brickKernel, static_cast<unsigned>(args.max_groups), kGroupThreads, 0,
              args, static_cast<std::uint32_t>(sizeof(T)));
  call.launch("mask: places", placeKernel<T>, rareBlocks(args.max_bricks / kGroupWarps),
              kGroupThreads, 0, args);
}

template void launchBricks<float>(const EncodeArgs&, const cuda::Call&);
template void launchBricks<double>(const EncodeArgs&, const cuda::Call&);

}  // namespace fz::mask
