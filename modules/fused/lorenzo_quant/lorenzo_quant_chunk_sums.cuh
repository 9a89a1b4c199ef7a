#pragma once

// A chunk of codes as sums along x in shared memory, and what must be known of it to walk down its
// columns. Device code only; must compile with NVRTC.

#include "backends/cuda/group/chunks.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_chunk_op.h"
#include "fused/lorenzo_quant/lorenzo_quant_decode.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_sums.cuh"

namespace fz::lorenzo_quant::device {

/// Values that are stored together.
template <class T>
inline constexpr unsigned kPieceValues = 16 / sizeof(T);

inline constexpr unsigned kPieceCodes = 2 * group::kChunkThreadWords;  ///< that a thread has
inline constexpr unsigned kChunkThreads = kChunkCodes / kPieceCodes;
inline constexpr unsigned kChunkWarps = kChunkThreads / cuda::kWarp;
static_assert(kPieceCodes == 32 && kChunkWarps * cuda::kWarp == kChunkThreads);

/// A block's shared memory beside that of the coder and the columns' sums.
struct ChunkNotes {
  /// A bit for each piece of 32 codes that has range entries, or codes whose sums may not fit 16
  /// bits. One word more than there are is read.
  std::uint32_t special[kChunkWarps + 1];
  std::uint32_t warp_totals[kChunkWarps];
  std::uint32_t marks[kChunkThreads];  ///< of range entries, a bit for each code; if there are any
  /// What the last row of a chunk sums up to in a tile that goes on in the next chunk; from chunk
  /// to chunk in turn. As wide as the sums.
  alignas(8) std::uint64_t carry[2];
};

/// Pieces of 16 bytes are turned in a way that lanes with neighbouring pieces of codes, and lanes
/// in one of them, do not meet in a bank.
struct ChunkSums {
  uint4* pieces;

  static __device__ __forceinline__ unsigned placeOf(unsigned i) { return i ^ (i >> 3 & 0x18u); }

  /// By every thread.
  __device__ __forceinline__ void put(
      const std::uint32_t (&words)[group::kChunkThreadWords]) const {
#pragma unroll
    for (unsigned c = 0; c < kPieceCodes / 8; ++c) {
      pieces[placeOf(threadIdx.x * kPieceCodes + 8 * c) / 8] =
          make_uint4(words[4 * c], words[4 * c + 1], words[4 * c + 2], words[4 * c + 3]);
    }
  }
  __device__ __forceinline__ std::int16_t at(unsigned i) const {
    return reinterpret_cast<const std::int16_t*>(pieces)[placeOf(i)];
  }
  /// Neighbours, in the low halves of words; i is a multiple of their number.
  template <unsigned N>
  __device__ __forceinline__ void fewAt(unsigned i, std::uint32_t (&few)[N]) const {
    static_assert(N == 1 || N == 2 || N == 4);
    const auto* at = reinterpret_cast<const std::uint16_t*>(pieces) + placeOf(i);
    if constexpr (N == 1) {
      few[0] = *at;
    } else if constexpr (N == 2) {
      const auto two = *reinterpret_cast<const std::uint32_t*>(at);
      few[0] = two;
      few[1] = two >> 16;
    } else {
      const uint2 four = *reinterpret_cast<const uint2*>(at);
      few[0] = four.x;
      few[1] = four.x >> 16;
      few[2] = four.y;
      few[3] = four.y >> 16;
    }
  }
};

/// The marks of range entries of the 32 values from index `at` on.
template <class T>
__device__ __forceinline__ std::uint32_t marksFrom(const DecodeRun& run,
                                                   const Layout& layout,
                                                   std::uint32_t at) {
  if (at >= layout.n_values) {
    return 0;
  }
  const auto nx = static_cast<std::uint32_t>(layout.grid.nx);
  const std::uint64_t row_words = layout.row_segments * kLaneValues<T>;
  const std::uint32_t row = at / nx;
  const std::uint32_t x = at - row * nx;
  const std::uint32_t* words = run.marks + row * row_words;
  const std::uint32_t second = x / 32 + 1 < row_words ? words[x / 32 + 1] : 0u;
  std::uint32_t marks = __funnelshift_r(words[x / 32], second, x % 32);
  const std::uint32_t n_left = nx - x;  // rows have more than 32 values
  if (n_left < 32 && at + n_left < layout.n_values) {
    marks |= words[row_words] << n_left;
  }
  return marks;
}

/// Turns the codes of a chunk into sums in shared memory, by the whole block: sums that begin anew
/// with every tile where rows are whole tiles, else ones that go on through the chunk. Returns
/// whether there are special pieces. Ends with a barrier.
template <unsigned kEdge>
__device__ __forceinline__ bool sumChunk(bool zigzag,
                                         bool has_whole_tiles,
                                         std::uint32_t marks,
                                         std::uint32_t (&words)[group::kChunkThreadWords],
                                         const ChunkSums& sums,
                                         ChunkNotes& notes) {
  const bool is_special = marks != 0 || !codesFit<kEdge>(zigzag, words);
  notes.marks[threadIdx.x] = marks;
  const std::uint32_t special = __ballot_sync(cuda::kAllLanes, is_special);
  if (cuda::laneId() == 0) {
    notes.special[cuda::warpId()] = special;
  }
  if (kEdge == 8 || has_whole_tiles) {
    sumRun<kEdge>(zigzag, words);
  } else {
    std::uint32_t own = 0;  // only the low half counts
#pragma unroll
    for (std::uint32_t& word : words) {
      word = zigzag ? numbersOf<true>(word) : word;
      own += word + (word >> 16);
    }
    const std::uint32_t through = sumOfLanes<cuda::kWarp>(own);
    if (cuda::laneId() == cuda::kWarp - 1) {
      notes.warp_totals[cuda::warpId()] = through;
    }
    __syncthreads();
    std::uint32_t before = through - own;
#pragma unroll
    for (unsigned w = 0; w < kChunkWarps; ++w) {
      before += w < cuda::warpId() ? notes.warp_totals[w] : 0u;
    }
    sumCodes<kPieceCodes, false>(before, words);
  }
  sums.put(words);
  return __syncthreads_or(is_special) != 0;
}

}  // namespace fz::lorenzo_quant::device
