#pragma once

// What all kernels of a decoder do. Device code only.

#include "backends/cuda/device.cuh"
#include "transforms/mask/codec.h"
#include "transforms/mask/cuda/kernels.h"

namespace fz::mask {

__device__ __forceinline__ void recordDamage(StageRecord* record,
                                             Reason reason,
                                             std::uint64_t index) {
  cuda::recordError(record, DeviceError::kCorrupt, index);
  atomicMax(reinterpret_cast<unsigned long long*>(&record->error_value),
            static_cast<unsigned long long>(reason));
}

__device__ __forceinline__ Grid gridOf(const DecodeArgs& args) {
  return makeGrid(args.extents[0], args.extents[1], args.extents[2]);
}

}  // namespace fz::mask
