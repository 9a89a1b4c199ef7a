#pragma once

// The encoder: a thread block takes chunk after chunk from a front and writes the stream. Device
// code only.

#include "backends/cuda/byte_marks.cuh"
#include "backends/cuda/group/lines.cuh"
#include "backends/cuda/lookback.cuh"
#include "backends/cuda/turns.cuh"
#include "backends/cuda/unaligned_copy.cuh"
#include "coders/rze/rze_codec.h"
#include "coders/rze/rze_op.h"

namespace fz::rze::device {

/// Whether a front hands out whole chunks in shared memory (bitshuffle_op.cuh).
template <class Front>
inline constexpr bool kHasChunks = requires {
  Front::kHasChunks;
};

using cuda::kAllLanes;
using cuda::kRowBytes;
using cuda::kRowsPerWarp;
using cuda::kWarp;
using cuda::laneId;
using cuda::pieceAt;
using cuda::warpId;

/// A block works on one chunk at a time; a thread has four pieces of 16 bytes of it.
template <std::uint32_t kChunkBytes>
struct EncodeWork {
  static constexpr unsigned kThreads = kChunkBytes / (16 * kRowsPerWarp);
  static constexpr unsigned kBlocksPerSm = 1280 / kThreads;
  static constexpr unsigned kWarps = kThreads / kWarp;
  static constexpr unsigned kRows = kChunkBytes / kRowBytes;
  // Everything kept on every level, a whole last word, and a word that is only read.
  static constexpr unsigned kStoredBytes = (kChunkBytes + kChunkBytes / 8 + kChunkBytes / 64 +
                                            kChunkBytes / 512 + 4 + kTagBytes + 8 + 15) /
                                           16 * 16;

  alignas(16) std::uint32_t stored[2][kStoredBytes / 4];  ///< of this chunk and of the one before
  alignas(16) std::uint16_t bitmap1[kChunkBytes / 16];
  alignas(16) std::uint8_t bitmap2[kChunkBytes / 64];
  std::uint32_t row_sums[kRows];
  std::uint32_t warp_sums[kWarps];
  cuda::ByteSelectors compressing;
  std::uint32_t entry[2];  ///< of the same two chunks
  std::uint32_t index[2];
  std::uint32_t next_index;
  std::uint64_t before;

  __device__ std::uint32_t bitmap1Byte(std::uint32_t i) const {
    return reinterpret_cast<const std::uint8_t*>(bitmap1)[i];
  }
};

template <std::uint32_t kChunkBytes>
__device__ __forceinline__ std::uint32_t chunkCount(std::uint64_t n_bytes) {
  return static_cast<std::uint32_t>(bits::ceilDiv(n_bytes, std::uint64_t{kChunkBytes}));
}

/// Zeros for the bytes of a piece at `at` that lie behind the first n.
__device__ __forceinline__ void clearFrom(uint4& piece, std::uint32_t at, std::uint32_t n) {
  std::uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t left = at + 4 * i < n ? n - at - 4 * i : 0;
    words[i] &= left >= 4 ? 0xFFFFFFFFu : (1u << (8 * left)) - 1u;
  }
  piece = make_uint4(words[0], words[1], words[2], words[3]);
}

/// A thread's share of the chunk, and the kept bytes before each piece.
struct Pieces {
  uint4 bytes[kRowsPerWarp];
  cuda::PieceNumbers marks;
  cuda::PieceNumbers before;
  unsigned rows;  ///< a bit for each row of the warp that is not all zeros
};

/// What a block has in hand.
struct Chunk {
  std::uint32_t index;
  ChunkFormat format;
  ChunkShape shape;
  unsigned side;          ///< which half of what the work has twice
  std::uint32_t* stored;  ///< where its coded form is put together
  cuda::LookBack look_back;
};

