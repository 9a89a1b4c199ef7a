#pragma once

// The 64 bytes of a thread as parts of the planes of a block, for elements of every size. Device
// code only; must compile with NVRTC.

#include "shufflers/bitshuffle/bitshuffle_transpose.cuh"

namespace fz::bitshuffle {

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
