// The list entries of a decode, put where their values are.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/unaligned_load.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_decode.cuh"

namespace fz::lorenzo_quant::device {

namespace {

constexpr unsigned kThreads = 256;

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

/// Entries may come in any order; two for one value meet in its mark.
template <class T>
__global__ void __launch_bounds__(kThreads) placeRangeEntries(const DecodeRun run) {
  auto& plan = *static_cast<DecodePlan<T>*>(run.plan);
  constexpr T kIntLimit = sizeof(T) == 4 ? T(0x1p31) : T(0x1p63);
  constexpr T kShortLimit = T(0x1p20);  // of up to 1024 deltas, with codes of 16 bits
  const Strided all;
  for (std::uint64_t i = all.first; i < plan.n_range; i += all.step) {
    const auto index = cuda::loadUnaligned<std::uint32_t>(run.indices, i);
    if (index >= plan.n_values) {
      cuda::noteError(run.record, DeviceError::kCorrupt, i);
      continue;
    }
    const MarkPlace place = markPlace<T>(plan.layout, index);
    const std::uint32_t bit = 1u << place.bit;
    if ((atomicOr(run.marks + place.word, bit) & bit) != 0) {
      cuda::noteError(run.record, DeviceError::kCorrupt, i);
    }
    const T delta = valueAt<T>(run, i);
    static_cast<T*>(run.out)[index] = delta;
    if (!(fp::abs(delta) < kIntLimit)) {
      plan.is_wide = 1;  // every writer writes the same
    }
    if (!(fp::abs(delta) < kShortLimit)) {
      plan.is_long = 1;
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) placeExactEntries(const DecodeRun run) {
  const auto& plan = *static_cast<const DecodePlan<T>*>(run.plan);
  const Strided all;
  for (std::uint64_t i = plan.n_range + all.first; i < plan.n_entries; i += all.step) {
    const auto index = cuda::loadUnaligned<std::uint32_t>(run.indices, i);
    const bool ascends =
        i == plan.n_range || cuda::loadUnaligned<std::uint32_t>(run.indices, i - 1) < index;
    if (index >= plan.n_values || !ascends) {
      cuda::noteError(run.record, DeviceError::kCorrupt, i);
      continue;
    }
    static_cast<T*>(run.out)[index] = valueAt<T>(run, i);
  }
}

unsigned stridedGrid(std::uint64_t n_entries) {
  return std::min(16 * cuda::multiprocessorCount(), cuda::gridFor(n_entries, kThreads));
}

}  // namespace

template <class T>
void launchRangeEntries(const DecodeRun& run, std::uint64_t entry_limit, cudaStream_t stream) {
  placeRangeEntries<T><<<stridedGrid(entry_limit), kThreads, 0, stream>>>(run);
  cuda::checkLaunch("lorenzo_quant range entries");
}

template <class T>
void launchExactEntries(const DecodeRun& run, std::uint64_t entry_limit, cudaStream_t stream) {
  placeExactEntries<T><<<stridedGrid(entry_limit), kThreads, 0, stream>>>(run);
  cuda::checkLaunch("lorenzo_quant exact entries");
}

template void launchRangeEntries<float>(const DecodeRun&, std::uint64_t, cudaStream_t);
template void launchRangeEntries<double>(const DecodeRun&, std::uint64_t, cudaStream_t);
template void launchExactEntries<float>(const DecodeRun&, std::uint64_t, cudaStream_t);
template void launchExactEntries<double>(const DecodeRun&, std::uint64_t, cudaStream_t);

}  // namespace fz::lorenzo_quant::device
