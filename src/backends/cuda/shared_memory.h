#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include "cuda_check.h"

namespace fz::cuda {

/// Dynamic shared memory beyond what every kernel may have must be asked for.
inline void allowSharedBytes(const void* kernel, std::size_t n_bytes) {
  constexpr std::size_t kAlwaysAllowed = 48 * 1024;
  if (n_bytes > kAlwaysAllowed) {
    FZ_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(n_bytes)));
  }
}

/// The most that a block of the current device can have.
inline std::size_t sharedBytesLimit() {
  int device = 0;
  int n_bytes = 0;
  FZ_CUDA_CHECK(cudaGetDevice(&device));
  FZ_CUDA_CHECK(cudaDeviceGetAttribute(&n_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return static_cast<std::size_t>(n_bytes);
}

}  // namespace fz::cuda