/// Bit i says whether byte i of eight differs from the one before.
__device__ __forceinline__ std::uint32_t changes8(uint2 bytes, std::uint32_t byte_before) {
  const std::uint32_t lo = bytes.x ^ (bytes.x << 8 | byte_before);
  return cuda::byteMarks8(lo, bytes.y ^ __funnelshift_l(bytes.x, bytes.y, 8));
}

/// Brings the chunk into registers. Where the front makes chunks in shared memory, `stored` serves
/// for that, and there are barriers.
template <std::uint32_t kChunkBytes, class Front>
__device__ __forceinline__ void readPieces(const Front& front,
                                           std::uint64_t begin,
                                           std::uint32_t n_bytes,
                                           std::uint32_t* stored,
                                           Pieces& pieces) {
  using V = typename Front::Value;
  if constexpr (kHasChunks<Front>) {
    auto* chunk = reinterpret_cast<uint4*>(stored);
    front.template fill<EncodeWork<kChunkBytes>::kThreads>(begin, n_bytes, chunk);
    __syncthreads();
#pragma unroll
    for (unsigned r = 0; r < kRowsPerWarp; ++r) {
      pieces.bytes[r] = chunk[pieceAt(r) / 16];
    }
    if (n_bytes < kChunkBytes) {
#pragma unroll
      for (unsigned r = 0; r < kRowsPerWarp; ++r) {
        clearFrom(pieces.bytes[r], pieceAt(r), n_bytes);
      }
    }
    __syncthreads();
  } else {
    constexpr unsigned kCount = cuda::Vec16<V>::kCount;
    const std::uint64_t n = front.count();
    group::LineWalk<Front> walk(front, (begin + warpId() * kRowsPerWarp * kRowBytes) / sizeof(V));
#pragma unroll
    for (unsigned r = 0; r < kRowsPerWarp; ++r) {
      const std::uint64_t at = (begin + pieceAt(r)) / sizeof(V);
      cuda::Vec16<V> piece;
      static_assert(sizeof(piece.v) == 16 && kCount * sizeof(V) == 16);
      walk.next(at, group::valuesFrom(at, n), piece.v);
      pieces.bytes[r] = piece.raw;
    }
  }
}

/// Makes bitmap 1 and ranks in the rows; rows of zeros, of which whole planes consist, cost little.
/// A barrier must follow.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ void markPieces(EncodeWork<kChunkBytes>& work, Pieces& pieces) {
  pieces.rows = 0;
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const uint4& b = pieces.bytes[r];
    const bool any = __any_sync(kAllLanes, (b.x | b.y | b.z | b.w) != 0);
    pieces.rows |= any ? 1u << r : 0u;
  }
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const std::uint32_t marks =
        (pieces.rows >> r & 1u) != 0 ? cuda::byteMarks16(pieces.bytes[r]) : 0u;
    pieces.marks.set(r, marks);
    work.bitmap1[pieceAt(r) / 16] = static_cast<std::uint16_t>(marks);
  }
  if (pieces.rows != 0) {
    cuda::rankInRows(pieces.marks, pieces.before, work.row_sums);
  } else {
    if (laneId() < kRowsPerWarp) {
      work.row_sums[warpId() * kRowsPerWarp + laneId()] = 0;
    }
    pieces.before = {};
  }
}

/// Clears what a chunk of which n_kept bytes are kept can take, unless it is raw.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ void clearStored(const Chunk& chunk, std::uint32_t n_kept) {
  const std::uint32_t n_most =
      n_kept + chunk.shape.n_bytes[1] + chunk.shape.n_bytes[2] + chunk.shape.n_bytes[3] + 24;
  for (unsigned i = threadIdx.x; i < n_most / 16; i += EncodeWork<kChunkBytes>::kThreads) {
    reinterpret_cast<uint4*>(chunk.stored)[i] = make_uint4(0, 0, 0, 0);
  }
}

