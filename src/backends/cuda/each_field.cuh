#pragma once

// A kernel's work for one of many fields. Device code only.

#include <cstdint>

#include "fz/device_types.h"

namespace fz::cuda {

/// All threads of a block, before anything else: the parameters of its field, blockIdx.y, in shared
/// memory. Several make a struct whose members are aligned to 16 bytes.
template <class Args>
__device__ __forceinline__ const Args& argumentsOf(const EachField& fields) {
  constexpr unsigned kPieces = (sizeof(Args) + sizeof(uint4) - 1) / sizeof(uint4);
  __shared__ uint4 copy[kPieces];
  const auto* from = reinterpret_cast<const uint4*>(fields.arguments + blockIdx.y * fields.stride);
  for (unsigned i = threadIdx.x; i < kPieces; i += blockDim.x) {
    copy[i] = __ldg(from + i);
  }
  __syncthreads();
  return *reinterpret_cast<const Args*>(copy);
}

}  // namespace fz::cuda
