#pragma once

// From a stored chunk to the marks of its bytes. Device code only.

#include "backends/cuda/unaligned_copy.cuh"
#include "coders/rze/codec.h"
#include "coders/rze/cuda/op/rows.cuh"

namespace fz::rze::device {

constexpr std::uint32_t kBad = 0xFFFFFFFFu;  // instead of a position in a stored chunk

/// What every block finds out about the stream.
struct Stream {
  std::uint64_t n_bytes;  ///< of the decoded data
  std::uint64_t n_stream;
  std::uint32_t n_chunks;

  /// Of the decoded chunk, the last of which may be short.
  template <std::uint32_t kChunkBytes>
  __device__ __forceinline__ std::uint32_t bytesOf(std::uint32_t chunk) const {
    const std::uint64_t n_left = n_bytes - std::uint64_t{chunk} * kChunkBytes;
    return static_cast<std::uint32_t>(n_left < kChunkBytes ? n_left : kChunkBytes);
  }
};

/// A block works on one chunk; a thread makes four pieces of 16 bytes of it.
template <std::uint32_t kChunkBytes>
struct DecodeWork {
  static constexpr unsigned kThreads = kChunkBytes / (16 * kRowsPerWarp);
  static constexpr unsigned kBlocksPerSm = 2048 / kThreads;
  static constexpr unsigned kWarps = kThreads / kWarp;
  static constexpr unsigned kMaxBytes =
      kChunkBytes + kChunkBytes / 8 + kChunkBytes / 64 + kChunkBytes / 512 + 4 + kTagBytes;
  // A piece is made of five words, of which a last one may need none.
  static constexpr unsigned kStoredBytes = cuda::stagingBytes(kMaxBytes) + 16;
  static constexpr unsigned kWordsBefore = 4;  // that may be read, but do not count

  alignas(16) std::uint32_t words[kWordsBefore + kStoredBytes / 4];
  alignas(16) std::uint16_t bitmap1[kChunkBytes / 16];
  alignas(16) std::uint8_t bitmap2[kChunkBytes / 64];
  std::uint32_t row_sums[Rows<kChunkBytes>::kRows];
  std::uint32_t warp_sums[kWarps];
  cuda::ByteSelectors expanding;
  cuda::ByteSelectors repeating;
  std::uint32_t at;
  bool is_open;
  std::uint32_t entry;
  Stream stream;
  std::uint64_t before;
  std::uint64_t
      parts_before[kWarps];  ///< sums of the chunks before, where they have not been placed

  __device__ __forceinline__ std::uint32_t* stored() { return words + kWordsBefore; }
};

/// A stored chunk in shared memory.
struct StoredChunk {
  const std::uint32_t* words;
  std::uint32_t skew;  ///< bytes before it
  std::uint32_t n_bytes;

  __device__ __forceinline__ std::uint32_t byte(std::uint32_t at) const {
    return reinterpret_cast<const std::uint8_t*>(words)[skew + at];
  }
};

/// Eight bytes of a bitmap: a set mark takes the next of the kept bytes, which begin at `kept`; a
/// clear one repeats the last. `rank` marks are set before; n_wanted bytes exist, zeros are behind.
__device__ __forceinline__ uint2 repeat8(const cuda::ByteSelectors& repeating,
                                         const StoredChunk& chunk,
                                         std::uint32_t kept,
                                         std::uint32_t marks,
                                         std::uint32_t rank,
                                         std::uint32_t n_wanted) {
  // A string of nine bytes, the first of which is the last one before.
  const std::uint32_t at = DecodeWork<kMaxChunkBytes>::kWordsBefore * 4 + chunk.skew + kept + rank;
  const std::uint32_t* words =
      chunk.words + (at - 1) / 4 - DecodeWork<kMaxChunkBytes>::kWordsBefore;
  const std::uint32_t shift = 8 * (at - 1);
  std::uint32_t s0 = __funnelshift_r(words[0], words[1], shift);
  const std::uint32_t s1 = __funnelshift_r(words[1], words[2], shift);
  const std::uint32_t s2 = __funnelshift_r(words[2], 0u, shift);
  s0 = rank == 0 ? s0 & ~0xFFu : s0;
  const std::uint32_t first = repeating.of(marks);
  const std::uint32_t n_bits = first >> 16;
  uint2 out =
      make_uint2(cuda::pickBytes(s0, s1, first),
                 cuda::pickBytes(__funnelshift_rc(s0, s1, n_bits), __funnelshift_rc(s1, s2, n_bits),
                                 repeating.of(marks >> 4)));
  if (n_wanted < 8) {
    const std::uint64_t mask = (std::uint64_t{1} << (8 * n_wanted)) - 1;
    out.x &= static_cast<std::uint32_t>(mask);
    out.y &= static_cast<std::uint32_t>(mask >> 32);
  }
  return out;
}

/// Bytes of a bitmap that exist among the eight from 8 i on.
template <std::uint32_t kMax>
__device__ __forceinline__ std::uint32_t wanted8(unsigned i, std::uint32_t n) {
  if (n == kMax) {
    return 8;
  }
  return __popc(cuda::marksBelow<8>(8 * i, n));
}

/// One warp, three levels or more: makes bitmap 2. Returns where K2 begins, or kBad.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ std::uint32_t unpackUpperLevels(const ChunkShape& shape,
                                                           const StoredChunk& stored,
                                                           std::uint32_t at,
                                                           DecodeWork<kChunkBytes>& work) {
  const unsigned lane = laneId();
  std::uint32_t marks = 0;  // byte `lane` of bitmap 3
  if (shape.levels == 4) {
    std::uint32_t bitmap4 = 0;
    for (unsigned i = 0; i < 4; ++i) {
      bitmap4 |= stored.byte(at + i) << (8 * i);
    }
    const std::uint32_t n_marked = shape.n_bytes[3];
    const std::uint32_t n_kept = __popc(bitmap4);
    if ((n_marked < 32 && bitmap4 >> n_marked != 0) || n_kept > at) {
      return kBad;
    }
    at -= n_kept;
    const std::uint32_t rank = __popc(bitmap4 & (0xFFFFFFFFu >> (31 - lane)));
    marks = lane < n_marked && rank != 0 ? stored.byte(at + rank - 1) : 0u;
  } else {
    marks = lane < shape.n_bytes[3] ? stored.byte(at + lane) : 0u;
  }
  const std::uint32_t n_wanted = wanted8<kChunkBytes / 64>(lane, shape.n_bytes[2]);
  const std::uint32_t sum = inclusiveSum(__popc(marks));
  const std::uint32_t n_kept = __shfl_sync(kAllLanes, sum, kWarp - 1);
  if (__any_sync(kAllLanes, marks >> n_wanted != 0) || n_kept > at) {
    return kBad;
  }
  at -= n_kept;
  if (lane < kChunkBytes / 512) {
    reinterpret_cast<uint2*>(work.bitmap2)[lane] =
        repeat8(work.repeating, stored, at, marks, sum - __popc(marks), n_wanted);
  }
  return at;
}