/// Warp 0: bitmaps 3 and 4, with which the entry is known and published; then everything of the
/// stored chunk behind K1.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ void packUpperLevels(const Chunk& chunk,
                                                std::uint32_t (&kept)[kMaxLevels],
                                                EncodeWork<kChunkBytes>& work) {
  const ChunkShape& shape = chunk.shape;
  const unsigned lane = laneId();
  uint2 map = make_uint2(0, 0);
  std::uint32_t marks = 0;  // on level 3: byte `lane` of bitmap 3
  std::uint32_t before = 0;
  std::uint32_t bitmap4 = 0;
  if (shape.levels >= 3) {
    if (lane < kChunkBytes / 512) {
      map = reinterpret_cast<const uint2*>(work.bitmap2)[lane];
      marks = changes8(map, lane == 0 ? 0u : work.bitmap2[8 * lane - 1]) &
              cuda::marksBelow<8>(8 * lane, shape.n_bytes[2]);
    }
    const std::uint32_t sum = cuda::warpInclusiveSum<std::uint32_t>(__popc(marks));
    before = sum - __popc(marks);
    kept[2] = __shfl_sync(kAllLanes, sum, kWarp - 1);
  }
  if (shape.levels == 4) {
    const std::uint32_t left = __shfl_up_sync(kAllLanes, marks, 1);
    bitmap4 = __ballot_sync(kAllLanes, lane < shape.n_bytes[3] && marks != (lane == 0 ? 0u : left));
    kept[3] = __popc(bitmap4);
  }
  const std::uint32_t entry = entryOf(chunk.format, shape, kept);
  if (lane == 0) {
    chunk.look_back.publish(chunk.index, entry & ~kRawFlag);
    work.entry[chunk.side] = entry;
  }
  if ((entry & kRawFlag) != 0) {
    return;
  }
  std::uint32_t at = kept[0] + kept[1];
  if (shape.levels >= 3) {
    cuda::putBytes(chunk.stored, at + before,
                   cuda::compress8(work.compressing, map.x, map.y, marks), __popc(marks));
    at += kept[2];
  }
  if (shape.levels == 3 && lane < shape.n_bytes[3]) {
    cuda::putBytes(chunk.stored, at + lane, marks, 1);
  }
  if (shape.levels == 4) {
    cuda::putBytes(chunk.stored, at + __popc(bitmap4 & ((1u << lane) - 1u)), marks,
                   bitmap4 >> lane & 1u);
    cuda::putBytes(chunk.stored, at + kept[3], bitmap4, lane == 0 ? 4 : 0);
  }
  cuda::putBytes(chunk.stored, entry - kTagBytes, shape.n_bytes[0], lane == 0 ? kTagBytes : 0);
}

/// Writes the coded form of a chunk to shared memory and returns its entry, after a barrier. What
/// the chunk takes is published on the way. If it turns out raw, shared memory holds nothing.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ std::uint32_t packChunk(const Chunk& chunk,
                                                   const Pieces& pieces,
                                                   std::uint32_t n_kept,
                                                   EncodeWork<kChunkBytes>& work) {
  const ChunkShape& shape = chunk.shape;
  const unsigned t = threadIdx.x;
  std::uint32_t kept[kMaxLevels] = {n_kept, 0, 0, 0};
  const uint2 map = reinterpret_cast<const uint2*>(work.bitmap1)[t];
  std::uint32_t marks = 0;  // byte t of bitmap 2
  std::uint32_t before = 0;
  if (shape.levels >= 2) {
    marks = changes8(map, t == 0 ? 0u : work.bitmap1Byte(8 * t - 1)) &
            cuda::marksBelow<8>(8 * t, shape.n_bytes[1]);
    work.bitmap2[t] = static_cast<std::uint8_t>(marks);
    before = cuda::blockExclusiveSum<EncodeWork<kChunkBytes>::kThreads, std::uint32_t>(
        __popc(marks), work.warp_sums, &kept[1]);
  } else {
    __syncthreads();  // `stored` has been cleared
  }
  if (warpId() == 0) {
    packUpperLevels(chunk, kept, work);
  }
  if (shape.levels >= 2) {
    cuda::putBytes(chunk.stored, n_kept + before,
                   cuda::compress8(work.compressing, map.x, map.y, marks), __popc(marks));
  }
  if (shape.levels == 2 && t < shape.n_bytes[2]) {
    cuda::putBytes(chunk.stored, n_kept + kept[1] + t, marks, 1);
  }
  if (shape.levels == 1) {
    const std::uint32_t n_map = __popc(cuda::marksBelow<8>(8 * t, shape.n_bytes[1]));
    cuda::putBytes(chunk.stored, n_kept + 8 * t, static_cast<std::uint64_t>(map.y) << 32 | map.x,
                   n_map);
  }
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const std::uint32_t m = pieces.marks[r];
    if ((pieces.rows >> r & 1u) != 0) {
      const uint4 b = pieces.bytes[r];
      const std::uint32_t n_first = __popc(m & 0xFFu);
      cuda::putBytes(chunk.stored, pieces.before[r],
                     cuda::compress8(work.compressing, b.x, b.y, m & 0xFFu), n_first);
      cuda::putBytes(chunk.stored, pieces.before[r] + n_first,
                     cuda::compress8(work.compressing, b.z, b.w, m >> 8), __popc(m >> 8));
    }
  }
  __syncthreads();
  return work.entry[chunk.side];
}

