// What Lorenzo ends would cost along each set of axes, on parts of a field.
#include "backends/cuda/launch.h"
#include "fused/interp/blocks.h"
#include "fused/interp/cuda/policy.h"
#include "fused/interp/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

constexpr unsigned kSets = 8;
constexpr unsigned kWarps = kThreads / cuda::kWarp;
using Sum = unsigned long long;

/// Bins at a point and before it along each set of axes, negated where those are odd in number; 0
/// outside the part.
template <class T>
__device__ __forceinline__ void loadBins(const ProbeJob& job,
                                         const T* at,
                                         const Points& p,
                                         const Scale& scale,
                                         const Bin& bin,
                                         std::uint32_t (&bins)[kSets]) {
#pragma unroll
  for (unsigned set = 0; set < kSets; ++set) {
    const bool is_inside = p[0] >= (set & 1) && p[1] >= (set >> 1 & 1) && p[2] >= (set >> 2 & 1);
    std::uint32_t v = 0;
    if (is_inside) {
      const T x = __ldg(at - placeIn(job.field, set & 1, set >> 1 & 1, set >> 2 & 1));
      v = static_cast<std::uint32_t>(codeOf(fixedOf(x, false, scale), bin));
    }
    bins[set] = __popc(set) % 2 == 0 ? v : 0u - v;
  }
}

/// Sizes of the codes of a point, by set.
template <class T>
__device__ __forceinline__ void addPoint(const ProbeJob& job,
                                         const T* part,
                                         const Points& p,
                                         const Scale& scale,
                                         const Bin& bin,
                                         std::uint32_t (&sized)[kSets]) {
  if (p[0] >= job.n[0] || p[1] >= job.n[1] || p[2] >= job.n[2]) {
    return;  // what fills a block up is 0
  }
  std::uint32_t codes[kSets];
  loadBins(job, part + placeIn(job.field, p[0], p[1], p[2]), p, scale, bin, codes);
#pragma unroll
  for (unsigned axis = 1; axis < kSets; axis *= 2) {
#pragma unroll
    for (unsigned set = 0; set < kSets; ++set) {
      codes[set] += (set & axis) != 0 ? codes[set ^ axis] : 0u;
    }
  }
#pragma unroll
  for (unsigned set = 0; set < kSets; ++set) {
    const std::uint32_t sign = 0u - (codes[set] >> 31);
    sized[set] += sizeOf((codes[set] << 1) ^ sign);
  }
}

/// A warp for each block of codes; lane s turns the sum of set s into a cost.
template <class T>
__global__ void __launch_bounds__(kThreads) probeKernel(const __grid_constant__ ProbeJob job) {
  Setup& setup = *job.setup;
  if (setup.has_gaps != 0) {
    return;  // what stands in gaps depends on the axes
  }
  __shared__ Sum sums[kWarps][kSets];
  const Scale scale = setup.scale;
  const Bin bin = binOf(setup, 0);
  const unsigned lane = cuda::laneId();
  const std::uint64_t n_blocks = std::uint64_t{job.n_blocks[0]} * job.n_blocks[1] * job.n_blocks[2];
  Sum cost = 0;
  for (std::uint64_t item = threadIndex() / cuda::kWarp; item < n_blocks * job.n_parts;
       item += threadCount() / cuda::kWarp) {
    const auto part = static_cast<std::uint32_t>(item / n_blocks);
    const T* const values = static_cast<const T*>(job.field.data) + job.first[part];
    const Points block = pointOf(item - part * n_blocks, job.n_blocks);
    std::uint32_t sized[kSets] = {};
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const Points p = pointOf(lane + half * cuda::kWarp,
                               {{1u << job.log2[0], 1u << job.log2[1], 1u << job.log2[2]}});
      addPoint(job, values,
               {{(block[0] << job.log2[0]) + p[0], (block[1] << job.log2[1]) + p[1],
                 (block[2] << job.log2[2]) + p[2]}},
               scale, bin, sized);
    }
    std::uint32_t own = 0;
#pragma unroll
    for (unsigned set = 0; set < kSets; ++set) {
      const std::uint32_t sum = __reduce_add_sync(cuda::kAllLanes, sized[set]);
      own = lane == set ? sum : own;
    }
    if (lane < kSets) {
      cost += costOfSum(own, [&](std::uint32_t v) { return vLogV(job.logs, v); });
    }
  }
  if (lane < kSets) {
    sums[cuda::warpId()][lane] = cost;
  }
  __syncthreads();
  if (threadIdx.x < kSets) {
    Sum sum = 0;
    for (unsigned warp = 0; warp < kWarps; ++warp) {
      sum += sums[warp][threadIdx.x];
    }
    atomicAdd(&setup.end_costs[threadIdx.x], sum);  // order-free: only a sum
  }
}

}  // namespace

void launchProbe(const ProbeJob& job, const cuda::Call& call) {
  const std::uint64_t n_blocks = std::uint64_t{job.n_blocks[0]} * job.n_blocks[1] * job.n_blocks[2];
  call.launch("interp costs of ends",
              job.field.type == DataType::FLOAT32 ? probeKernel<float> : probeKernel<double>,
              strideBlocks(n_blocks * job.n_parts * cuda::kWarp, cuda::multiprocessorCount()),
              kThreads, 0, job);
}

}  // namespace fz::interp::device
