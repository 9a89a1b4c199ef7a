#pragma once

#include <cstdint>

#include "shared/host_device.h"

/// A team works on one tile. Codec text written against a team speaks of items, never of threads,
/// so the same text runs serially on the host, shuffled in tests and by a thread block on a device.
namespace fz {

/// One thread doing a tile's work in index order.
struct SerialTeam {
  /// Calls f(0) .. f(n-1); the calls must be independent of each other.
  template <class F>
  FZ_HD void each(std::uint32_t n, F f) const {
    for (std::uint32_t i = 0; i < n; ++i) {
      f(i);
    }
  }
  /// Makes the effects of each() visible to the whole team.
  FZ_HD void sync() const {}
  /// max of f(0) .. f(n-1); 0 for n == 0.
  template <class F>
  FZ_HD std::uint32_t max(std::uint32_t n, F f) const {
    std::uint32_t m = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t v = f(i);
      m = v > m ? v : m;
    }
    return m;
  }
};

#ifdef __CUDACC__
/// One warp of a device; its lanes call the codec's text together.
struct WarpTeam {
  static constexpr std::uint32_t kLanes = 32;

  template <class F>
  __device__ __forceinline__ void each(std::uint32_t n, F f) const {
    for (std::uint32_t i = threadIdx.x % kLanes; i < n; i += kLanes) {
      f(i);
    }
  }
  __device__ __forceinline__ void sync() const { __syncwarp(); }
  template <class F>
  __device__ __forceinline__ std::uint32_t max(std::uint32_t n, F f) const {
    std::uint32_t m = 0;
    each(n, [&](std::uint32_t i) {
      const std::uint32_t v = f(i);
      m = v > m ? v : m;
    });
    return __reduce_max_sync(0xffffffffu, m);
  }
};

/// A whole thread block of one dimension and any size. All of its threads call the codec's text
/// together and take the same way through it, since sync() and max() are barriers.
struct BlockTeam {
  template <class F>
  __device__ __forceinline__ void each(std::uint32_t n, F f) const {
    for (std::uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
      f(i);
    }
  }
  __device__ __forceinline__ void sync() const { __syncthreads(); }
  template <class F>
  __device__ __forceinline__ std::uint32_t max(std::uint32_t n, F f) const {
    __shared__ std::uint32_t largest;
    __syncthreads();  // the call before may still be reading its result
    if (threadIdx.x == 0) {
      largest = 0;
    }
    __syncthreads();
    std::uint32_t m = 0;
    each(n, [&](std::uint32_t i) {
      const std::uint32_t v = f(i);
      m = v > m ? v : m;
    });
    if (m != 0) {
      atomicMax(&largest, m);
    }
    __syncthreads();
    return largest;
  }
};
#endif

}  // namespace fz
