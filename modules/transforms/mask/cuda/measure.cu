// The first layer before it is coded: what kind of bricks it has, which of them are to be coded,
// and the chances, from some of these.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/bricks.cuh"
#include "transforms/mask/cuda/place.cuh"

namespace fz::mask {

namespace {

using cuda::laneId;
using cuda::warpId;

constexpr std::uint32_t kCounts = sizeof(LayerCounts) / sizeof(std::uint32_t);
constexpr unsigned kWarps = kLookThreads / cuda::kWarp;
/// Blocks that count what sampled bricks ask, a warp for each. They come first: meanwhile the
/// others look at all bricks.
constexpr unsigned kCountBlocks = static_cast<unsigned>(kSampledBricks) / kWarps;
static_assert(kLookThreads >= kContexts && kSampledBricks % kWarps == 0);

/// What the threads of a block that counts share.
struct BlockCounts {
  LayerCounts counts;
  std::uint32_t rows[kWarps][kBrickRows];
  std::uint32_t costs[3];  ///< of 2^21 decisions at most
  bool is_last;
};

/// The warp: what a brick asks, where it is one to be coded.
__device__ __forceinline__ void countBrick(const EncodeArgs& args,
                                           const Grid& grid,
                                           const Brick& brick,
                                           BlockCounts& shared) {
  std::uint32_t* const rows = shared.rows[warpId()];
  std::uint32_t ones = 0;
  std::uint32_t zeros = 0;
  forLaneRows(brick, [&](std::uint32_t row) {
    const std::uint32_t n_bits = brick.rowBits(grid, row);
    rows[row] = loadRow(args.words, brick.rowStart(grid, row), n_bits);
    ones |= rows[row];
    zeros |= rows[row] ^ lowRow(n_bits);
  });
  if (kindOf(ones, zeros) == kCoded) {
    forLaneRows(brick, [&](std::uint32_t row) {
      countRow(grid, brick, rows, row, shared.counts,
               [](std::uint32_t& n) { atomicAdd(&n, 1u); });  // order-free: only sums
    });
  }
}

/// All threads of the last block that counts: chances from what was counted.
__device__ void findChances(const EncodeArgs& args, const Grid& grid, BlockCounts& shared) {
  auto* const own = reinterpret_cast<std::uint32_t*>(&shared.counts);
  const auto* const all = reinterpret_cast<const std::uint32_t*>(&args.found->counts);
  for (std::uint32_t i = threadIdx.x; i < kCounts; i += kLookThreads) {
    own[i] = __ldcg(all + i);
  }
  if (threadIdx.x < 3) {
    shared.costs[threadIdx.x] = 0;
  }
  __syncthreads();
  Chances first;
  first.reset();
  if (threadIdx.x < contextsOf(grid)) {
    const LayerCosts part = costsOf(shared.counts, first, threadIdx.x);
    atomicAdd(&shared.costs[0], static_cast<std::uint32_t>(part.asking));  // order-free: only sums
    atomicAdd(&shared.costs[1], static_cast<std::uint32_t>(part.plain));   // order-free: only sums
    atomicAdd(&shared.costs[2], static_cast<std::uint32_t>(part.first));   // order-free: only sums
  }
  __syncthreads();
  const LayerWay way = chooseWay({shared.costs[0], shared.costs[1], shared.costs[2]}, grid);
  if (threadIdx.x < kContexts) {
    args.found->chances.of_one[threadIdx.x] =
        static_cast<std::uint8_t>(chanceIn(shared.counts, way, first, threadIdx.x));
  }
  if (threadIdx.x == 0) {
    args.found->has_own_chances = way.has_own ? 1 : 0;
  }
}

/// All threads of one of the first blocks.
__device__ void countSampled(const EncodeArgs& args, const Grid& grid, BlockCounts& shared) {
  auto* const own = reinterpret_cast<std::uint32_t*>(&shared.counts);
  auto* const all = reinterpret_cast<std::uint32_t*>(&args.found->counts);
  for (std::uint32_t i = threadIdx.x; i < kCounts; i += kLookThreads) {
    own[i] = 0;
  }
  __syncthreads();
  const std::uint64_t index =
      (std::uint64_t{blockIdx.x} * kWarps + warpId()) * sampleStep(grid.bricks());
  if (index < grid.bricks()) {
    countBrick(args, grid, brickAt(grid, index), shared);
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < kCounts; i += kLookThreads) {
    if (own[i] != 0) {
      atomicAdd(all + i, own[i]);  // order-free: only sums
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    auto* const n_counted = reinterpret_cast<unsigned long long*>(&args.found->n_counted);
    shared.is_last = atomicAdd(n_counted, 1ull) == kCountBlocks - 1;  // order-free: whoever it is
    __threadfence();
  }
  __syncthreads();
  if (shared.is_last) {
    findChances(args, grid, shared);
  }
}

/// What the threads of a block that looks share.
struct BlockLook {
  std::uint32_t warp_sums[kWarps];
  std::uint32_t n_ones;
  std::uint64_t list_at;
};

/// All threads, some bricks each: their kinds, and the places of those that are to be coded in the
/// list.
__device__ void lookAtBricks(const EncodeArgs& args,
                             const Grid& grid,
                             std::uint64_t first,
                             BlockLook& shared) {
  if (threadIdx.x == 0) {
    shared.n_ones = 0;
  }
  unsigned coded = 0;  // of the thread's bricks
  std::uint32_t n_ones = 0;
  const std::uint64_t n_bricks = grid.bricks();
#pragma unroll 1  // short code: all of it is read once
  for (unsigned k = 0; k < kLookBricks; ++k) {
    const std::uint64_t index = first + k * kLookThreads + threadIdx.x;
    if (index >= n_bricks) {
      break;
    }
    std::uint32_t ones = 0;
    std::uint32_t zeros = 0;
    forLoadedRows(args.words, grid, brickAt(grid, index),
                  [&](std::uint32_t row, std::uint32_t, std::uint32_t n_bits) {
                    ones |= row;
                    zeros |= row ^ lowRow(n_bits);
                    n_ones += static_cast<std::uint32_t>(__popc(row));
                  });
    const BrickKind kind = ones == 0 ? kNone : zeros == 0 ? kAll : kCoded;
    args.first_kinds[index] = kind;
    coded |= kind == kCoded ? 1u << k : 0u;
  }
  std::uint32_t n_coded = 0;
  std::uint32_t at = cuda::blockExclusiveSum<kLookThreads>(
      static_cast<std::uint32_t>(__popc(coded)), shared.warp_sums, &n_coded);
  n_ones = cuda::warpSum(n_ones);
  if (laneId() == 0 && n_ones != 0) {
    atomicAdd(&shared.n_ones, n_ones);  // order-free: only sums
  }
  if (threadIdx.x == 0 && n_coded != 0) {
    auto* const n_listed = reinterpret_cast<unsigned long long*>(&args.found->n_listed);
    const unsigned long long n_more = n_coded;
    shared.list_at = atomicAdd(n_listed, n_more);  // order-free: a list
  }
  __syncthreads();
  if (threadIdx.x == 0 && shared.n_ones != 0) {
    addTo(&args.found->n_ones[0], shared.n_ones);
  }
  for (; coded != 0; coded &= coded - 1) {
    args.listed[shared.list_at + at++] =
        static_cast<std::uint32_t>(first + bits::firstSet(coded) * kLookThreads + threadIdx.x);
  }
}

/// Five blocks to a multiprocessor, so that there is one round of them for most fields.
template <class T>
__global__ void __launch_bounds__(kLookThreads, 5) lookKernel(EncodeArgs args) {
  __shared__ union {
    BlockCounts counts;
    BlockLook look;
  } shared;
  const Findings& found = *args.found;
  const Field field = fieldOf(args.shape, sizeof(T));
  if (blockIdx.x == 0 && threadIdx.x < 3 && field.is_good) {
    args.record->value[kExtentSlot + threadIdx.x] = field.extents[threadIdx.x];
  }
  if (!hasMissing(found)) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      cuda::publishSize(args.record, 1, 0, args.mask.capacity_bytes);
    }
    return;
  }
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  if (found.has_too_many != 0) {
    const std::uint64_t n_tiles = (field.n_values + kTileValues - 1) / kTileValues;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * kLookThreads + threadIdx.x; i < n_tiles;
         i += std::uint64_t{gridDim.x} * kLookThreads) {
      args.ranks[i] = 0;
    }
  }
  if (blockIdx.x < kCountBlocks) {
    countSampled(args, grid, shared.counts);
  } else {
    const std::uint64_t block = blockIdx.x - kCountBlocks;
    lookAtBricks(args, grid, block * kLookThreads * kLookBricks, shared.look);
  }
}

}  // namespace

template <class T>
void launchLook(const EncodeArgs& args, const cuda::Call& call) {
  call.launch("mask: look", lookKernel<T>,
              kCountBlocks + cuda::gridFor(args.max_bricks, kLookThreads * kLookBricks),
              kLookThreads, 0, args);
}

template void launchLook<float>(const EncodeArgs&, const cuda::Call&);
template void launchLook<double>(const EncodeArgs&, const cuda::Call&);

}  // namespace fz::mask
