#pragma once

// The last valid value before a tile, in a single pass (decoupled look-back): a tile that has one
// says at once where; one that has none finds what stands before it, 32 tiles at a time. Tiles are
// taken in block order, which the hardware starts in order, so a tile waits only for tiles that
// already run. Device code only.

#include <cstdint>

#include "backends/cuda/device.cuh"

namespace fz::mask {

/// One word per tile, zero before the kernel starts.
struct LastValid {
  static constexpr std::uint64_t kNoneInTile = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kKnown = std::uint64_t{2} << 62;
  static constexpr std::uint64_t kValueMask = (std::uint64_t{1} << 62) - 1;

  std::uint64_t* states;

  /// One thread: what the tile has itself, the index of its last valid value and 1, or 0.
  __device__ __forceinline__ void publish(std::uint64_t tile, std::uint64_t last) const {
    store(states + tile, last != 0 || tile == 0 ? kKnown | last : kNoneInTile);
  }
  /// One thread of a tile without a valid value: what stands before it.
  __device__ __forceinline__ void publishBefore(std::uint64_t tile, std::uint64_t before) const {
    store(states + tile, kKnown | before);
  }
  /// A full warp: index of the last valid value before the tile and 1, or 0, for every lane.
  __device__ __forceinline__ std::uint64_t before(std::uint64_t tile) const {
    std::int64_t last = static_cast<std::int64_t>(tile) - 1;
    while (last >= 0) {
      const std::int64_t at = last - static_cast<std::int64_t>(cuda::laneId());
      std::uint64_t state;
      unsigned known;
      while (true) {  // until a known one stands nearer than the first that has not published
        state = at >= 0 ? load(states + at) : kKnown;
        const unsigned empty = __ballot_sync(cuda::kAllLanes, (state >> 62) == 0);
        known = __ballot_sync(cuda::kAllLanes, (state >> 62) == 2);
        // The lowest bit is the nearest lane.
        if (empty == 0 || (known & (0u - known)) - 1 < (empty & (0u - empty)) - 1) {
          break;
        }
      }
      if (known != 0) {
        return __shfl_sync(cuda::kAllLanes, state, __ffs(static_cast<int>(known)) - 1) & kValueMask;
      }
      last -= cuda::kWarp;
    }
    return 0;
  }

 private:
  static __device__ __forceinline__ std::uint64_t load(const std::uint64_t* p) {
    std::uint64_t v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
  }
  static __device__ __forceinline__ void store(std::uint64_t* p, std::uint64_t v) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
  }
};

}  // namespace fz::mask
