// Bringing the coded bricks of the first layer to their places, with all that stands before them.
#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/lookback.cuh"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/lanes.cuh"
#include "transforms/mask/cuda/place.cuh"

namespace fz::mask {

namespace {

using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kGroups = kPlaceThreads / kWarp * kPlaceGroups;  ///< of a block
static_assert(kGroups % kWarp == 0);
constexpr unsigned kOwn = kGroupBricks / kWarp;  ///< bricks of a lane: lane, lane + 32

/// A warp: the record of a group, and what a lane knows of its own bricks.
struct WarpRecord {
  std::uint32_t n;        ///< bricks
  std::uint32_t n_bytes;  ///< of the record
  std::uint32_t n_coded;
  bool is_all_ones;
  BrickKind kind[kOwn];
  std::uint32_t brick_bytes[kOwn];
  std::uint32_t coded_before[kOwn];
  std::uint32_t bytes_before[kOwn];

  /// What the record is like.
  __device__ __forceinline__ void plan(const EncodeArgs& args,
                                       const Grid& grid,
                                       std::uint64_t group) {
    n = group < grid.groups() ? grid.bricksOf(group) : 0;
#pragma unroll
    for (unsigned k = 0; k < kOwn; ++k) {
      const std::uint64_t index = group * kGroupBricks + k * kWarp + laneId();
      const bool is_there = k * kWarp + laneId() < n;
      kind[k] = is_there ? static_cast<BrickKind>(args.first_kinds[index]) : kNone;
      const std::uint32_t stored = is_there ? args.first_bytes[index] : 0;
      brick_bytes[k] = kind[k] >= kCoded ? stored : 0;  // others have none written
    }
    bool is_zero = true;
    is_all_ones = true;
    n_coded = 0;
    std::uint32_t n_of_bricks = 0;
#pragma unroll
    for (unsigned k = 0; k < kOwn; ++k) {
      const bool is_there = k * kWarp + laneId() < n;
      is_zero = is_zero && __all_sync(cuda::kAllLanes, kind[k] == kNone ? 1 : 0) != 0;
      is_all_ones =
          is_all_ones && __all_sync(cuda::kAllLanes, !is_there || kind[k] == kAll ? 1 : 0) != 0;
      const unsigned coded = __ballot_sync(cuda::kAllLanes, kind[k] == kCoded);
      coded_before[k] = n_coded + static_cast<std::uint32_t>(__popc(coded & lanesBelow()));
      n_coded += static_cast<std::uint32_t>(__popc(coded));
      const std::uint32_t end = cuda::warpInclusiveSum(brick_bytes[k]);
      bytes_before[k] = n_of_bricks + end - brick_bytes[k];
      n_of_bricks += __shfl_sync(cuda::kAllLanes, end, kWarp - 1);
    }
    n_bytes = is_zero ? 0 : is_all_ones ? 1 : kindBytes(n) + n_coded + n_of_bricks;
  }
  /// `slots` are those of the group's bricks.
  __device__ __forceinline__ void write(std::uint8_t* to,
                                        const std::uint8_t* slots,
                                        std::uint32_t slot_bytes) const {
    if (n_bytes == 0) {
      return;
    }
    if (is_all_ones) {
      if (laneId() == 0) {
        to[0] = kFourOnes;
      }
      return;
    }
    std::uint8_t* const sizes = to + kindBytes(n);
#pragma unroll
    for (unsigned k = 0; k < kOwn; ++k) {
      const unsigned i = k * kWarp + laneId();
      unsigned four = kind[k];
#pragma unroll
      for (unsigned j = 1; j < 4; ++j) {
        four |= __shfl_down_sync(cuda::kAllLanes, static_cast<unsigned>(kind[k]), j) << (2 * j);
      }
      if (i < n && i % 4 == 0) {
        to[i / 4] = static_cast<std::uint8_t>(four);
      }
      if (kind[k] == kCoded) {
        sizes[coded_before[k]] = static_cast<std::uint8_t>(brick_bytes[k] / kUnitBytes);
      }
      copyBrick(slots + std::uint64_t{i} * slot_bytes, brick_bytes[k],
                sizes + n_coded + bytes_before[k]);
    }
  }
};

/// All threads of a block, some groups for each warp: their records, which begin behind the front
/// of the layer. The warp that has the last one learns how long the layer is, others get 0.
__device__ __forceinline__ std::uint64_t writeGroups(const EncodeArgs& args,
                                                     const Grid& grid,
                                                     std::uint64_t layer_at,
                                                     std::uint32_t front_bytes) {
  __shared__ std::uint32_t record_bytes[kGroups];
  __shared__ std::uint64_t shared_before;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kGroups + warpId() * kPlaceGroups;
  WarpRecord records[kPlaceGroups];
#pragma unroll
  for (unsigned k = 0; k < kPlaceGroups; ++k) {
    records[k].plan(args, grid, first + k);
    if (laneId() == 0) {
      record_bytes[warpId() * kPlaceGroups + k] = records[k].n_bytes;
    }
  }
  __syncthreads();
  if (warpId() == 0) {
    std::uint32_t n_all = 0;
#pragma unroll
    for (unsigned i = 0; i < kGroups; i += kWarp) {
      const std::uint32_t own = record_bytes[i + laneId()];
      const std::uint32_t end = cuda::warpInclusiveSum(own);
      record_bytes[i + laneId()] = n_all + end - own;
      n_all += __shfl_sync(cuda::kAllLanes, end, kWarp - 1);
    }
    const cuda::LookBack look_back{args.block_states};
    if (laneId() == 0) {
      look_back.publish(blockIdx.x, n_all);
    }
    __syncwarp();
    const std::uint64_t before = look_back.prefix(blockIdx.x, n_all);
    if (laneId() == 0) {
      shared_before = before;
    }
  }
  __syncthreads();
  const std::uint64_t n_groups = grid.groups();
  const std::uint64_t ends_at = layer_at + front_bytes;
  std::uint64_t layer_bytes = 0;
#pragma unroll
  for (unsigned k = 0; k < kPlaceGroups; ++k) {
    const std::uint64_t group = first + k;
    if (group >= n_groups) {
      break;
    }
    const std::uint64_t begin = shared_before + record_bytes[warpId() * kPlaceGroups + k];
    const std::uint64_t end = begin + records[k].n_bytes;
    if (group + 1 == n_groups) {
      layer_bytes = front_bytes + n_groups * kEndBytes + end;
    }
    const std::uint64_t to = ends_at + n_groups * kEndBytes + begin;
    if (to + records[k].n_bytes > args.mask.capacity_bytes) {
      continue;  // the size says so
    }
    if (laneId() < kEndBytes) {
      args.mask.data[ends_at + group * kEndBytes + laneId()] =
          static_cast<std::uint8_t>(end >> (8 * laneId()));
    }
    const std::uint32_t slot_bytes = slotBytes(grid);
    records[k].write(args.mask.data + to, args.slots + group * kGroupBricks * slot_bytes,
                     slot_bytes);
  }
  return layer_bytes;
}

/// All threads of a block: patterns in order.
__device__ void findPatterns(const EncodeArgs& args) {
  __shared__ std::uint64_t keys[kMaxKeys];
  __shared__ std::uint32_t n_taken;
  Findings& found = *args.found;
  if (threadIdx.x == 0) {
    n_taken = 0;
  }
  __syncthreads();
  const std::uint32_t n = patternsOf(found);
  for (std::uint32_t i = threadIdx.x; n != 0 && i < kKeySlots; i += kPlaceThreads) {
    const std::uint64_t key = found.keys[i];
    if (key != 0) {
      keys[atomicAdd(&n_taken, 1u)] = key ^ args.marker;  // order-free: they are sorted
    }
  }
  __syncthreads();
  for (std::uint32_t k = threadIdx.x; k < n; k += kPlaceThreads) {
    const std::uint64_t pattern = keys[k];
    std::uint32_t rank = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      rank += keys[i] < pattern ? 1u : 0u;
    }
    found.patterns[rank] = pattern;
  }
  __syncthreads();
}

/// All threads of a block: the front of the mask.
template <class T>
__device__ __forceinline__ void writeFront(const EncodeArgs& args,
                                           const Field& field,
                                           const Grid& grid,
                                           std::uint32_t front_bytes) {
  findPatterns(args);
  const Findings& found = *args.found;
  if (threadIdx.x == 0) {
    args.record->value[kMissingSlot] = found.n_ones[0];
    args.record->value[kFilledSlot] = found.n_filled;
    args.record->value[kOthersSlot] = hasOthers(found) ? 1 : 0;
  }
  if (headBytes<T>(found) + front_bytes <= args.mask.capacity_bytes) {
    writeHead<T>(args, field, grid, found.n_ones[0]);
  }
}

/// A block for some groups of bricks of the first layer, and one more for what stands before them.
template <class T>
__global__ void __launch_bounds__(kPlaceThreads) placeKernel(EncodeArgs args) {
  Findings& found = *args.found;
  if (!hasMissing(found)) {
    return;
  }
  const Field field = fieldOf(args.shape, sizeof(T));
  const Grid grid = makeGrid(field.extents[0], field.extents[1], field.extents[2]);
  const LayerForm form = formOf(found, 0, found.n_ones[0], field.n_values);
  const std::uint32_t front_bytes = frontBytes(grid, form);
  std::uint64_t layer_bytes = 0;
  if (blockIdx.x == gridDim.x - 1) {
    writeFront<T>(args, field, grid, front_bytes);
    layer_bytes = form < kBricks && warpId() == 0 ? 1 : 0;
  } else if (form >= kBricks) {
    layer_bytes = writeGroups(args, grid, headBytes<T>(found), front_bytes);
  }
  if (layer_bytes != 0 && laneId() == 0) {
    found.layer_bytes[0] = layer_bytes;
    if (!hasOthers(found)) {
      cuda::publishSize(args.record, 1, headBytes<T>(found) + layer_bytes,
                        args.mask.capacity_bytes);
    }
  }
}

}  // namespace

template <class T>
void launchPlace(const EncodeArgs& args, const cuda::Call& call) {
  call.launch("mask: place", placeKernel<T>, cuda::gridFor(args.max_groups, kGroups) + 1,
              kPlaceThreads, 0, args);
}

template void launchPlace<float>(const EncodeArgs&, const cuda::Call&);
template void launchPlace<double>(const EncodeArgs&, const cuda::Call&);

}  // namespace fz::mask
