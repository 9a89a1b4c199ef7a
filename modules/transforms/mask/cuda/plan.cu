// Before decoding, one block looks at what stands where in the mask.
#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/unaligned_load.cuh"
#include "fz/cuda_part.h"
#include "transforms/mask/cuda/damage.cuh"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

namespace {

using cuda::kWarp;

/// What the one block that plans knows of the mask.
struct Cursor {
  const std::uint8_t* bytes;
  std::uint64_t n_bytes;
  std::uint64_t at;

  __device__ bool has(std::uint64_t n) const { return n <= n_bytes - at; }
};

/// All threads: the dictionary.
template <class T>
__device__ bool planPatterns(const DecodeArgs& args, const Fills<T>& fills, Cursor& cursor) {
  MaskPlan& plan = *args.plan;
  if (!cursor.has(4)) {
    return false;
  }
  const std::uint32_t n = cuda::loadUnaligned<std::uint32_t>(cursor.bytes, 0);
  cursor.at = 4;
  if (n > kMaxKeys || !cursor.has(std::uint64_t{n} * sizeof(T))) {
    return false;
  }
  bool is_good = true;
  if (threadIdx.x < n) {
    const auto pattern = cuda::loadUnaligned<BitsOf<T>>(cursor.bytes + 4, threadIdx.x);
    is_good = isMissing<T>(pattern, fills) &&
              (threadIdx.x == 0 ||
               cuda::loadUnaligned<BitsOf<T>>(cursor.bytes + 4, threadIdx.x - 1) < pattern);
    plan.patterns[threadIdx.x] = pattern;
  }
  cursor.at += n * sizeof(T);
  if (threadIdx.x == 0) {
    plan.n_patterns = n;
    plan.n_layers = 1 + (n < 2 ? 0 : bits::bitWidth(n - 1));
  }
  return __syncthreads_and(is_good ? 1 : 0) != 0;
}

/// Coded ones among four bricks.
__device__ __forceinline__ std::uint32_t codedIn(std::uint32_t four) {
  return static_cast<std::uint32_t>(__popc(four >> 1 & ~four & 0x55u));
}

/// The kinds of a layer's bricks, by groups.
struct GroupKinds {
  const std::uint8_t* kinds;
  std::uint64_t n_bricks;
  std::uint64_t n_group;

