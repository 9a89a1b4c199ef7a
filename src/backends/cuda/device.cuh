#pragma once

// What every kernel uses: sizes and errors in the stage's record, wide loads and stores, sums over
// warps and blocks. Device code only.

#include <cstddef>
#include <cstdint>

#include "fz/device_types.h"

namespace fz::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

__device__ __forceinline__ unsigned laneId() {
  return threadIdx.x & (kWarp - 1);
}
__device__ __forceinline__ unsigned warpId() {
  return threadIdx.x / kWarp;
}

/// The exact size. A size that another stage left on the device was clamped to its buffer.
__device__ __forceinline__ std::uint64_t load(const DeviceSize& size) {
  return size.on_device == nullptr ? size.n_bytes : *size.on_device;
}

/// Called by one thread of the grid: the size of an output whose size the host does not know. What
/// does not fit is reported, so that the pipeline can grow the buffer and run again.
__device__ __forceinline__ void publishSize(StageRecord* record,
                                            unsigned port,
                                            std::uint64_t needed_bytes,
                                            std::uint64_t capacity_bytes) {
  record->n_bytes[port] = needed_bytes <= capacity_bytes ? needed_bytes : capacity_bytes;
  record->needed_bytes[port] = needed_bytes;
}

/// Notes a failure at `index`. The result (largest code, smallest index, count) does not depend on
/// the order of the calls.
__device__ __forceinline__ void recordError(StageRecord* record,
                                            DeviceError error,
                                            std::uint64_t index,
                                            std::uint64_t count = 1) {
  atomicMax(reinterpret_cast<unsigned long long*>(&record->error),
            static_cast<unsigned long long>(error));
  atomicMin(reinterpret_cast<unsigned long long*>(&record->error_index),
            static_cast<unsigned long long>(index));
  auto* error_count = reinterpret_cast<unsigned long long*>(&record->error_count);
  atomicAdd(error_count, static_cast<unsigned long long>(count));  // order-free: only a sum
}

// 16 bytes at once; p is 16-byte aligned. Data is read once and written once: keep it out of L1.
__device__ __forceinline__ uint4 loadStream(const void* p) {
  return __ldcs(static_cast<const uint4*>(p));
}
__device__ __forceinline__ void storeStream(void* p, uint4 v) {
  __stcs(static_cast<uint4*>(p), v);
}

/// N values of T (16 bytes together) with typed access.
template <class T>
union Vec16 {
  static constexpr unsigned kCount = 16 / sizeof(T);
  uint4 raw;
  T v[kCount];
};

/// Inclusive sum over the lanes of a full warp.
template <class T>
__device__ __forceinline__ T warpInclusiveSum(T value) {
#pragma unroll
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const T other = __shfl_up_sync(kAllLanes, value, step);
    if (laneId() >= step) {
      value += other;
    }
  }
  return value;
}

template <class T>
__device__ __forceinline__ T warpSum(T value) {
#pragma unroll
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, step);
  }
  return value;
}

/// Exclusive sum over a block of kThreads threads (one dimension); `total` is the block's sum for
/// every thread. `warp_sums` is shared memory for kThreads / 32 values; the function ends with all
/// threads past a barrier, and a second call needs a barrier (or other memory) in between.
template <unsigned kThreads, class T>
__device__ __forceinline__ T blockExclusiveSum(T value, T* warp_sums, T* total) {
  const T inclusive = warpInclusiveSum(value);
  if (laneId() == kWarp - 1) {
    warp_sums[warpId()] = inclusive;
  }
  __syncthreads();
  T before = 0;
  T all = 0;
#pragma unroll
  for (unsigned w = 0; w < kThreads / kWarp; ++w) {
    const T s = warp_sums[w];
    before += w < warpId() ? s : T{0};
    all += s;
  }
  *total = all;
  return before + inclusive - value;
}

}  // namespace fz::cuda
