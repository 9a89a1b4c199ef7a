#pragma once

// Lanes of a warp as bits. Device code only.

#include <cstdint>

#include "backends/cuda/device.cuh"

namespace fz::mask {

__device__ __forceinline__ unsigned highestLane(unsigned lanes) {
  return 31u - static_cast<unsigned>(__clz(static_cast<int>(lanes)));
}
__device__ __forceinline__ unsigned lowestLane(unsigned lanes) {
  return static_cast<unsigned>(__ffs(static_cast<int>(lanes))) - 1;
}
/// The last lane that has a value.
__device__ __forceinline__ unsigned lastLane(unsigned valid, unsigned missing) {
  return highestLane(valid | missing);
}
__device__ __forceinline__ unsigned lanesBelow() {
  return (1u << cuda::laneId()) - 1;
}
template <class U>
__device__ __forceinline__ U ofLane(U value, unsigned lane) {
  return __shfl_sync(cuda::kAllLanes, value, static_cast<int>(lane));
}

}  // namespace fz::mask