/// From bitmap 2 to bitmap 1, the whole block. Returns where K1 begins, or kBad; bitmap 1 is there
/// after a barrier.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ std::uint32_t unpackSecondLevel(const ChunkShape& shape,
                                                           const StoredChunk& stored,
                                                           std::uint32_t at,
                                                           DecodeWork<kChunkBytes>& work) {
  const unsigned t = threadIdx.x;
  const std::uint32_t marks = shape.levels > 2       ? work.bitmap2[t]
                              : t < shape.n_bytes[2] ? stored.byte(at + t)
                                                     : 0u;
  const std::uint32_t n_wanted = wanted8<kChunkBytes / 8>(t, shape.n_bytes[1]);
  std::uint32_t rank = inclusiveSum(__popc(marks));
  if (laneId() == kWarp - 1) {
    work.warp_sums[warpId()] = rank;
  }
  rank -= __popc(marks);
  const bool bad = __syncthreads_or(marks >> n_wanted != 0) != 0;
  const std::uint32_t of_warp =
      laneId() < DecodeWork<kChunkBytes>::kWarps ? work.warp_sums[laneId()] : 0u;
  const std::uint32_t n_kept = sumBefore(of_warp, kWarp);
  rank += sumBefore(of_warp, warpId());
  if (bad || n_kept > at) {
    return kBad;
  }
  at -= n_kept;
  reinterpret_cast<uint2*>(work.bitmap1)[t] =
      repeat8(work.repeating, stored, at, marks, rank, n_wanted);
  return at;
}

/// The marks of all pieces of a stored chunk that is neither raw nor all zeros, and where the kept
/// bytes of each begin. False, in the whole block, when it is not such a chunk.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ bool unpackBitmaps(const ChunkShape& shape,
                                              const StoredChunk& stored,
                                              std::uint32_t chunk,
                                              DecodeWork<kChunkBytes>& work,
                                              PieceMarks& pieces) {
  using Shape = Rows<kChunkBytes>;
  std::uint32_t at = stored.n_bytes - kTagBytes - lastBitmapBytes(shape);
  if (shape.levels >= 3) {
    if (Shape::does(0, chunk)) {
      const std::uint32_t below = unpackUpperLevels(shape, stored, at, work);
      if (laneId() == 0) {
        work.at = below;
      }
    }
    __syncthreads();
    at = work.at;
    if (at == kBad) {
      return false;
    }
  }
  if (shape.levels >= 2) {
    at = unpackSecondLevel(shape, stored, at, work);
    if (at == kBad) {
      return false;
    }
    __syncthreads();
  }
  bool bad = false;
  pieces.rows = 0;
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const std::uint32_t i = Shape::pieceAt(r) / 8;
    std::uint32_t marks;
    if (shape.levels >= 2) {
      marks = work.bitmap1[i / 2];
    } else {
      const std::uint32_t low = i < shape.n_bytes[1] ? stored.byte(at + i) : 0u;
      const std::uint32_t high = i + 1 < shape.n_bytes[1] ? stored.byte(at + i + 1) : 0u;
      marks = low | high << 8;
    }
    if (shape.n_bytes[0] < kChunkBytes) {
      bad |= (marks & ~cuda::marksBelow<16>(Shape::pieceAt(r), shape.n_bytes[0])) != 0;
    }
    pieces.marks.set(r, marks);
    pieces.rows |= __any_sync(kAllLanes, marks != 0) ? 1u << r : 0u;
  }
  rankInRows<kChunkBytes>(pieces, work.row_sums);
  if (shape.n_bytes[0] < kChunkBytes) {
    bad = __syncthreads_or(bad) != 0;
  } else {
    __syncthreads();
  }
  const std::uint32_t n_kept = addRowsBefore<kChunkBytes>(pieces, work.row_sums);
  return !bad && n_kept == at;
}

}  // namespace fz::rze::device
