// What precedes a pass over a field: the range of its values, and the plans that kernels read.

#include <algorithm>
#include <cstdint>

#include "backends/cuda/device.cuh"
#include "fused/lorenzo_quant/cuda/kernels.h"
#include "fused/lorenzo_quant/cuda/plan.cuh"
#include "fused/lorenzo_quant/cuda/policy.h"
#include "fz/cuda_part.h"

namespace fz::lorenzo_quant::device {

namespace {

template <class T>
using WordOf = typename Number<T>::Word;
template <class T>
inline constexpr WordOf<T> kSignBit = WordOf<T>{1} << (8 * sizeof(T) - 1);

/// Floats as unsigned integers of the same order. No finite value has a key of all zeros or ones.
template <class T>
__device__ __forceinline__ WordOf<T> keyOf(T x) {
  const WordOf<T> b = fp::bits(x);
  return (b & kSignBit<T>) != 0 ? static_cast<WordOf<T>>(~b) : (b | kSignBit<T>);
}
template <class T>
__device__ __forceinline__ double valueOfKey(std::uint64_t key) {
  const auto k = static_cast<WordOf<T>>(key);
  const WordOf<T> b = (k & kSignBit<T>) != 0 ? (k ^ kSignBit<T>) : static_cast<WordOf<T>>(~k);
  return static_cast<double>(fp::bitCast<T>(b));
}

/// Largest key, and largest flipped key, of the finite values seen; 0: none.
template <class T>
struct Extremes {
  WordOf<T> high = 0;
  WordOf<T> low_flipped = 0;

