// The first layer before it is coded: what kind of bricks it has, which of them are to be coded,
// and the chances, from some of these.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/bricks.cuh"
#include "transforms/mask/cuda/place.cuh"

namespace fz::mask {

namespace {

constexpr std::uint32_t kCounts = sizeof(LayerCounts) / sizeof(std::uint32_t);
constexpr unsigned kWarps = kLookThreads / cuda::kWarp;
static_assert(kLookThreads >= kBrickRows && kLookThreads >= kContexts);

/// What the threads of a block share.
struct BlockLook {
  LayerCounts counts;
  std::uint32_t rows[kBrickRows];  ///< of a brick that is counted
  std::uint8_t kinds[kLookThreads];
  std::uint32_t warp_sums[kWarps];
  std::uint32_t n_ones;
  std::uint64_t list_at;
};

/// All threads, one for each row: what a brick asks, added to the counts of the block.
__device__ void countBrick(const EncodeArgs& args,
                           const Grid& grid,
                           const Brick& brick,
                           BlockLook& shared) {
  const bool is_there = threadIdx.x < brick.rows();
  if (is_there) {
    shared.rows[threadIdx.x] =
        loadRow(args.words, brick.rowStart(grid, threadIdx.x), brick.rowBits(grid, threadIdx.x));
  }
  __syncthreads();
  if (is_there) {
    countRow(grid, brick, shared.rows, threadIdx.x, shared.counts,
             [](std::uint32_t& n) { atomicAdd(&n, 1u); });  // order-free: only sums
  }
  __syncthreads();
}

/// All threads: what those of the block's bricks ask that are looked at for the chances.
__device__ void countSampled(const EncodeArgs& args,
                             const Grid& grid,
                             std::uint64_t first,
                             BlockLook& shared) {
  const std::uint64_t step = sampleStep(grid.bricks());
  const std::uint64_t end = min(first + kLookThreads, grid.bricks());
  auto* const own = reinterpret_cast<std::uint32_t*>(&shared.counts);
  auto* const all = reinterpret_cast<std::uint32_t*>(&args.found->counts);
  bool has_counts = false;  // the same for all threads
  for (std::uint64_t i = bits::roundUp<std::uint64_t>(first, step); i < end; i += step) {
    if (shared.kinds[i - first] != kCoded) {
      continue;
    }
    if (!has_counts) {
      for (std::uint32_t k = threadIdx.x; k < kCounts; k += kLookThreads) {
        own[k] = 0;
      }
      __syncthreads();
      has_counts = true;
    }
    countBrick(args, grid, brickAt(grid, i), shared);
  }
  for (std::uint32_t k = threadIdx.x; has_counts && k < kCounts; k += kLookThreads) {
    if (own[k] != 0) {
      atomicAdd(all + k, own[k]);  // order-free: only sums
    }
  }
}

/// All threads of the last block: chances from what was counted.
__device__ void findChances(const EncodeArgs& args, const Grid& grid, LayerCounts& counts) {
  __shared__ std::uint32_t costs[3];  // of 2^21 decisions at most
  auto* const own = reinterpret_cast<std::uint32_t*>(&counts);
  const auto* const all = reinterpret_cast<const std::uint32_t*>(&args.found->counts);
  for (std::uint32_t i = threadIdx.x; i < kCounts; i += kLookThreads) {
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

/// All threads, a brick each: its kind, and its place in the list of those that are to be coded.
__device__ void lookAtBricks(const EncodeArgs& args,
                             const Grid& grid,
                             std::uint64_t first,
                             BlockLook& shared) {
  const std::uint64_t index = first + threadIdx.x;
  std::uint32_t ones = 0;
  std::uint32_t zeros = 0;
  std::uint32_t n_ones = 0;
  if (index < grid.bricks()) {
    forLoadedRows(args.words, grid, brickAt(grid, index),
                  [&](std::uint32_t row, std::uint32_t, std::uint32_t n_bits) {
                    ones |= row;
                    zeros |= row ^ lowRow(n_bits);
                    n_ones += static_cast<std::uint32_t>(__popc(row));
                  });
  }
  const BrickKind kind = ones == 0 ? kNone : zeros == 0 ? kAll : kCoded;
  shared.kinds[threadIdx.x] = kind;
  std::uint32_t n_coded = 0;
  const std::uint32_t rank =
      cuda::blockExclusiveSum<kLookThreads>(kind == kCoded ? 1u : 0u, shared.warp_sums, &n_coded);
  n_ones = cuda::warpSum(n_ones);
  if (cuda::laneId() == 0 && n_ones != 0) {
    atomicAdd(&shared.n_ones, n_ones);  // order-free: only sums
  }
  __syncthreads();
  if (threadIdx.x == 0 && shared.n_ones != 0) {
    addTo(&args.found->n_ones[0], shared.n_ones);
  }
  if (threadIdx.x == 0 && n_coded != 0) {
    auto* const n_listed = reinterpret_cast<unsigned long long*>(&args.found->n_listed);
    const unsigned long long n_more = n_coded;
    shared.list_at = atomicAdd(n_listed, n_more);  // order-free: a list
  }
  __syncthreads();
  if (index < grid.bricks()) {
    args.first_kinds[index] = kind;
    args.first_bytes[index] = 0;
  }
  if (kind == kCoded) {
    args.listed[shared.list_at + rank] = static_cast<std::uint32_t>(index);
  }
}

/// Six blocks to a multiprocessor, so that there is one round of them for most fields.
template <class T>
__global__ void __launch_bounds__(kLookThreads, 6) lookKernel(EncodeArgs args) {
  __shared__ BlockLook shared;
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
  if (threadIdx.x == 0) {
    shared.n_ones = 0;
  }
  __syncthreads();
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kLookThreads;
  lookAtBricks(args, grid, first, shared);
  countSampled(args, grid, first, shared);
  if (cuda::isLastBlock(&args.found->n_looked)) {
    findChances(args, grid, shared.counts);
  }
}

}  // namespace

template <class T>
void launchLook(const EncodeArgs& args, const cuda::Call& call) {
  call.launch("mask: look", lookKernel<T>, cuda::gridFor(args.max_bricks, kLookThreads),
              kLookThreads, 0, args);
}

template void launchLook<float>(const EncodeArgs&, const cuda::Call&);
template void launchLook<double>(const EncodeArgs&, const cuda::Call&);

}  // namespace fz::mask
