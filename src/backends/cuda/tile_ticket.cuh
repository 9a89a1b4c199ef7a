#pragma once

// Tiles for blocks that work on more than one. A block that may wait for another's tile must be
// sure that the other block runs; it is when it has taken the tile itself. Device code only.

#include <cstdint>

namespace fz::cuda {

/// A counter, zero before the kernel starts.
struct TileTicket {
  std::uint64_t* next;

  /// One thread: the lowest tile not taken yet.
  __device__ __forceinline__ std::uint32_t take() const {
    auto* counter = reinterpret_cast<unsigned long long*>(next);
    const auto tile = atomicAdd(counter, 1ull);  // order-free: bytes and places go by the tile
    return static_cast<std::uint32_t>(tile);
  }
};

}  // namespace fz::cuda