/// Header, padding and size, by one thread that knows where the last chunk ends.
__device__ __forceinline__ void finishStream(const RzeArgs& args,
                                             std::uint64_t n_bytes,
                                             std::uint32_t n_chunks,
                                             std::uint64_t end_of_chunks) {
  const std::uint64_t n_stream = bits::roundUp(end_of_chunks, std::uint64_t{kStreamAlign});
  cuda::publishSize(args.record, 0, n_stream, args.out.capacity_bytes);
  args.record->value[kBytesSlot] = n_bytes;
  if (n_stream > args.out.capacity_bytes) {
    return;
  }
  auto* words = reinterpret_cast<std::uint32_t*>(args.out.data);
  words[0] = static_cast<std::uint32_t>(n_bytes);
  words[1] = n_chunks;
  for (std::uint64_t i = end_of_chunks; i < n_stream; ++i) {
    args.out.data[i] = 0;
  }
}

/// An input without chunks: empty, or refused.
__device__ __forceinline__ void finishWithoutChunks(const RzeArgs& args, std::uint64_t n_bytes) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    cuda::publishSize(args.record, 0, 0, args.out.capacity_bytes);
    args.record->value[kBytesSlot] = 0;
    if (n_bytes != 0) {
      cuda::noteError(args.record, DeviceError::kDoesNotFit, n_bytes);
    }
  }
}

/// Codes a chunk: its stored form and its entry are in shared memory after the next barrier, and
/// its size is published.
template <std::uint32_t kChunkBytes, class Front>
__device__ __forceinline__ void encodeChunk(const Front& front,
                                            const Chunk& chunk,
                                            EncodeWork<kChunkBytes>& work) {
  Pieces pieces;
  readPieces<kChunkBytes>(front, std::uint64_t{chunk.index} * kChunkBytes, chunk.shape.n_bytes[0],
                          chunk.stored, pieces);
  markPieces(work, pieces);
  __syncthreads();
  const std::uint32_t n_kept =
      cuda::addRowsBefore<EncodeWork<kChunkBytes>::kRows>(pieces.before, work.row_sums);
  // What is raw whatever the bitmaps cost, and what is all zeros, needs no bitmaps.
  const std::uint32_t kept[kMaxLevels] = {n_kept, 0, 0, 0};
  std::uint32_t entry = entryOf(chunk.format, chunk.shape, kept);
  if (n_kept == 0 || (entry & kRawFlag) != 0) {
    if (threadIdx.x == 0) {
      chunk.look_back.publish(chunk.index, entry & ~kRawFlag);
      work.entry[chunk.side] = entry;
      chunk.stored[0] = chunk.shape.n_bytes[0];  // the tag of a chunk of zeros
    }
  } else {
    clearStored<kChunkBytes>(chunk, n_kept);
    entry = packChunk(chunk, pieces, n_kept, work);
  }
  if ((entry & kRawFlag) != 0) {
#pragma unroll
    for (unsigned r = 0; r < kRowsPerWarp; ++r) {
      *reinterpret_cast<uint4*>(chunk.stored + pieceAt(r) / 4) = pieces.bytes[r];
    }
  }
}

