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

}  // namespace fz::cuda