  __device__ __forceinline__ void add(T x) {
    const WordOf<T> key = keyOf(x);
    const bool finite = fp::isFinite(x);
    raise(high, finite ? key : 0);
    raise(low_flipped, finite ? static_cast<WordOf<T>>(~key) : 0);
  }
  __device__ __forceinline__ void addLanes() {
#pragma unroll
    for (unsigned step = cuda::kWarp / 2; step > 0; step /= 2) {
      raise(high, __shfl_xor_sync(cuda::kAllLanes, high, step));
      raise(low_flipped, __shfl_xor_sync(cuda::kAllLanes, low_flipped, step));
    }
  }
  static __device__ __forceinline__ void raise(WordOf<T>& largest, WordOf<T> value) {
    largest = value > largest ? value : largest;
  }
};

__device__ __forceinline__ void atomicRaise(std::uint64_t* p, std::uint64_t value) {
  atomicMax(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(value));
}

template <class T>
__global__ void __launch_bounds__(kRangeThreads) scanRange(const EncodeRun run) {
  constexpr unsigned kV = kLaneValues<T>;
  const std::uint64_t n = cuda::load(run.size) / sizeof(T);
  const T* in = static_cast<const T*>(run.in);
  const std::uint64_t n_vectors = n / kV;
  const std::uint64_t n_threads = std::uint64_t{gridDim.x} * kRangeThreads;
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * kRangeThreads + threadIdx.x;
  Extremes<T> extremes;
  for (std::uint64_t at = thread; at < n_vectors; at += kRangeLoads * n_threads) {
    cuda::Vec16<T> loaded[kRangeLoads];
#pragma unroll
    for (unsigned i = 0; i < kRangeLoads; ++i) {
      // What is not there repeats the first one.
      const std::uint64_t from = at + i * n_threads < n_vectors ? at + i * n_threads : at;
      loaded[i].raw = __ldg(reinterpret_cast<const uint4*>(in) + from);
    }
#pragma unroll
    for (unsigned i = 0; i < kRangeLoads; ++i) {
#pragma unroll
      for (unsigned j = 0; j < kV; ++j) {
        extremes.add(loaded[i].v[j]);
      }
    }
  }
  if (thread < n % kV) {
    extremes.add(in[n_vectors * kV + thread]);
  }
  extremes.addLanes();
  __shared__ Extremes<T> of_warp[kRangeThreads / cuda::kWarp];
  if (cuda::laneId() == 0) {
    of_warp[cuda::warpId()] = extremes;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (const Extremes<T>& e : of_warp) {
      Extremes<T>::raise(extremes.high, e.high);
      Extremes<T>::raise(extremes.low_flipped, e.low_flipped);
    }
    if (extremes.high != 0) {
      auto* plan = static_cast<EncodePlan<T>*>(run.plan);
      atomicRaise(&plan->high_key, extremes.high);
      atomicRaise(&plan->low_key_flipped, extremes.low_flipped);
    }
  }
}

template <class T>
__device__ ResolvedBound boundOf(const EncodeRun& run, const EncodePlan<T>& plan) {
  if (!run.scans_range) {
    return {run.bound, run.base};
  }
  if (plan.high_key == 0) {
    return resolveBound(run.error_bound, 0.0);
  }
  const double high = valueOfKey<T>(plan.high_key);
  const double low = valueOfKey<T>(~plan.low_key_flipped);
  const double low_magnitude = fp::abs(low);
  const double high_magnitude = fp::abs(high);
  return resolveBound(run.error_bound, run.is_noa                       ? fp::sub(high, low)
                                       : low_magnitude > high_magnitude ? low_magnitude
                                                                        : high_magnitude);
}

/// The grid of n values, or false when the dims do not hold them.
__device__ __forceinline__ bool resolveDims(const Dims& dims, std::uint64_t n, Grid& grid) {
  const std::uint64_t n_rows = dims.y * dims.z;  // both below 2^32
  const std::uint64_t nx = dims.x == 0 ? n / n_rows : dims.x;
  grid = {nx, dims.y, dims.z, dims.ndim};
  return n % n_rows == 0 && n / n_rows == nx;
}

/// An empty layout where there is nothing to do.
template <class T>
__device__ void planEncode(const EncodeRun& run, unsigned code_bytes) {
  auto& plan = *static_cast<EncodePlan<T>*>(run.plan);
  plan.layout = {};
  const std::uint64_t n_bytes = cuda::load(run.size);
  const std::uint64_t n = n_bytes / sizeof(T);
  Grid grid;
  const bool holds = resolveDims(run.dims, n, grid);
  if (!holds || n_bytes % sizeof(T) != 0 || n > kMaxValues) {
    cuda::recordError(run.record, DeviceError::kDoesNotFit, n_bytes);
    return;
  }
  const ResolvedBound resolved = boundOf(run, plan);
  run.record->value[kBoundSlot] = fp::bits(resolved.bound);
  run.record->value[kBaseSlot] = fp::bits(resolved.base);
  run.record->value[kAbsoluteSlot] = fp::bits(static_cast<double>(resolved.bound));
  run.record->value[kCountSlot] = n;
  if (run.publishes_codes) {
    cuda::publishSize(run.record, 0, n * code_bytes, run.codes_capacity);
  }
  plan.step = makeStep<T>(resolved.bound, run.dims.ndim);
  if (n * code_bytes <= run.codes_capacity) {
    plan.layout = makeLayout<T>(grid);
    plan.places = GridPlaces::of(grid);
  }
}

template <class T>
__global__ void __launch_bounds__(kSetupThreads)
    setUpEncode(const EncodeRun run, unsigned code_bytes) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * kSetupThreads + threadIdx.x;
  for (std::uint64_t i = thread; i < run.n_chunks; i += std::uint64_t{gridDim.x} * kSetupThreads) {
    run.counts[i] = 0;
  }
  for (std::uint64_t i = thread; i < run.n_clear; i += std::uint64_t{gridDim.x} * kSetupThreads) {
    run.flags[i] = 0;
  }
  if (thread == 0) {
    *blocksDone(run) = 0;
    planEncode<T>(run, code_bytes);
  }
}

template <class T>
__global__ void __launch_bounds__(kSetupThreads)
    setUpDecode(const DecodeRun run, unsigned code_bytes) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * kSetupThreads + threadIdx.x;
  if (run.marks != nullptr && run.record->value[kRangeSlot] != 0) {
    for (std::uint64_t i = thread; i < run.n_mark_words / 4;
         i += std::uint64_t{gridDim.x} * kSetupThreads) {
      reinterpret_cast<uint4*>(run.marks)[i] = make_uint4(0, 0, 0, 0);
    }
  }
  if (thread == 0) {
    DecodePlan<T> plan;
    planDecode<T>(run, code_bytes, true, plan);
    *static_cast<DecodePlan<T>*>(run.plan) = plan;
  }
}

}  // namespace

template <class T>
void launchEncodeSetup(const EncodeRun& run, std::size_t code_bytes, const cuda::Call& call) {
  if (run.scans_range) {
    call.launch("lorenzo_quant range", scanRange<T>, rangeBlocks(run.size.n_bytes), kRangeThreads,
                0, run);
  }
  call.launch("lorenzo_quant encode setup", setUpEncode<T>,
              setupBlocks(std::max(run.n_chunks, run.n_clear)), kSetupThreads, 0, run,
              static_cast<unsigned>(code_bytes));
}

template <class T>
void launchDecodeSetup(const DecodeRun& run, std::size_t code_bytes, const cuda::Call& call) {
  const std::uint64_t n_pieces = run.marks != nullptr ? run.n_mark_words / 4 : 0;
  call.launch("lorenzo_quant decode setup", setUpDecode<T>, setupBlocks(n_pieces), kSetupThreads, 0,
              run, static_cast<unsigned>(code_bytes));
}

template void launchEncodeSetup<float>(const EncodeRun&, std::size_t, const cuda::Call&);
template void launchEncodeSetup<double>(const EncodeRun&, std::size_t, const cuda::Call&);
template void launchDecodeSetup<float>(const DecodeRun&, std::size_t, const cuda::Call&);
template void launchDecodeSetup<double>(const DecodeRun&, std::size_t, const cuda::Call&);

}  // namespace fz::lorenzo_quant::device
