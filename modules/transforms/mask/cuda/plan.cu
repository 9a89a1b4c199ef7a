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

/// All threads: where the bricks of a layer stand. Moves the cursor behind it.
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
  }
  if (form != LayerForm::kBricks) {
    return form < LayerForm::kBricks;
  }
  const std::uint64_t n_bricks = args.n_bricks;
  if (!cursor.has((n_bricks + 3) / 4)) {
    return false;
  }
  const std::uint8_t* const kinds = cursor.bytes + cursor.at;
  if (threadIdx.x == 0) {
    plan.kinds_at[layer] = cursor.at;
  }
  cursor.at += (n_bricks + 3) / 4;
  const auto kind_of = [&](std::uint64_t i) { return kinds[i / 4] >> (2 * (i % 4)) & 3u; };
  const std::uint64_t share = (n_bricks + kPlanThreads - 1) / kPlanThreads;
  const std::uint64_t begin = min(n_bricks, threadIdx.x * share);
  const std::uint64_t end = min(n_bricks, begin + share);
  std::uint64_t n_coded = 0;
  for (std::uint64_t i = begin; i < end; ++i) {
    n_coded += kind_of(i) == kCoded ? 1u : 0u;
  }
  std::uint64_t all_coded = 0;
  std::uint64_t coded = cuda::blockExclusiveSum<kPlanThreads>(n_coded, warp_sums, &all_coded);
  if (!cursor.has(2 * all_coded)) {
    return false;
  }
  const std::uint8_t* const sizes = cursor.bytes + cursor.at;
  cursor.at += 2 * all_coded;
  const auto bytes_of = [&](std::uint64_t i) -> std::uint32_t {
    switch (kind_of(i)) {
      case kCoded:
        return sizes[2 * coded] + 256u * sizes[2 * coded + 1];
      case kRaw:
        return brickAt(grid, i).rawBytes(grid);
      default:
        return 0;
    }
  };
  const std::uint64_t first_coded = coded;
  std::uint64_t n_bytes = 0;
  for (std::uint64_t i = begin; i < end; ++i) {
    n_bytes += bytes_of(i);
    coded += kind_of(i) == kCoded ? 1u : 0u;
  }
  std::uint64_t all_bytes = 0;
  __syncthreads();
  std::uint64_t offset = cuda::blockExclusiveSum<kPlanThreads>(n_bytes, warp_sums, &all_bytes);
  __syncthreads();
  std::uint64_t* const offsets = args.offsets + layer * (n_bricks + 1);
  coded = first_coded;
  for (std::uint64_t i = begin; i < end; ++i) {
    offsets[i] = offset;
    offset += bytes_of(i);
    coded += kind_of(i) == kCoded ? 1u : 0u;
  }
  if (threadIdx.x == 0) {
    offsets[n_bricks] = all_bytes;
    plan.payload_at[layer] = cursor.at;
  }
  const bool is_there = cursor.has(all_bytes);
  cursor.at += all_bytes;
  return is_there;
}

/// One block: finds everything in the mask, and whether it goes with the size.
template <class T>
__global__ void __launch_bounds__(kPlanThreads) planKernel(DecodeArgs args, Fills<T> fills) {
  __shared__ std::uint64_t warp_sums[kPlanThreads / kWarp];
  MaskPlan& plan = *args.plan;
  const std::uint64_t n_missing = args.record->value[kMissingSlot];
  const std::uint64_t n_filled = args.record->value[kFilledSlot];
  Cursor cursor{args.mask, cuda::load(args.mask_size), 0};
  if (threadIdx.x == 0 && !args.out.size_known) {
    cuda::publishSize(args.record, 0, args.n_values * sizeof(T), args.out.capacity_bytes);
  }
  Reason reason = Reason::kNone;
  if (cuda::load(args.in_size) != args.n_values * sizeof(T) || n_missing > args.n_values ||
      (n_missing == 0) != (cursor.n_bytes == 0)) {
    reason = Reason::kSize;
  } else if (n_missing == 0) {
    plan.n_patterns = 0;
    plan.n_layers = 0;
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
