#pragma once

// Bit matrices in the registers of one lane: 32 elements of 8, 16 or 32 bits become one word per
// plane, and the 64 bytes of a thread become parts of the planes of a block, and back. Every step
// swaps two equal parts, so the steps of one direction are those of the other in any order. Device
// code only; must compile with NVRTC.

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

/// The 64 bytes of a thread as parts of planes, the highest bit first. decodeWords leaves elements
/// as they stand in memory.
template <unsigned kBytes>
struct ThreadPlanes;

/// 16 elements of 32 bits: half a word of each plane. Element 0 has the highest bit.
template <>
struct ThreadPlanes<4> {
  using Part = std::uint16_t;
  using Element = std::uint32_t;
  static constexpr unsigned kElements = 16;
  static constexpr unsigned kPlanes = 32;
  /// Place of the part among those of its plane.
  static __device__ __forceinline__ unsigned place(unsigned index) { return index ^ 1u; }

  /// Planes k and 16 + k, counted from bit 0, in the halves of a[k].
  static __device__ __forceinline__ void encode(const Element (&v)[16], std::uint32_t (&a)[16]) {
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      a[k] = v[15 - k];
    }
    swapBytes(a);
    transposeBytes(a);
  }
  template <class Store>
  static __device__ __forceinline__ void each(const std::uint32_t (&a)[16], Store store) {
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      store(31 - k, static_cast<Part>(a[k]));
      store(15 - k, static_cast<Part>(a[k] >> 16));
    }
  }
  template <class Load>
  static __device__ __forceinline__ void gather(Load load, std::uint32_t (&a)[16]) {
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      a[k] = std::uint32_t{load(31 - k)} | std::uint32_t{load(15 - k)} << 16;
    }
  }
  static __device__ __forceinline__ void decode(std::uint32_t (&a)[16], Element (&v)[16]) {
    transposeBytes(a);
    swapBytes(a);
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      v[15 - k] = a[k];
    }
  }
  static __device__ __forceinline__ void decodeWords(std::uint32_t (&a)[16],
                                                     std::uint32_t (&words)[16]) {
    decode(a, words);
  }

  // Elements below 2^16, half the work: the first 16 planes are zero.

  static constexpr bool kHasNarrow = true;
  static constexpr unsigned kZeroPlanes = 16;
  static __device__ __forceinline__ bool isNarrow(const Element (&v)[16]) {
    std::uint32_t all = 0;
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      all |= v[k];
    }
    return all < 0x10000u;
  }
  template <class Store>
  static __device__ __forceinline__ void encodeNarrow(const Element (&v)[16], Store store) {
    std::uint32_t rows[16];
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      rows[k] = v[15 - k];
    }
    std::uint32_t a[8];
    halfPlanesOf16(rows, a);
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      store(31 - k, static_cast<Part>(a[k]));
      store(23 - k, static_cast<Part>(a[k] >> 16));
    }
  }
  template <class Load>
  static __device__ __forceinline__ void decodeNarrow(Load load, Element (&v)[16]) {
    std::uint32_t a[8];
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      a[k] = std::uint32_t{load(31 - k)} | std::uint32_t{load(23 - k)} << 16;
    }
    std::uint32_t rows[16];
    elementsOfHalfPlanes(a, rows);
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      v[15 - k] = rows[k];
    }
  }
};

/// 32 elements of 16 bits: a word of each plane. Element 0 has the lowest bit.
template <>
struct ThreadPlanes<2> {
  using Part = std::uint32_t;
  using Element = std::uint16_t;
  static constexpr unsigned kElements = 32;
  static constexpr unsigned kPlanes = 16;
  static constexpr bool kHasNarrow = false;
  static __device__ __forceinline__ unsigned place(unsigned index) { return index; }

  static __device__ __forceinline__ void encode(const Element (&v)[32], std::uint32_t (&a)[16]) {
    std::uint32_t words[16];
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      words[k] = std::uint32_t{v[2 * k]} | std::uint32_t{v[2 * k + 1]} << 16;
    }
    planesOf16(words, a);
  }
  template <class Store>
  static __device__ __forceinline__ void each(const std::uint32_t (&a)[16], Store store) {
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      store(15 - k, a[k]);
    }
  }
  template <class Load>
  static __device__ __forceinline__ void gather(Load load, std::uint32_t (&a)[16]) {
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      a[k] = load(15 - k);
    }
  }
  static __device__ __forceinline__ void decodeWords(std::uint32_t (&a)[16],
                                                     std::uint32_t (&words)[16]) {
    elementsOf16(a, words);
  }
  static __device__ __forceinline__ void decode(std::uint32_t (&a)[16], Element (&v)[32]) {
    std::uint32_t words[16];
    decodeWords(a, words);
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) {
      v[2 * k] = static_cast<Element>(words[k]);
      v[2 * k + 1] = static_cast<Element>(words[k] >> 16);
    }
  }
};

