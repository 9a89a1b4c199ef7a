#pragma once

// Single values from any address. Device code only.

#include <cstdint>

namespace fz::cuda {

/// Value i of those from `base` on, little-endian. Reads no byte beside it.
template <class U>
__device__ __forceinline__ U loadUnaligned(const void* base, std::uint64_t i) {
  static_assert(sizeof(U) == 4 || sizeof(U) == 8);
  const auto* from = static_cast<const std::uint8_t*>(base) + i * sizeof(U);
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if (address % sizeof(U) == 0) {
    return *reinterpret_cast<const U*>(from);
  }
  U value = 0;
  if (address % 4 == 0) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(from);
#pragma unroll
    for (unsigned w = 0; w < sizeof(U) / 4; ++w) {
      value |= static_cast<U>(words[w]) << (32 * w);
    }
    return value;
  }
#pragma unroll
  for (unsigned b = 0; b < sizeof(U); ++b) {
    value |= static_cast<U>(from[b]) << (8 * b);
  }
  return value;
}

}  // namespace fz::cuda