/// Finds the place of the coded chunk on `side` and copies it there. Has a barrier.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ void writeChunk(const RzeArgs& args,
                                           std::uint64_t n_bytes,
                                           unsigned side,
                                           EncodeWork<kChunkBytes>& work) {
  const std::uint32_t n_chunks = chunkCount<kChunkBytes>(n_bytes);
  const std::uint32_t index = work.index[side];
  const std::uint32_t entry = work.entry[side];
  const std::uint32_t n_stored = entry & ~kRawFlag;
  if (warpId() == 0) {
    const std::uint64_t before = cuda::LookBack{args.states}.prefix(index, n_stored);
    if (laneId() == 0) {
      work.before = before;
    }
  }
  __syncthreads();
  const std::uint64_t at = kHeaderBytes + std::uint64_t{kEntryBytes} * n_chunks + work.before;
  if (at + n_stored <= args.out.capacity_bytes) {
    cuda::copyFromStaging({threadIdx.x, EncodeWork<kChunkBytes>::kThreads}, work.stored[side],
                          n_stored, args.out.data + at);
    if (threadIdx.x == 0) {
      reinterpret_cast<std::uint32_t*>(args.out.data + kHeaderBytes)[index] = entry;
    }
  }
  if (index == n_chunks - 1 && threadIdx.x == 0) {
    finishStream(args, n_bytes, n_chunks, at + n_stored);
  }
}

/// Blocks take chunks in turn, and write each one only after they have coded the next: by then the
/// sizes of the chunks before it are known, and nobody waits for a neighbour that is still busy. A
/// block that has taken a chunk runs, so the chunk's size is published without waiting for others.
template <std::uint32_t kChunkBytes, class Front>
__device__ __forceinline__ void encodeChunks(const RzeArgs& args, const Front& front) {
  __shared__ EncodeWork<kChunkBytes> work;
  if (!group::isNeeded(front)) {
    return;
  }
  const std::uint64_t n_bytes = front.count() * sizeof(typename Front::Value);
  if (n_bytes == 0 || n_bytes > kMaxInputBytes) {
    finishWithoutChunks(args, n_bytes);
    return;
  }
  const std::uint32_t n_chunks = chunkCount<kChunkBytes>(n_bytes);
  const cuda::Turns turns{args.states + args.n_chunks};
  if (threadIdx.x == 0) {
    work.next_index = turns.take();
  }
  work.compressing.setCompressing();
  bool has_last = false;
  for (unsigned side = 0;; side ^= 1u) {
    __syncthreads();
    const std::uint32_t index = work.next_index;
    std::uint32_t next = 0;
    if (index < n_chunks) {
      if (threadIdx.x == 0) {
        next = turns.take();
        work.index[side] = index;
      }
      const std::uint64_t begin = std::uint64_t{index} * kChunkBytes;
      const std::uint64_t n_left = n_bytes - begin;
      const auto n_here = static_cast<std::uint32_t>(n_left < kChunkBytes ? n_left : kChunkBytes);
      const Chunk chunk{index, {kChunkBytes, args.levels}, shapeOf(n_here, args.levels),
                        side,  work.stored[side],          {args.states}};
      encodeChunk(front, chunk, work);
    }
    if (has_last) {
      writeChunk(args, n_bytes, side ^ 1u, work);
    }
    if (index >= n_chunks) {
      return;
    }
    has_last = true;
    if (threadIdx.x == 0) {
      work.next_index = next;
    }
  }
}

}  // namespace fz::rze::device
