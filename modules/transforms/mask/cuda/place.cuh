#pragma once

// Where the bytes of layers and bricks stand in the stream that is written. Device code only.

#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "transforms/mask/cuda/bricks.cuh"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

/// Blocks for work that there seldom is, in a grid that has more.
inline unsigned rareBlocks(std::uint64_t most) {
  return static_cast<unsigned>(
      std::min<std::uint64_t>(kRareBlocks * cuda::multiprocessorCount(), most + 1));
}

__device__ __forceinline__ std::uint64_t kindBytes(std::uint64_t n_bricks) {
  return (n_bricks + 3) / 4;
}
__device__ __forceinline__ LayerForm formOf(const Findings& found,
                                            std::uint32_t layer,
                                            std::uint64_t n_values) {
  const std::uint64_t n_ones = found.n_ones[layer];
  return n_ones == 0                                ? kAllZeros
         : n_ones == n_values                       ? kAllOnes
         : layer == 0 && found.has_own_chances != 0 ? kBricksOfChances
                                                    : kBricks;
}
/// Bytes of a layer in bricks before their kinds.
__device__ __forceinline__ std::uint32_t frontBytes(const Grid& grid, LayerForm form) {
  return form == kBricksOfChances ? 1 + contextsOf(grid) : 1;
}

/// One thread: what a block of the first layer has counted.
inline __device__ void sumGroup(const EncodeArgs& args,
                                const Grid& grid,
                                std::uint32_t layer,
                                std::uint64_t group) {
  const std::uint64_t n_group = groupBricks(grid);
  const std::uint64_t end = min(grid.bricks(), (group + 1) * n_group);
  BrickGroup& own = args.groups[layer * args.max_groups + group];
  own.n_coded = 0;
  own.n_bytes = 0;
  for (std::uint64_t i = group * n_group; i < end; ++i) {
    own.n_coded += args.kinds[layer * args.max_bricks + i] == kCoded ? 1u : 0u;
    own.n_bytes += args.brick_bytes[layer * args.max_bricks + i];
  }
}

/// All threads of a block of kGroupThreads, when all bricks are coded: where the bytes of a layer
/// go.
inline __device__ void placeLayer(const EncodeArgs& args,
                                  std::uint64_t n_values,
                                  Grid grid,
                                  std::uint32_t layer) {
  __shared__ std::uint64_t warp_sums[2][kGroupThreads / cuda::kWarp];
  Findings& found = *args.found;
  const LayerForm form = formOf(found, layer, n_values);
  if (form < kBricks) {
    if (threadIdx.x == 0) {
      found.layer_bytes[layer] = 1;
    }
    return;
  }
  const std::uint64_t n_bricks = grid.bricks();
  const std::uint64_t n_groups = groupsOf(grid);
  const std::uint64_t share = (n_groups + kGroupThreads - 1) / kGroupThreads;
  const std::uint64_t begin = min(n_groups, threadIdx.x * share);
  const std::uint64_t end = min(n_groups, begin + share);
  BrickGroup* const groups = args.groups + layer * args.max_groups;
  std::uint64_t n_bytes = 0;
  std::uint64_t n_coded = 0;
  for (std::uint64_t i = begin; i < end; ++i) {
    if (layer != 0) {
      sumGroup(args, grid, layer, i);
    }
    n_bytes += groups[i].n_bytes;
    n_coded += groups[i].n_coded;
  }
  std::uint64_t all_bytes = 0;
  std::uint64_t all_coded = 0;
  std::uint64_t to = cuda::blockExclusiveSum<kGroupThreads>(n_bytes, warp_sums[0], &all_bytes);
  std::uint64_t coded = cuda::blockExclusiveSum<kGroupThreads>(n_coded, warp_sums[1], &all_coded);
  const std::uint64_t bricks_at = frontBytes(grid, form) + kindBytes(n_bricks) + all_coded;
  for (std::uint64_t i = begin; i < end; ++i) {
    groups[i].at = bricks_at + to;
    groups[i].first_coded = static_cast<std::uint32_t>(coded);
    to += groups[i].n_bytes;
    coded += groups[i].n_coded;
  }
  if (threadIdx.x == 0) {
    found.layer_bytes[layer] = bricks_at + all_bytes;
  }
}

}  // namespace fz::mask
