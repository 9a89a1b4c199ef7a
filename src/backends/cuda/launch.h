#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "cuda_check.h"

namespace fz::cuda {

/// Blocks for a launch: at least one, so that sizes are published for empty inputs too.
inline unsigned gridFor(std::size_t n_items, std::size_t items_per_block) {
  const std::size_t n = (n_items + items_per_block - 1) / items_per_block;
  return static_cast<unsigned>(std::max<std::size_t>(1, std::min<std::size_t>(n, 0x7fffffffu)));
}

/// Calls f(T{}) with the unsigned type of so many bytes: 1, 2 or 4.
template <class F>
void withUnsigned(std::size_t n_bytes, F f) {
  n_bytes == 1 ? f(std::uint8_t{}) : n_bytes == 2 ? f(std::uint16_t{}) : f(std::uint32_t{});
}

/// After a launch: throws Error(kCuda) when it was refused.
inline void checkLaunch(const char* kernel_name) {
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    detail::throwCudaError(static_cast<int>(status), kernel_name, "kernel launch", 0);
  }
}

/// Multiprocessors of the current device, asked once per device.
unsigned multiprocessorCount();

}  // namespace fz::cuda
