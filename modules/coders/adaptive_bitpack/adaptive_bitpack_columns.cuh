#pragma once

// Blocks of any size in columns of 8 values: a column is one byte of every row of the payload, so a
// thread that has a column reads and writes whole bytes. The bits come by 8 x 8 transposes.

#include "coders/adaptive_bitpack/adaptive_bitpack_device.cuh"

namespace fz::adaptive_bitpack {

inline constexpr unsigned kColumnValues = 8;
/// A tile has a power of two of blocks, so this is what its columns come to.
inline constexpr std::uint32_t kAnyTileColumns = kAnyTileValues / kColumnValues;

/// 8 rows of 8 bits; row i is byte i.
struct BitSquare {
  std::uint32_t low;
  std::uint32_t high;

  __device__ __forceinline__ static std::uint32_t transposeHalf(std::uint32_t x) {
    const std::uint32_t t = (x ^ x >> 7) & 0x00AA00AAu;
    x ^= t ^ t << 7;
    const std::uint32_t u = (x ^ x >> 14) & 0x0000CCCCu;
    return x ^ u ^ u << 14;
  }
  __device__ __forceinline__ void transpose() {
    low = transposeHalf(low);
    high = transposeHalf(high);
    const std::uint32_t t = (low ^ high << 4) & 0xF0F0F0F0u;
    low ^= t;
    high ^= t >> 4;
  }
  /// i must be known when compiled.
  __device__ __forceinline__ std::uint32_t row(unsigned i) const {
    return (i < 4 ? low : high) >> (8 * (i % 4)) & 0xFFu;
  }
};

/// Where a tile's values stand in shared memory: columns and blocks an odd number of values apart,
/// so that threads with different columns meet in different banks.
struct ColumnPlaces {
  static constexpr unsigned kStep = kColumnValues + 1;
  static constexpr std::uint32_t kMost = kAnyTileColumns * kStep + kAnyTileBlocks;

  std::uint32_t block_values;
  std::uint32_t stride;      ///< between blocks; columns are kStep apart
  std::uint32_t reciprocal;  ///< of the block size, times 2^32

  __device__ __forceinline__ explicit ColumnPlaces(BlockLayout layout)
      : block_values(layout.block_values),
        stride((layout.planeBytes() * kStep) | 1u),
        reciprocal(~0u / layout.block_values + 1) {}

  /// Place of value i of the tile; the quotient is exact since i and the block size are small.
  __device__ __forceinline__ std::uint32_t ofValue(std::uint32_t i) const {
    const std::uint32_t block = block_values == 1 ? i : __umulhi(i, reciprocal);
    const std::uint32_t in_block = i - block * block_values;
    return block * stride + in_block + in_block / kColumnValues;
  }
};

/// A column in registers: magnitudes, and the signs in the low 8 bits.
struct Column {
  std::uint32_t magnitude[kColumnValues];
  std::uint32_t signs = 0;

  /// Reads the first n values; the others are 0.
  template <class T>
  __device__ __forceinline__ void read(const T* values, std::uint32_t n) {
#pragma unroll
    for (unsigned i = 0; i < kColumnValues; ++i) {
      const T value = i < n ? values[i] : T{0};
      magnitude[i] = bits::magnitude(value);
      signs |= (value < 0 ? 1u : 0u) << i;
    }
  }
  template <class T>
  __device__ __forceinline__ void write(T* values) const {
#pragma unroll
    for (unsigned i = 0; i < kColumnValues; ++i) {
      values[i] = applySign<T>(magnitude[i], (signs >> i & 1u) != 0);
    }
  }

  /// Writes the column's byte of every row; rows are row_bytes apart.
  __device__ __forceinline__ void putRows(std::uint32_t rate,
                                          std::uint32_t row_bytes,
                                          std::uint8_t* at) const {
    *at = static_cast<std::uint8_t>(signs);
    for (std::uint32_t p = 0; p < rate; p += 8) {
      BitSquare square = {};
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        square.low |= (magnitude[i] >> p & 0xFFu) << (8 * i);
        square.high |= (magnitude[i + 4] >> p & 0xFFu) << (8 * i);
      }
      square.transpose();
#pragma unroll
      for (unsigned i = 0; i < 8; ++i) {
        if (p + i < rate) {
          at += row_bytes;
          *at = static_cast<std::uint8_t>(square.row(i));
        }
      }
    }
  }

  /// The inverse of putRows.
  __device__ __forceinline__ void getRows(const std::uint8_t* at,
                                          std::uint32_t rate,
                                          std::uint32_t row_bytes) {
    signs = *at;
#pragma unroll
    for (unsigned i = 0; i < kColumnValues; ++i) {
      magnitude[i] = 0;
    }
    for (std::uint32_t p = 0; p < rate; p += 8) {
      BitSquare square = {};
#pragma unroll
      for (unsigned i = 0; i < 8; ++i) {
        if (p + i < rate) {
          at += row_bytes;
          (i < 4 ? square.low : square.high) |= static_cast<std::uint32_t>(*at) << (8 * (i % 4));
        }
      }
      square.transpose();
#pragma unroll
      for (unsigned i = 0; i < kColumnValues; ++i) {
        magnitude[i] |= square.row(i) << p;
      }
    }
  }
};

}  // namespace fz::adaptive_bitpack
