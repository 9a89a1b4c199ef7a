#pragma once

// One tile with outlier lists: its codes, and for the gathering that follows, which values have
// none. Device code only.

#include <cstdint>

#include "quantizers/quantizer/quantizer_tile.cuh"

namespace fz::quantizer::device {

/// Bits of a tile's values in index order, kWords words.
template <class T>
struct TileMask {
  using Shape = TileShape<T, kVecs>;
  static constexpr unsigned kWords = Shape::kValues / 32;
  static constexpr unsigned kLanesPerWord = 32 / Shape::kCount;

  /// A full warp; bit j * kCount + e of `refused` belongs to value e of the lane's piece j.
  static __device__ __forceinline__ void store(std::uint32_t* words, unsigned refused) {
    constexpr unsigned kPieceBits = (1u << Shape::kCount) - 1u;
    const unsigned in_word = cuda::laneId() % kLanesPerWord;
#pragma unroll
    for (unsigned j = 0; j < kVecs; ++j) {
      unsigned word = (refused >> (j * Shape::kCount) & kPieceBits) << (in_word * Shape::kCount);
#pragma unroll
      for (unsigned step = 1; step < kLanesPerWord; step *= 2) {
        word |= __shfl_xor_sync(cuda::kAllLanes, word, step);
      }
      if (in_word == 0) {
        words[(j * cuda::kWarp + cuda::laneId()) / kLanesPerWord] = word;
      }
    }
  }
};

/// The work of one warp: its tile.
template <class T, class C, class Coder>
__device__ __forceinline__ void encodeListsTile(const EncodeJob& job, const Coder& coder) {
  using Shape = TileShape<T, kVecs>;
  const std::uint64_t n = valuesOf<T>(job);
  const std::uint64_t tile = firstTile();
  const std::uint64_t begin = tile * Shape::kValues;
  if (begin >= n) {
    return;
  }
  const std::uint64_t n_left = n - begin;
  Vec16<T> x[kVecs];
  loadTile<T, kVecs>(reinterpret_cast<const T*>(job.input.data) + begin, n_left, x);
  CodeVec<C, Shape::kCount> codes[kVecs];
  unsigned refused = 0;
#pragma unroll
  for (unsigned j = 0; j < kVecs; ++j) {
    refused |= coder.encode(x[j].v, codes[j].v) << (j * Shape::kCount);
  }
  storeTile<T, kVecs>(reinterpret_cast<C*>(job.codes.data) + begin, n_left, codes);

  refused &= presentValues<T, kVecs>(n_left);
  unsigned n_refused = 0;
  if (__any_sync(cuda::kAllLanes, refused != 0)) {
    n_refused = __reduce_add_sync(cuda::kAllLanes, static_cast<unsigned>(__popc(refused)));
    TileMask<T>::store(job.tile_masks + tile * TileMask<T>::kWords, refused);
  }
  if (cuda::laneId() == 0) {
    job.tile_counts[tile] = static_cast<std::uint16_t>(n_refused);
  }
}

}  // namespace fz::quantizer::device
