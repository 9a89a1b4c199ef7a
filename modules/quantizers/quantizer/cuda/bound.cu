// Before the codes: the range of the data (NOA) and the bound in use.
#include "backends/cuda/each_field.cuh"
#include "backends/cuda/launch.h"
#include "fz/cuda_part.h"
#include "quantizers/quantizer/cuda/op/tile.cuh"

namespace fz::quantizer::device {

namespace {

__device__ __forceinline__ void widen(RangePart& all, const RangePart& part) {
  all.low = part.low < all.low ? part.low : all.low;
  all.high = part.high > all.high ? part.high : all.high;
}

/// The union over a block, for thread 0.
__device__ __forceinline__ RangePart blockRange(RangePart part) {
  __shared__ RangePart warp_parts[kWarps];
#pragma unroll
  for (unsigned step = cuda::kWarp / 2; step > 0; step /= 2) {
    widen(part, {__shfl_xor_sync(cuda::kAllLanes, part.low, step),
                 __shfl_xor_sync(cuda::kAllLanes, part.high, step)});
  }
  if (cuda::laneId() == 0) {
    warp_parts[cuda::warpId()] = part;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned w = 1; w < kWarps; ++w) {
      widen(part, warp_parts[w]);
    }
  }
  return part;
}

/// One part per block. The last tiles first and with ordinary loads: what stays in the cache is
/// the beginning, which the encoder reads next.
template <class T>
__device__ __forceinline__ void findRange(const EncodeJob& job) {
  using O = Ordered<T>;
  using S = typename O::S;
  using Shape = TileShape<T, kVecs>;
  const std::uint64_t n = valuesOf<T>(job);
  const std::uint64_t n_tiles = bits::ceilDiv<std::uint64_t>(n, Shape::kValues);
  const S* in = reinterpret_cast<const S*>(job.input.data);
  S low = O::kMax;
  S high = O::kMin;
  for (std::uint64_t i = firstTile(); i < n_tiles; i += std::uint64_t{gridDim.x} * kWarps) {
    const std::uint64_t begin = (n_tiles - 1 - i) * Shape::kValues;
    const std::uint64_t n_left = n - begin;
    Vec16<S> x[kVecs];
    if (n_left >= Shape::kValues) {
#pragma unroll
      for (unsigned j = 0; j < kVecs; ++j) {
        x[j].raw = *reinterpret_cast<const uint4*>(in + begin + Shape::at(j));
      }
    } else {
#pragma unroll
      for (unsigned j = 0; j < kVecs; ++j) {
#pragma unroll
        for (unsigned e = 0; e < Shape::kCount; ++e) {
          const unsigned at = Shape::at(j) + e;
          x[j].v[e] = at < n_left ? in[begin + at] : O::kExponent;  // infinity: not counted
        }
      }
    }
#pragma unroll
    for (unsigned j = 0; j < kVecs; ++j) {
#pragma unroll
      for (unsigned e = 0; e < Shape::kCount; ++e) {
        const S b = x[j].v[e];
        const S ordered = O::map(b);
        const S for_low = O::isFinite(b) ? ordered : O::kMax;
        const S for_high = O::isFinite(b) ? ordered : O::kMin;
        low = for_low < low ? for_low : low;
        high = for_high > high ? for_high : high;
      }
    }
  }
  const RangePart all = blockRange({low, high});
  if (threadIdx.x == 0) {
    job.parts[blockIdx.x] = all;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) rangeKernel(const EncodeJob job) {
  findRange<T>(job);
}

template <class T>
__global__ void __launch_bounds__(kThreads) rangeEachKernel(const EachField fields) {
  findRange<T>(cuda::argumentsOf<EncodeJob>(fields));
}

/// Thread 0: the union of all parts.
template <class T>
__device__ __forceinline__ double rangeOfParts(const EncodeJob& job, unsigned n_parts) {
  using O = Ordered<T>;
  RangePart all{O::kMax, O::kMin};
  for (unsigned i = threadIdx.x; i < n_parts; i += kThreads) {
    widen(all, job.parts[i]);
  }
  all = blockRange(all);
  return all.low > all.high ? 0.0
                            : rangeBetween(O::value(static_cast<typename O::S>(all.low)),
                                           O::value(static_cast<typename O::S>(all.high)));
}

/// What the host could not check, since the size was not known to it.
template <class T>
__device__ __forceinline__ void checkInput(const EncodeJob& job) {
  const std::uint64_t n_bytes = cuda::load(job.input.size);
  const std::uint64_t n = n_bytes / sizeof(T);
  const bool whole = n_bytes % sizeof(T) == 0;
  const bool fits = n <= 0xffffffffull;
  if (!whole || !fits) {
    cuda::recordError(job.record, DeviceError::kDoesNotFit, n_bytes);
    job.record->error_value =
        static_cast<std::uint64_t>(whole ? Failure::kTooManyValues : Failure::kRaggedInput);
  }
  if (!job.codes.size_known) {
    cuda::publishSize(job.record, 0, fits ? n * job.code_bytes : 0, job.codes.capacity_bytes);
  }
  job.record->value[kSlotValues] = n;
}

template <class T>
__device__ __forceinline__ void prepare(const EncodeJob& job,
                                        const BoundJob& bound,
                                        unsigned n_parts) {
  for (std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x; i < job.n_batches;
       i += std::uint64_t{gridDim.x} * kThreads) {
    job.batch_states[i] = 0;
  }
  if (blockIdx.x != 0) {
    return;
  }
  __shared__ double shared_range;
  const double scanned = n_parts > 0 ? rangeOfParts<T>(job, n_parts) : 0.0;
  if (threadIdx.x == 0) {
    shared_range = !bound.is_noa ? 0.0 : bound.value_base > 0.0 ? bound.value_base : scanned;
    checkInput<T>(job);
  }
  __syncthreads();
  const unsigned rung = threadIdx.x;
  if (bound.is_rel || rung >= kRungs) {
    return;
  }
  constexpr bool kIsFloat = sizeof(T) == 4;
  const double range = shared_range;
  const double absolute = absoluteBound(bound.error_bound, range, kIsFloat);
  const double in_use = boundOfRung(absolute, bound.is_ladder, rung, kIsFloat);
  EncodeState<T>& state = stateOf<T>(job);
  state.rules[rung] = makeBinRule<T>(
      {in_use, absolute, bound.threshold, bound.radius, bound.form, 8 * job.code_bytes});
  state.in_use[rung] = in_use;
  state.n_violations[rung] = 0;
  state.first_violation[rung] = 0;
  if (rung == 0) {
    state.has_nonfinite = 0;
    recordBound(job.record->value, in_use);
    recordRange(job.record->value, range, absolute);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    prepareKernel(const EncodeJob job, const BoundJob bound, const unsigned n_parts) {
  prepare<T>(job, bound, n_parts);
}

struct PrepareJob {
  alignas(16) EncodeJob job;
  alignas(16) BoundJob bound;
  alignas(16) unsigned n_parts;
};
template <class T>
__global__ void __launch_bounds__(kThreads) prepareEachKernel(const EachField fields) {
  const auto& all = cuda::argumentsOf<PrepareJob>(fields);
  prepare<T>(all.job, all.bound, all.n_parts);
}

}  // namespace

void launchRange(const EncodeJob& job, unsigned n_blocks, const cuda::Call& call) {
  call.launch("quantizer rangeKernel",
              job.value_bytes == 4 ? cuda::withEach(rangeKernel<float>, rangeEachKernel<float>)
                                   : cuda::withEach(rangeKernel<double>, rangeEachKernel<double>),
              n_blocks, kThreads, 0, job);
}

void launchPrepare(const EncodeJob& job,
                   const BoundJob& bound,
                   unsigned n_parts,
                   const cuda::Call& call) {
  const unsigned n_blocks = cuda::gridFor(job.n_batches, kThreads);
  call.launch("quantizer prepareKernel",
              job.value_bytes == 4
                  ? cuda::withEach(prepareKernel<float>, prepareEachKernel<float>)
                  : cuda::withEach(prepareKernel<double>, prepareEachKernel<double>),
              n_blocks, kThreads, 0, job, bound, n_parts);
}

}  // namespace fz::quantizer::device
