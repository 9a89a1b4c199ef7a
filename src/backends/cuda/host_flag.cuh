#pragma once

// The device's side of host_flag.h. Device code only.

#include <cstdint>

namespace fz::cuda {

/// All threads of a block: what they have written before, to the host's memory and to the device's,
/// is there when the flag is seen.
__device__ __forceinline__ void raiseFlag(std::uint32_t* flag) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    *static_cast<volatile std::uint32_t*>(flag) = 1;
  }
}

}  // namespace fz::cuda
