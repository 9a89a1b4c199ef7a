#pragma once

// A chunk as rows of 512 bytes, of which a warp has four: what encoder and decoder share. Device
// code only.

#include "backends/cuda/byte_marks.cuh"

namespace fz::rze::device {

/// Whether a front hands out whole chunks in shared memory (Bitshuffle).
template <class Front>
inline constexpr bool kHasChunks = requires {
  Front::kHasChunks;
};

using cuda::kAllLanes;
using cuda::kRowBytes;
using cuda::kRowsPerWarp;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

/// The warps take rows in turn: behind a Bitshuffle only the last rows have any bytes to keep, and
/// then every warp has its share of them.
template <std::uint32_t kChunkBytes>
struct Rows {
  static constexpr unsigned kRows = kChunkBytes / kRowBytes;
  static constexpr unsigned kWarps = kRows / kRowsPerWarp;
  static_assert(kRows <= kWarp);

  static __device__ __forceinline__ unsigned row(unsigned r) { return r * kWarps + warpId(); }
  /// Byte of the chunk where this thread's piece of 16 begins, in the warp's row r.
  static __device__ __forceinline__ std::uint32_t pieceAt(unsigned r) {
    return row(r) * kRowBytes + 16 * laneId();
  }
  /// Whether this warp does a task, one of four, that one warp does for all: another one from chunk
  /// to chunk, since a multiprocessor issues the instructions of warp w of every block from the
  /// same quarter.
  static __device__ __forceinline__ bool does(unsigned task, std::uint32_t chunk) {
    return warpId() == (chunk + task * kWarps / 4) % kWarps;
  }
};

/// Inclusive sum over the lanes. The shuffle itself tells which lanes have a lower one.
__device__ __forceinline__ std::uint32_t inclusiveSum(std::uint32_t value) {
#pragma unroll
  for (unsigned step = 1; step < kWarp; step *= 2) {
    asm volatile(
        "{\n\t.reg .u32 other;\n\t.reg .pred has;\n\t"
        "shfl.sync.up.b32 other|has, %0, %1, 0, 0xffffffff;\n\t"
        "@has add.u32 %0, %0, other;\n\t}"
        : "+r"(value)
        : "r"(step));
  }
  return value;
}

/// Sum of the numbers that stand before place `n`; one for each lane.
__device__ __forceinline__ std::uint32_t sumBefore(std::uint32_t value, unsigned n) {
  return __reduce_add_sync(kAllLanes, laneId() < n ? value : 0u);
}

/// A thread's marks of 16 bytes, and the kept bytes before each piece.
struct PieceMarks {
  cuda::PieceNumbers marks;
  cuda::PieceNumbers before;
  unsigned rows;  ///< a bit for each row of the warp that has marks
};

/// First step of ranking the pieces: the marks of the lower lanes in each row, and the rows' sums
/// in shared memory. A barrier must follow.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ void rankInRows(PieceMarks& pieces, std::uint32_t* row_sums) {
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; r += 2) {
    std::uint32_t own = 0;
    std::uint32_t sum = 0;
    if ((pieces.rows >> r & 3u) != 0) {
      own = static_cast<std::uint32_t>(__popc(pieces.marks[r])) |
            static_cast<std::uint32_t>(__popc(pieces.marks[r + 1])) << 16;
      sum = inclusiveSum(own);  // a row sums to 512 at most
    }
    pieces.before.pairs[r / 2] = sum - own;
    if (laneId() == kWarp - 1) {
      row_sums[Rows<kChunkBytes>::row(r)] = sum & 0xFFFFu;
      row_sums[Rows<kChunkBytes>::row(r + 1)] = sum >> 16;
    }
  }
}

/// Second step: adds the sums of the rows before. Returns the sum of the chunk.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ std::uint32_t addRowsBefore(PieceMarks& pieces,
                                                       const std::uint32_t* row_sums) {
  using Shape = Rows<kChunkBytes>;
  const std::uint32_t own =
      Shape::kRows == kWarp || laneId() < Shape::kRows ? row_sums[laneId()] : 0u;
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    pieces.before.pairs[r / 2] += sumBefore(own, Shape::row(r)) << (r % 2 * 16);
  }
  return sumBefore(own, kWarp);
}

}  // namespace fz::rze::device
