#pragma once

// Copies from global to shared memory that run beside the thread. Device code only.

#include <cstdint>

namespace fz::cuda {

/// kBytes (2, 4, 8 or 16; 2 at once, not beside the thread) from `from` to `to`, both aligned to
/// that; zeros when `is_there` is false, and nothing is read then.
template <unsigned kBytes>
__device__ __forceinline__ void copyAsync(void* to, const void* from, bool is_there) {
  static_assert(kBytes == 2 || kBytes == 4 || kBytes == 8 || kBytes == 16);
  if constexpr (kBytes == 2) {
    *static_cast<std::uint16_t*>(to) = is_there ? *static_cast<const std::uint16_t*>(from) : 0;
    return;
  }
  const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  const unsigned n_bytes = is_there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from),
                 "r"(n_bytes)
                 : "memory");
  } else if constexpr (kBytes > 2) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target), "l"(from),
                 "n"(kBytes), "r"(n_bytes)
                 : "memory");
  }
}

/// Until all copies of the calling thread have arrived; others see them after a barrier.
__device__ __forceinline__ void waitForCopies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

}  // namespace fz::cuda
