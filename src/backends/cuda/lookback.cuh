#pragma once

// Sum over all tiles before this one, in a single pass (decoupled look-back). Each tile publishes
// its own sum at once and its prefix when known; a later tile walks back over the states of its
// predecessors, 32 at a time, until it meets a prefix. Tiles are taken in block order, which the
// hardware starts in order, so a tile waits only for tiles that already run.

#include <cstddef>
#include <cstdint>

#include "backends/cuda/device.cuh"

namespace fz::cuda {

/// One word per tile, zero before the kernel starts (cleared on the same stream, or ZeroedScratch).
/// Values use 62 bits.
struct LookBack {
  static constexpr std::uint64_t kSumKnown = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kPrefixKnown = std::uint64_t{2} << 62;
  static constexpr std::uint64_t kValueMask = (std::uint64_t{1} << 62) - 1;

  std::uint64_t* states;

  /// One thread, as early as the tile's sum is known.
  __device__ __forceinline__ void publish(std::uint64_t tile, std::uint64_t sum) const {
    store(states + tile, (tile == 0 ? kPrefixKnown : kSumKnown) | sum);
  }

  /// A full warp, after publish: the sum over all tiles before `tile`, for every lane.
  __device__ __forceinline__ std::uint64_t prefix(std::uint64_t tile, std::uint64_t sum) const {
    if (tile == 0) {
      return 0;
    }
    std::uint64_t before = 0;
    std::int64_t last = static_cast<std::int64_t>(tile) - 1;
    while (true) {
      const std::int64_t at = last - static_cast<std::int64_t>(laneId());
      std::uint64_t state;
      unsigned prefixes;
      do {  // until a prefix stands nearer than the first tile that has not published
        state = at >= 0 ? load(states + at) : kPrefixKnown;
        const unsigned unknown = __ballot_sync(kAllLanes, (state >> 62) == 0);
        prefixes = __ballot_sync(kAllLanes, (state >> 62) == 2);
        const int first_unknown = unknown != 0 ? __ffs(static_cast<int>(unknown)) : 33;
        const int first_prefix = prefixes != 0 ? __ffs(static_cast<int>(prefixes)) : 34;
        if (first_prefix < first_unknown || unknown == 0) {
          break;
        }
      } while (true);
      const unsigned nearest =
          prefixes != 0 ? static_cast<unsigned>(__ffs(static_cast<int>(prefixes))) - 1 : kWarp - 1;
      before += warpSum(laneId() <= nearest ? state & kValueMask : 0);
      if (prefixes != 0) {
        break;
      }
      last -= kWarp;
    }
    if (laneId() == 0) {
      store(states + tile, kPrefixKnown | (before + sum));
    }
    return before;
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

}  // namespace fz::cuda