  __device__ std::uint32_t count(std::uint64_t group) const {
    return static_cast<std::uint32_t>(min(n_group, n_bricks - group * n_group));
  }
  __device__ std::uint32_t four(std::uint64_t group, std::uint32_t k) const {
    const std::uint32_t left = count(group) - k;
    return kinds[(group * n_group + k) / 4] & (left >= 4 ? 0xffu : (1u << (2 * left)) - 1);
  }
  __device__ std::uint32_t coded(std::uint64_t group) const {
    std::uint32_t n = 0;
#pragma unroll 8
    for (std::uint32_t k = 0; k < count(group); k += 4) {
      n += codedIn(four(group, k));
    }
    return n;
  }
  __device__ std::uint32_t rawBytes(const Grid& grid, std::uint64_t group) const {
    std::uint32_t n = 0;
    for (std::uint32_t k = 0; k < count(group); k += 4) {
      const std::uint32_t own = four(group, k);
      for (std::uint32_t raw = own & own >> 1 & 0x55u; raw != 0; raw &= raw - 1) {
        n += brickAt(grid, group * n_group + k + bits::firstSet(raw) / 2).rawBytes(grid);
      }
    }
    return n;
  }
};

__device__ std::uint32_t codedBytes(const std::uint8_t* sizes, std::uint32_t n_coded) {
  std::uint32_t n = 0;
#pragma unroll 8
  for (std::uint32_t k = 0; k < n_coded; ++k) {
    n += sizes[k] * kUnitBytes;
  }
  return n;
}

/// All threads: where the bricks of a layer stand. Moves the cursor behind it.
__device__ bool planBricks(const DecodeArgs& args,
                           const Grid& grid,
                           std::uint32_t layer,
                           Cursor& cursor,
                           std::uint64_t* warp_sums) {
  MaskPlan& plan = *args.plan;
  const std::uint64_t n_kinds = (args.n_bricks + 3) / 4;
  if (!cursor.has(n_kinds)) {
    return false;
  }
  const GroupKinds kinds{cursor.bytes + cursor.at, args.n_bricks, groupBricks(grid)};
  if (threadIdx.x == 0) {
    plan.kinds_at[layer] = cursor.at;
    plan.sizes_at[layer] = cursor.at + n_kinds;
  }
  cursor.at += n_kinds;
  const std::uint64_t share = (args.n_groups + kPlanThreads - 1) / kPlanThreads;
  const std::uint64_t begin = min(args.n_groups, threadIdx.x * share);
  const std::uint64_t end = min(args.n_groups, begin + share);
  BrickGroup* const groups = args.groups + layer * args.n_groups;
  std::uint64_t n_coded = 0;
  for (std::uint64_t i = begin; i < end; ++i) {
    groups[i].n_coded = kinds.coded(i);
    n_coded += groups[i].n_coded;
  }
  std::uint64_t all_coded = 0;
  std::uint64_t coded = cuda::blockExclusiveSum<kPlanThreads>(n_coded, warp_sums, &all_coded);
  if (!cursor.has(all_coded)) {
    return false;
  }
  const std::uint8_t* const sizes = cursor.bytes + cursor.at;
  cursor.at += all_coded;
  std::uint64_t n_bytes = 0;
  for (std::uint64_t i = begin; i < end; ++i) {
    groups[i].first_coded = static_cast<std::uint32_t>(coded);
    groups[i].n_bytes = codedBytes(sizes + coded, groups[i].n_coded) + kinds.rawBytes(grid, i);
    coded += groups[i].n_coded;
    n_bytes += groups[i].n_bytes;
  }
  std::uint64_t all_bytes = 0;
  __syncthreads();
  std::uint64_t at = cuda::blockExclusiveSum<kPlanThreads>(n_bytes, warp_sums, &all_bytes);
  __syncthreads();
  for (std::uint64_t i = begin; i < end; ++i) {
    groups[i].at = at;
    at += groups[i].n_bytes;
  }
  if (threadIdx.x == 0) {
    plan.payload_at[layer] = cursor.at;
  }
  const bool is_there = cursor.has(all_bytes);
  cursor.at += all_bytes;
  return is_there;
}

/// All threads: form and chances of a layer, then its bricks.
__device__ bool planLayer(const DecodeArgs& args,
                          const Grid& grid,
                          std::uint32_t layer,
                          Cursor& cursor,
                          std::uint64_t* warp_sums) {
  MaskPlan& plan = *args.plan;
  if (!cursor.has(1)) {
    return false;
  }
  const std::uint8_t form = cursor.bytes[cursor.at];
  cursor.at += 1;
  if (threadIdx.x == 0) {
    plan.form[layer] = form;
    plan.chances[layer].reset();
  }
  __syncthreads();
  if (form == LayerForm::kBricksOfChances) {
    const std::uint32_t n = contextsOf(grid);
    if (!cursor.has(n)) {
      return false;
    }
    if (threadIdx.x < n) {
      plan.chances[layer].of_one[threadIdx.x] = cursor.bytes[cursor.at + threadIdx.x];
    }
    cursor.at += n;
  }
  return form < LayerForm::kBricks ||
         (form <= LayerForm::kBricksOfChances && planBricks(args, grid, layer, cursor, warp_sums));
}

/// One block: finds everything in the mask, and whether it goes with the size.
template <class T>
__global__ void __launch_bounds__(kPlanThreads) planKernel(DecodeArgs args, Fills<T> fills) {
  __shared__ std::uint64_t warp_sums[kPlanThreads / kWarp];
  MaskPlan& plan = *args.plan;
  const std::uint64_t n_missing = args.record->value[kMissingSlot];
  const std::uint64_t n_filled = args.record->value[kFilledSlot];
  Cursor cursor{args.mask, cuda::load(args.mask_size), 0};
  if (threadIdx.x == 0) {
    plan.n_patterns = 0;
    plan.n_layers = 0;
    plan.patterns[0] = 0;
    plan.n_ones = 0;
    plan.n_filled = 0;
    plan.n_damaged = 0;
    plan.n_done = 0;
    plan.next_tile = 0;
  }
  if (threadIdx.x == 0 && !args.out.size_known) {
    cuda::publishSize(args.record, 0, args.n_values * sizeof(T), args.out.capacity_bytes);
  }
  Reason reason = Reason::kNone;
  if (cuda::load(args.in_size) != args.n_values * sizeof(T) || n_missing > args.n_values ||
      (n_missing == 0) != (cursor.n_bytes == 0)) {
    reason = Reason::kSize;
  } else if (n_missing == 0) {
    reason = n_filled == 0 ? Reason::kNone : Reason::kFilled;
  } else {
    if (!planPatterns<T>(args, fills, cursor)) {
      reason = Reason::kPatterns;
    }
    const Grid grid = gridOf(args);
    for (std::uint32_t layer = 0; reason == Reason::kNone && layer < plan.n_layers; ++layer) {
      if (!planLayer(args, grid, layer, cursor, warp_sums)) {
        reason = Reason::kLayer;
      }
    }
    if (reason == Reason::kNone) {
      const std::uint64_t n_raw = plan.n_patterns == 0 ? n_missing : 0;
      for (std::uint64_t i = threadIdx.x; n_raw != 0 && i * kTileValues < args.n_values;
           i += kPlanThreads) {
        args.ranks[i] = 0;
      }
      plan.raw_at = cursor.at;
      const bool is_all = n_raw <= (cursor.n_bytes - cursor.at) / sizeof(T) &&
                          n_raw * sizeof(T) == cursor.n_bytes - cursor.at;
      reason = is_all ? Reason::kNone : Reason::kLayer;
      if (plan.n_patterns == 1 &&
          n_filled != (isFiniteBits<T>(static_cast<BitsOf<T>>(plan.patterns[0])) ? n_missing : 0)) {
        reason = Reason::kFilled;
      }
    }
  }
  if (threadIdx.x == 0) {
    plan.is_good = reason == Reason::kNone ? 1 : 0;
    if (reason != Reason::kNone) {
      recordDamage(args.record, reason, cursor.at);
    }
  }
}

}  // namespace

template <class T>
void launchPlan(const DecodeArgs& args, const Fills<T>& fills, const cuda::Call& call) {
  call.launch("mask: plan", planKernel<T>, 1, kPlanThreads, 0, args, fills);
}

template void launchPlan(const DecodeArgs&, const Fills<float>&, const cuda::Call&);
template void launchPlan(const DecodeArgs&, const Fills<double>&, const cuda::Call&);

}  // namespace fz::mask
