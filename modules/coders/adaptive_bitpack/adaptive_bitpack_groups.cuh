#pragma once

// Register kernels: one thread holds a group of 32 values of a block, a warp 1024 values.

#include "coders/adaptive_bitpack/adaptive_bitpack_device.cuh"

namespace fz::adaptive_bitpack {

/// What the threads of a block share: its groups lie on kGroups neighbouring lanes, or as many as
/// only the kernel's arguments tell (kGroups = 0).
template <unsigned kGroups>
struct Lanes {
  unsigned count_log2;  ///< of the number of groups in a block

  __device__ __forceinline__ explicit Lanes(std::uint32_t block_values)
      : count_log2(bits::bitWidth(kGroups != 0 ? kGroups : block_values / kGroupValues) - 1) {}
  __device__ __forceinline__ unsigned count() const {
    return kGroups != 0 ? kGroups : 1u << count_log2;
  }
  /// The thread's group inside its block.
  __device__ __forceinline__ unsigned group() const {
    return kGroups == 1 ? 0u : cuda::laneId() & (count() - 1);
  }
};

/// Calls f.operator()<P>() with the smallest P of 8, 12, 16 and 32 planes that holds n_planes.
template <class T, class F>
__device__ __forceinline__ void withPlanes(std::uint32_t n_planes, F f) {
  if (n_planes <= 8) {
    f.template operator()<8>();
  } else if (n_planes <= 12) {
    f.template operator()<12>();
  } else if (sizeof(T) == 2 || n_planes <= 16) {
    f.template operator()<16>();
  } else if constexpr (sizeof(T) == 4) {
    f.template operator()<32>();
  }
}

}  // namespace fz::adaptive_bitpack
