#pragma once

// 32 x 32 bit transposes in the registers of one thread: the upper levels by byte permutes, three
// butterfly levels below, and only for the rows that are asked for. Device code only.

#include <cstdint>

namespace fz::cuda {

/// Swaps the off-diagonal J x J bit squares of the rows from kFirst to kRows; its own inverse.
/// `mask` has the bits that stay in the upper row. Shifts and selects: one instruction less than
/// with exclusive ors, and logic is what the kernels wait for.
template <unsigned kRows, unsigned J, unsigned kFirst = 0>
__device__ __forceinline__ void swapSquares(std::uint32_t (&a)[32], std::uint32_t mask) {
#pragma unroll
  for (unsigned k = kFirst; k < kRows; ++k) {
    if ((k & J) == 0) {
      const std::uint32_t upper = a[k];
      const std::uint32_t lower = a[k | J];
      a[k] = (upper & mask) | (lower << J & ~mask);
      a[k | J] = (upper >> J & mask) | (lower & ~mask);
    }
  }
}

/// The three levels below a byte.
template <unsigned kRows>
__device__ __forceinline__ void swapInsideBytes(std::uint32_t (&a)[32]) {
  swapSquares<kRows, 4>(a, 0x0F0F0F0Fu);
  swapSquares<kRows, 2>(a, 0x33333333u);
  swapSquares<kRows, 1>(a, 0x55555555u);
}

/// Rows k and k + 8: the even bytes of both to row k, the odd ones to k + 8.
template <unsigned kRows>
__device__ __forceinline__ void swapBytes(std::uint32_t (&a)[32]) {
#pragma unroll
  for (unsigned k = 0; k < kRows; ++k) {
    if ((k & 8) == 0) {
      const std::uint32_t x = a[k];
      const std::uint32_t y = a[k + 8];
      a[k] = __byte_perm(x, y, 0x6240);
      a[k + 8] = __byte_perm(x, y, 0x7351);
    }
  }
}

/// Rows k and k + 16: the low halves of both to row k, the high ones to k + 16.
__device__ __forceinline__ void swapHalves(std::uint32_t (&a)[32]) {
#pragma unroll
  for (unsigned k = 0; k < 16; ++k) {
    const std::uint32_t x = a[k];
    const std::uint32_t y = a[k + 16];
    a[k] = __byte_perm(x, y, 0x5410);
    a[k + 16] = __byte_perm(x, y, 0x7632);
  }
}

/// 32 values below 2^16, value i in the low and value i + 16 in the high half of row i -> the first
/// kPlanes planes, 8, 12 or 16. The values are below 2^kPlanes.
template <unsigned kPlanes>
__device__ __forceinline__ void pairsToPlanes(std::uint32_t (&a)[32]) {
  if constexpr (kPlanes == 8) {
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      a[k] = __byte_perm(a[k], a[k + 8], 0x6240);
    }
  } else {
    swapBytes<16>(a);
  }
  if constexpr (kPlanes == 12) {  // the upper bytes have four bits each
#pragma unroll
    for (unsigned k = 8; k < 12; ++k) {
      a[k] += a[k + 4] * 16;
    }
    swapInsideBytes<8>(a);
    swapSquares<12, 2, 8>(a, 0x33333333u);
    swapSquares<12, 1, 8>(a, 0x55555555u);
  } else {
    swapInsideBytes<kPlanes>(a);
  }
}

/// The inverse of pairsToPlanes: rows 0 to 15 are set.
template <unsigned kPlanes>
__device__ __forceinline__ void planesToPairs(std::uint32_t (&a)[32]) {
  if constexpr (kPlanes == 12) {
    swapInsideBytes<8>(a);
    swapSquares<12, 2, 8>(a, 0x33333333u);
    swapSquares<12, 1, 8>(a, 0x55555555u);
#pragma unroll
    for (unsigned k = 8; k < 12; ++k) {
      a[k + 4] = a[k] >> 4 & 0x0F0F0F0Fu;
      a[k] &= 0x0F0F0F0Fu;
    }
  } else {
    swapInsideBytes<kPlanes>(a);
  }
  if constexpr (kPlanes != 8) {
    swapBytes<16>(a);
  } else {
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      const std::uint32_t x = a[k];
      a[k] = __byte_perm(x, 0, 0x4240);
      a[k + 8] = __byte_perm(x, 0, 0x4341);
    }
  }
}

/// 32 values below 2^kPlanes -> kPlanes planes: bit i of plane p is bit p of value i. kPlanes is
/// 8, 12, 16 or 32; the rows behind the planes are left undefined.
template <unsigned kPlanes>
__device__ __forceinline__ void toPlanes(std::uint32_t (&a)[32]) {
  if constexpr (kPlanes == 32) {
    swapHalves(a);
    swapBytes<32>(a);
    swapInsideBytes<32>(a);
  } else {
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      a[k] = __byte_perm(a[k], a[k + 16], 0x5410);
    }
    pairsToPlanes<kPlanes>(a);
  }
}

/// The inverse of toPlanes: all 32 rows are set.
template <unsigned kPlanes>
__device__ __forceinline__ void fromPlanes(std::uint32_t (&a)[32]) {
  if constexpr (kPlanes == 32) {
    swapInsideBytes<32>(a);
    swapBytes<32>(a);
    swapHalves(a);
  } else {
    planesToPairs<kPlanes>(a);
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      const std::uint32_t x = a[k];
      a[k] = x & 0xFFFFu;
      a[k + 16] = x >> 16;
    }
  }
}

}  // namespace fz::cuda
