// The chances of the first layer, from some of its bricks. They are found in the field itself, so
// that this can run beside whatever looks at all of it.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/bricks.cuh"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

namespace {

constexpr std::uint32_t kCounts = sizeof(LayerCounts) / sizeof(std::uint32_t);

constexpr unsigned kWarps = kSampleThreads / cuda::kWarp;

/// The warp: which values of a row are missing.
template <class T>
__device__ __forceinline__ std::uint32_t findRow(const EncodeArgs& args,
                                                 const Fills<T>& fills,
                                                 std::uint64_t start,
                                                 std::uint32_t n_bits) {
  const auto* const values = reinterpret_cast<const BitsOf<T>*>(args.in) + start;
  const bool is_missing = cuda::laneId() < n_bits && isMissing<T>(values[cuda::laneId()], fills);
  return __ballot_sync(cuda::kAllLanes, is_missing);
}

/// All threads, one for each row: what a brick of the first layer asks, added to all counts.
template <class T>
__device__ void countBrick(const EncodeArgs& args,
                           const Fills<T>& fills,
                           const Grid& grid,
                           const Brick& brick,
                           LayerCounts& counts) {
  static_assert(kSampleThreads >= kBrickRows);
  __shared__ std::uint32_t rows[kBrickRows];
  auto* const own = reinterpret_cast<std::uint32_t*>(&counts);
  auto* const all = reinterpret_cast<std::uint32_t*>(&args.found->counts);
  for (std::uint32_t i = threadIdx.x; i < kCounts; i += kSampleThreads) {
    own[i] = 0;
  }
#pragma unroll 4
  for (std::uint32_t r = cuda::warpId(); r < brick.rows(); r += kWarps) {
    const std::uint32_t bits =
        findRow<T>(args, fills, brick.rowStart(grid, r), brick.rowBits(grid, r));
    if (cuda::laneId() == 0) {
      rows[r] = bits;
    }
  }
  __syncthreads();
  const bool is_there = threadIdx.x < brick.rows();
  const std::uint32_t row = is_there ? rows[threadIdx.x] : 0;
  const std::uint32_t full = is_there ? lowRow(brick.rowBits(grid, threadIdx.x)) : 0;
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
  for (std::uint32_t i = threadIdx.x; i < kCounts; i += kSampleThreads) {
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
  for (std::uint32_t i = threadIdx.x; i < kCounts; i += kSampleThreads) {
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
/// chances. Few registers: a group's kernel leaves no room for more.
template <class T>
__global__ void __launch_bounds__(kSampleThreads, 2048 / kSampleThreads)
    sampleKernel(EncodeArgs args, Fills<T> fills) {
  __shared__ LayerCounts counts;
  const Field field = fieldOf(args.shape, sizeof(T));
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  const std::uint64_t index = blockIdx.x * sampleStep(grid.bricks());
  if (field.is_good && index < grid.bricks()) {
    countBrick<T>(args, fills, grid, brickAt(grid, index), counts);
  }
  if (cuda::isLastBlock(&args.found->n_sampled)) {
    findChances(args, grid, counts);
  }
}

}  // namespace

template <class T>
void launchSample(const EncodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  call.launch("mask: sample", sampleKernel<T>,
              std::min(cuda::gridFor(args.max_bricks, 1), static_cast<unsigned>(kSampledBricks)),
              kSampleThreads, 0, args, fills);
}

template void launchSample(const EncodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchSample(const EncodeArgs&, const Fills<double>&, const cuda::Call&);

}  // namespace fz::mask
