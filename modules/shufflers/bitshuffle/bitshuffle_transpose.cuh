#pragma once

// Bit matrices in the registers of one lane: 32 elements of 8, 16 or 32 bits become one word per
// plane, and back. Every step swaps two equal parts, so the steps of one direction are those of the
// other in any order.

#include <cstdint>

namespace fz::bitshuffle {

/// Swaps the high parts of kStep bits of row k with the low parts of row k + kStep; `mask` has the
/// low parts. Two shifts and two selections.
template <unsigned kStep, unsigned kRows>
__device__ __forceinline__ void swapBits(std::uint32_t (&a)[kRows], std::uint32_t mask) {
#pragma unroll
  for (unsigned k = 0; k < kRows; ++k) {
    if ((k & kStep) == 0) {
      const std::uint32_t up = a[k | kStep] << kStep;
      const std::uint32_t down = a[k] >> kStep;
      a[k] = (a[k] & mask) | (up & ~mask);
      a[k | kStep] = (down & mask) | (a[k | kStep] & ~mask);
    }
  }
}

/// 8 x 8 bits in every byte of eight consecutive rows.
template <unsigned kRows>
__device__ __forceinline__ void transposeBytes(std::uint32_t (&a)[kRows]) {
  swapBits<4>(a, 0x0F0F0F0Fu);
  swapBits<2>(a, 0x33333333u);
  swapBits<1>(a, 0x55555555u);
}

/// Rows k and k + 8 exchange bytes, in both halves of the words.
template <unsigned kRows>
__device__ __forceinline__ void swapBytes(std::uint32_t (&a)[kRows]) {
#pragma unroll
  for (unsigned k = 0; k < kRows; ++k) {
    if ((k & 8u) == 0) {
      const std::uint32_t x = a[k];
      const std::uint32_t y = a[k | 8u];
      a[k] = __byte_perm(x, y, 0x6240);
      a[k | 8u] = __byte_perm(x, y, 0x7351);
    }
  }
}

/// Bit b of row l becomes bit l of row b. Its own inverse.
__device__ __forceinline__ void transpose32(std::uint32_t (&a)[32]) {
#pragma unroll
  for (unsigned k = 0; k < 16; ++k) {
    const std::uint32_t x = a[k];
    const std::uint32_t y = a[k + 16];
    a[k] = __byte_perm(x, y, 0x5410);
    a[k + 16] = __byte_perm(x, y, 0x7632);
  }
  swapBytes(a);
  transposeBytes(a);
}

/// 16 elements of 16 bits in words of their own, into 16 planes of 16 bits: plane k in the low half
/// of planes[k], plane k + 8 in the high half; bit l is of element l.
__device__ __forceinline__ void halfPlanesOf16(const std::uint32_t (&elements)[16],
                                               std::uint32_t (&planes)[8]) {
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) {
    planes[k] = __byte_perm(elements[k], elements[k + 8], 0x5140);
  }
  transposeBytes(planes);
}
__device__ __forceinline__ void elementsOfHalfPlanes(std::uint32_t (&planes)[8],
                                                     std::uint32_t (&elements)[16]) {
  transposeBytes(planes);
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) {
    elements[k] = __byte_perm(planes[k], 0u, 0x4420);
    elements[k + 8] = __byte_perm(planes[k], 0u, 0x4431);
  }
}

/// 32 elements of 16 bits, two in a word, into 16 planes: bit l of plane b is bit b of element l.
__device__ __forceinline__ void planesOf16(const std::uint32_t (&words)[16],
                                           std::uint32_t (&planes)[16]) {
#pragma unroll
  for (unsigned k = 0; k < 16; ++k) {  // elements k and k + 16 side by side
    planes[k] = __byte_perm(words[k / 2], words[k / 2 + 8], k % 2 == 0 ? 0x5410 : 0x7632);
  }
  swapBytes(planes);
  transposeBytes(planes);
}
__device__ __forceinline__ void elementsOf16(std::uint32_t (&planes)[16],
                                             std::uint32_t (&words)[16]) {
  transposeBytes(planes);
  swapBytes(planes);
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) {
    words[k] = __byte_perm(planes[2 * k], planes[2 * k + 1], 0x5410);
    words[k + 8] = __byte_perm(planes[2 * k], planes[2 * k + 1], 0x7632);
  }
}

/// Byte c of word j becomes byte j of word c, for words first, first + step, ...
template <unsigned kFirst, unsigned kStep>
__device__ __forceinline__ void transpose4Bytes(std::uint32_t (&a)[8]) {
  const std::uint32_t low01 = __byte_perm(a[kFirst], a[kFirst + kStep], 0x5140);
  const std::uint32_t low23 = __byte_perm(a[kFirst + 2 * kStep], a[kFirst + 3 * kStep], 0x5140);
  const std::uint32_t high01 = __byte_perm(a[kFirst], a[kFirst + kStep], 0x7362);
  const std::uint32_t high23 = __byte_perm(a[kFirst + 2 * kStep], a[kFirst + 3 * kStep], 0x7362);
  a[kFirst] = __byte_perm(low01, low23, 0x5410);
  a[kFirst + kStep] = __byte_perm(low01, low23, 0x7632);
  a[kFirst + 2 * kStep] = __byte_perm(high01, high23, 0x5410);
  a[kFirst + 3 * kStep] = __byte_perm(high01, high23, 0x7632);
}

/// 32 elements of 8 bits, four in a word, into 8 planes: bit l of plane b is bit b of element l.
/// In between, byte c of row k is element k + 8c.
__device__ __forceinline__ void planesOf8(const std::uint32_t (&words)[8],
                                          std::uint32_t (&planes)[8]) {
  std::uint32_t a[8];
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) {
    a[k] = words[k];
  }
  transpose4Bytes<0, 2>(a);
  transpose4Bytes<1, 2>(a);
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) {  // a[2j] is row j, a[2j + 1] row 4 + j
    planes[k] = a[2 * k];
    planes[k + 4] = a[2 * k + 1];
  }
  transposeBytes(planes);
}
__device__ __forceinline__ void elementsOf8(std::uint32_t (&planes)[8], std::uint32_t (&words)[8]) {
  transposeBytes(planes);
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) {
    words[2 * k] = planes[k];
    words[2 * k + 1] = planes[k + 4];
  }
  transpose4Bytes<0, 2>(words);
  transpose4Bytes<1, 2>(words);
}

}  // namespace fz::bitshuffle
