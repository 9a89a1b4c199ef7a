// The list entries of a decode, put where their values are.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/readback.cuh"
#include "backends/cuda/unaligned_load.cuh"
#include "fused/lorenzo_quant/cuda/kernels.h"
#include "fused/lorenzo_quant/cuda/plan.cuh"
#include "fused/lorenzo_quant/cuda/policy.h"
#include "fz/cuda_part.h"

namespace fz::lorenzo_quant::device {

namespace {

/// This thread's number and the number of threads, for loops over a grid of any size.
struct Strided {
  std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  __device__ __forceinline__ Strided() {}
};

/// Of list entry i; lists may stand anywhere.
template <class T>
__device__ __forceinline__ T valueAt(const DecodeRun& run, std::uint64_t i) {
  return fp::bitCast<T>(cuda::loadUnaligned<typename Number<T>::Word>(run.values, i));
}

/// All threads: entries of the plan. They may come in any order; two for one value meet in its
/// mark. `found` is the plan that gets what they are.
template <class T>
__device__ __forceinline__ void placeRange(const DecodeRun& run,
                                           const DecodePlan<T>& plan,
                                           DecodePlan<T>& found) {
  constexpr T kIntLimit = sizeof(T) == 4 ? T(0x1p31) : T(0x1p63);
  const Strided all;
  for (std::uint64_t i = all.first; i < plan.n_range; i += all.step) {
    const auto index = cuda::loadUnaligned<std::uint32_t>(run.indices, i);
    if (index >= plan.n_values) {
      cuda::recordError(run.record, DeviceError::kCorrupt, i);
      continue;
    }
    const MarkPlace place = markPlace<T>(plan.layout, index);
    const std::uint32_t bit = 1u << place.bit;
    if ((atomicOr(run.marks + place.word, bit) & bit) != 0) {
      cuda::recordError(run.record, DeviceError::kCorrupt, i);
    }
    const T delta = valueAt<T>(run, i);
    static_cast<T*>(run.out)[index] = delta;
    if (!(fp::abs(delta) < kIntLimit)) {
      found.is_wide = 1;  // every writer writes the same
    }
  }
}

template <class T>
__device__ __forceinline__ void placeExact(const DecodeRun& run, const DecodePlan<T>& plan) {
  const Strided all;
  for (std::uint64_t i = plan.n_range + all.first; i < plan.n_entries; i += all.step) {
    const auto index = cuda::loadUnaligned<std::uint32_t>(run.indices, i);
    const bool ascends =
        i == plan.n_range || cuda::loadUnaligned<std::uint32_t>(run.indices, i - 1) < index;
    if (index >= plan.n_values || !ascends) {
      cuda::recordError(run.record, DeviceError::kCorrupt, i);
      continue;
    }
    static_cast<T*>(run.out)[index] = valueAt<T>(run, i);
  }
}

/// The marks that placeRange() has set, one by one where they are few.
template <class T>
__device__ __forceinline__ void clearMarks(const DecodeRun& run, const DecodePlan<T>& plan) {
  const Strided all;
  if (plan.n_range > run.n_mark_words / 16) {
    for (std::uint64_t i = all.first; i < run.n_mark_words / 4; i += all.step) {
      reinterpret_cast<uint4*>(run.marks)[i] = make_uint4(0, 0, 0, 0);
    }
    return;
  }
  for (std::uint64_t i = all.first; i < plan.n_range; i += all.step) {
    const auto index = cuda::loadUnaligned<std::uint32_t>(run.indices, i);
    if (index < plan.n_values) {
      run.marks[markPlace<T>(plan.layout, index).word] = 0;
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kPlaceThreads) placeRangeEntries(const DecodeRun run) {
  auto& plan = *static_cast<DecodePlan<T>*>(run.plan);
  placeRange<T>(run, plan, plan);
}

template <class T>
__global__ void __launch_bounds__(kPlaceThreads) placeExactEntries(const DecodeRun run) {
  placeExact<T>(run, *static_cast<const DecodePlan<T>*>(run.plan));
}

/// Every block makes the plan for itself: one that waited for the plan of another would be a launch
/// of its own.
template <class T>
__global__ void __launch_bounds__(kPlaceThreads)
    beginGroup(const DecodeRun run, unsigned code_bytes, const std::uint64_t* may_write) {
  __shared__ DecodePlan<T> plan;
  auto& shared_by_all = *static_cast<DecodePlan<T>*>(run.plan);
  if (threadIdx.x == 0) {
    planDecode<T>(run, code_bytes, blockIdx.x == 0, plan);
    if (blockIdx.x == 0) {  // all but what other blocks may have found by now
      shared_by_all.layout = plan.layout;
      shared_by_all.n_values = plan.n_values;
      shared_by_all.n_range = plan.n_range;
      shared_by_all.n_entries = plan.n_entries;
      shared_by_all.step = plan.step;
    }
  }
  __syncthreads();
  if (may_write == nullptr || *may_write != 0) {
    placeRange<T>(run, plan, shared_by_all);
  }
}

template <class T>
__global__ void __launch_bounds__(kPlaceThreads)
    endGroup(const DecodeRun run, std::uint64_t* n_blocks_done, const cuda::HostReadback readback) {
  auto& plan = *static_cast<DecodePlan<T>*>(run.plan);
  placeExact<T>(run, plan);
  clearMarks<T>(run, plan);
  if (!cuda::isLastBlock(n_blocks_done)) {
    return;
  }
  if (threadIdx.x == 0) {
    plan.is_wide = 0;
    *n_blocks_done = 0;
  }
  if (readback.is_done != nullptr) {
    cuda::bringToHost(readback);
  }
}

}  // namespace

template <class T>
void launchRangeEntries(const DecodeRun& run, std::uint64_t entry_limit, const cuda::Call& call) {
  call.launch("lorenzo_quant range entries", placeRangeEntries<T>, placeBlocks(entry_limit),
              kPlaceThreads, 0, run);
}

template <class T>
void launchExactEntries(const DecodeRun& run, std::uint64_t entry_limit, const cuda::Call& call) {
  call.launch("lorenzo_quant exact entries", placeExactEntries<T>, placeBlocks(entry_limit),
              kPlaceThreads, 0, run);
}

template <class T>
void launchGroupBegin(const DecodeRun& run,
                      std::size_t code_bytes,
                      std::uint64_t entry_limit,
                      const cuda::Call& call) {
  call.launch("lorenzo_quant group begin", beginGroup<T>, placeBlocks(entry_limit), kPlaceThreads,
              0, run, static_cast<unsigned>(code_bytes), call.mayWrite());
}

template <class T>
void launchGroupEnd(const DecodeRun& run,
                    std::uint64_t entry_limit,
                    std::uint64_t* n_blocks_done,
                    const cuda::Call& call) {
  call.launch("lorenzo_quant group end", endGroup<T>, placeBlocks(entry_limit), kPlaceThreads, 0,
              run, n_blocks_done, call.takeReadback());
}

#define FZ_LORENZO_QUANT_PLACE(T)                                                          \
  template void launchRangeEntries<T>(const DecodeRun&, std::uint64_t, const cuda::Call&); \
  template void launchExactEntries<T>(const DecodeRun&, std::uint64_t, const cuda::Call&); \
  template void launchGroupBegin<T>(const DecodeRun&, std::size_t, std::uint64_t,          \
                                    const cuda::Call&);                                    \
  template void launchGroupEnd<T>(const DecodeRun&, std::uint64_t, std::uint64_t*,         \
                                  const cuda::Call&)
FZ_LORENZO_QUANT_PLACE(float);
FZ_LORENZO_QUANT_PLACE(double);
#undef FZ_LORENZO_QUANT_PLACE

}  // namespace fz::lorenzo_quant::device