/// 64 elements of 8 bits: two words of each plane. Element 0 has the lowest bit.
template <>
struct ThreadPlanes<1> {
  using Part = std::uint64_t;
  using Element = std::uint8_t;
  static constexpr unsigned kElements = 64;
  static constexpr unsigned kPlanes = 8;
  static constexpr bool kHasNarrow = false;
  static __device__ __forceinline__ unsigned place(unsigned index) { return index; }

  /// The words of plane k, counted from bit 0, in a[k] and a[8 + k].
  static __device__ __forceinline__ void encode(const Element (&v)[64], std::uint32_t (&a)[16]) {
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      std::uint32_t words[8];
      std::uint32_t planes[8];
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) {
        const unsigned at = 32 * half + 4 * k;
        words[k] = std::uint32_t{v[at]} | std::uint32_t{v[at + 1]} << 8 |
                   std::uint32_t{v[at + 2]} << 16 | std::uint32_t{v[at + 3]} << 24;
      }
      planesOf8(words, planes);
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) {
        a[8 * half + k] = planes[k];
      }
    }
  }
  template <class Store>
  static __device__ __forceinline__ void each(const std::uint32_t (&a)[16], Store store) {
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      store(7 - k, a[k] | Part{a[8 + k]} << 32);
    }
  }
  template <class Load>
  static __device__ __forceinline__ void gather(Load load, std::uint32_t (&a)[16]) {
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      const Part part = load(7 - k);
      a[k] = static_cast<std::uint32_t>(part);
      a[8 + k] = static_cast<std::uint32_t>(part >> 32);
    }
  }
  static __device__ __forceinline__ void decodeWords(std::uint32_t (&a)[16],
                                                     std::uint32_t (&words)[16]) {
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      std::uint32_t planes[8];
      std::uint32_t part[8];
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) {
        planes[k] = a[8 * half + k];
      }
      elementsOf8(planes, part);
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) {
        words[8 * half + k] = part[k];
      }
    }
  }
  static __device__ __forceinline__ void decode(std::uint32_t (&a)[16], Element (&v)[64]) {
    std::uint32_t words[16];
    decodeWords(a, words);
#pragma unroll
    for (unsigned k = 0; k < 64; ++k) {
      v[k] = static_cast<Element>(words[k / 4] >> (8 * (k % 4)));
    }
  }
};

/// 8 elements of 64 bits: a byte of each plane. Element 0 has the highest bit of its word.
template <>
struct ThreadPlanes<8> {
  using Part = std::uint8_t;
  using Element = std::uint64_t;
  static constexpr unsigned kElements = 8;
  static constexpr unsigned kPlanes = 64;
  static constexpr bool kHasNarrow = false;
  static __device__ __forceinline__ unsigned place(unsigned index) { return index ^ 7u; }

  /// Byte c of a[b] is bit 8 c + b of the elements, that of a[8 + b] bit 32 + 8 c + b.
  static __device__ __forceinline__ void encode(const Element (&v)[8], std::uint32_t (&a)[16]) {
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      a[k] = static_cast<std::uint32_t>(v[7 - k]);
      a[8 + k] = static_cast<std::uint32_t>(v[7 - k] >> 32);
    }
    transposeBytes(a);
  }
  template <class Store>
  static __device__ __forceinline__ void each(const std::uint32_t (&a)[16], Store store) {
#pragma unroll
    for (unsigned k = 0; k < 32; ++k) {
      store(63 - k, static_cast<Part>(a[k % 8] >> (k / 8 * 8)));
      store(31 - k, static_cast<Part>(a[8 + k % 8] >> (k / 8 * 8)));
    }
  }
  template <class Load>
  static __device__ __forceinline__ void gather(Load load, std::uint32_t (&a)[16]) {
#pragma unroll
    for (unsigned b = 0; b < 8; ++b) {
      a[b] = 0;
      a[8 + b] = 0;
#pragma unroll
      for (unsigned c = 0; c < 4; ++c) {
        a[b] |= std::uint32_t{load(63 - 8 * c - b)} << (8 * c);
        a[8 + b] |= std::uint32_t{load(31 - 8 * c - b)} << (8 * c);
      }
    }
  }
  static __device__ __forceinline__ void decode(std::uint32_t (&a)[16], Element (&v)[8]) {
    transposeBytes(a);
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      v[7 - k] = a[k] | Element{a[8 + k]} << 32;
    }
  }
  static __device__ __forceinline__ void decodeWords(std::uint32_t (&a)[16],
                                                     std::uint32_t (&words)[16]) {
    transposeBytes(a);
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      words[14 - 2 * k] = a[k];
      words[15 - 2 * k] = a[8 + k];
    }
  }
};

}  // namespace fz::bitshuffle
