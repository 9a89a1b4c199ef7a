#pragma once

// From the planes of its blocks to a lane's values. Device code only; must compile with NVRTC.

#include "backends/cuda/bit_transpose.cuh"
#include "coders/adaptive_bitpack/cuda/op/blocks.cuh"

namespace fz::adaptive_bitpack {

/// The word at any byte of staged memory; reads the word behind it too.
__device__ __forceinline__ std::uint32_t wordAt(const std::uint32_t* staged, std::uint32_t byte) {
  return __funnelshift_r(staged[byte / 4], staged[byte / 4 + 1], 8 * (byte & 3u));
}

/// Signs and planes of the thread's group; `begin` is the byte where the block's signs begin. Rows
/// at the rate and behind it become 0.
template <unsigned kPlanes, unsigned kGroups>
__device__ __forceinline__ std::uint32_t readRows(const std::uint32_t* staged,
                                                  std::uint32_t begin,
                                                  std::uint32_t rate,
                                                  Lanes<kGroups> lanes,
                                                  std::uint32_t (&row)[kGroupValues]) {
  if constexpr (kGroups == 1) {  // the rows are one run of words: read each word once
    const std::uint32_t* words = staged + begin / 4;
    const std::uint32_t shift = 8 * (begin & 3u);
    std::uint32_t low = words[1];
    const std::uint32_t signs = __funnelshift_r(words[0], low, shift);
#pragma unroll
    for (unsigned p = 0; p < kPlanes; ++p) {
      row[p] = 0;
      if (p < rate) {
        const std::uint32_t high = words[p + 2];
        row[p] = __funnelshift_r(low, high, shift);
        low = high;
      }
    }
    return signs;
  } else {
#pragma unroll
    for (unsigned p = 0; p < kPlanes; ++p) {
      row[p] = p < rate ? wordAt(staged, begin + 4 * ((1 + p) * lanes.count() + lanes.group())) : 0;
    }
    return wordAt(staged, begin + 4 * lanes.group());
  }
}

/// Applies the signs to a group's magnitudes.
__device__ __forceinline__ void signGroup(const std::uint32_t (&row)[kGroupValues],
                                          std::uint32_t signs,
                                          std::int32_t (&v)[kGroupValues]) {
#pragma unroll
  for (unsigned i = 0; i < kGroupValues; ++i) {
    v[i] = applySign<std::int32_t>(row[i], (signs >> i & 1u) != 0);
  }
}

/// Minus where the sign bits 0 and 16 are set, each half modulo 2^16; minus zero must not carry.
__device__ __forceinline__ std::uint32_t applyHalfSigns(std::uint32_t pair, std::uint32_t signs) {
  const std::uint32_t flipped = pair ^ signs * 0xFFFFu;
  return ((flipped & 0x7FFF7FFFu) + signs) ^ (flipped & 0x80008000u);
}

/// The same for 16-bit values; row i has values i and i + 16.
__device__ __forceinline__ void signGroup(const std::uint32_t (&row)[kGroupValues],
                                          std::uint32_t signs,
                                          std::int16_t (&v)[kGroupValues]) {
#pragma unroll
  for (unsigned i = 0; i < kGroupValues / 2; ++i) {
    const std::uint32_t pair = applyHalfSigns(row[i], signs >> i & 0x00010001u);
    v[i] = static_cast<std::int16_t>(pair);
    v[i + 16] = static_cast<std::int16_t>(pair >> 16);
  }
}

/// Magnitudes of the thread's group, in pairs for 16 bits; returns the signs.
template <class T, bool kOutlier, unsigned kGroups>
__device__ __forceinline__ std::uint32_t readGroup(const std::uint32_t* staged,
                                                   std::uint32_t block_begin,
                                                   BlockForm form,
                                                   Lanes<kGroups> lanes,
                                                   std::uint32_t (&row)[kGroupValues]) {
  std::uint32_t signs = 0;
  withPlanes<T>(__reduce_max_sync(cuda::kAllLanes, form.rate), [&]<unsigned kPlanes>() {
    signs = readRows<kPlanes>(staged, block_begin + form.outlier_bytes, form.rate, lanes, row);
    if constexpr (sizeof(T) == 4) {
      cuda::fromPlanes<kPlanes>(row);
    } else {
      cuda::planesToPairs<kPlanes>(row);
    }
  });
  if (kOutlier && form.outlier_bytes != 0 && lanes.group() == 0) {
    const std::uint32_t first =
        wordAt(staged, block_begin) & (~0u >> (32 - 8 * form.outlier_bytes));
    row[0] = sizeof(T) == 4 ? first : (row[0] & 0xFFFF0000u) | first;
  }
  return form.rate == 0 && form.outlier_bytes == 0 ? 0u : signs;
}

}  // namespace fz::adaptive_bitpack
