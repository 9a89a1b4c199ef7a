#pragma once

// The coded form of a chunk, put together in shared memory. Device code only.

#include "backends/cuda/lookback.cuh"
#include "coders/rze/codec.h"
#include "coders/rze/cuda/op/rows.cuh"

namespace fz::rze::device {

/// A block works on one chunk at a time; a thread has four pieces of 16 bytes of it.
template <std::uint32_t kChunkBytes>
struct EncodeWork {
  static constexpr unsigned kThreads = kChunkBytes / (16 * kRowsPerWarp);
  static constexpr unsigned kBlocksPerSm = 1280 / kThreads;
  static constexpr unsigned kWarps = kThreads / kWarp;
  // Everything kept on every level, a whole last word, and a word that is only read.
  static constexpr unsigned kStoredBytes = (kChunkBytes + kChunkBytes / 8 + kChunkBytes / 64 +
                                            kChunkBytes / 512 + 4 + kTagBytes + 8 + 15) /
                                           16 * 16;

  alignas(16) std::uint32_t stored[2][kStoredBytes / 4];  ///< of this chunk and of the one before
  alignas(16) std::uint16_t bitmap1[kChunkBytes / 16];
  alignas(16) std::uint8_t bitmap2[kChunkBytes / 64];
  std::uint32_t row_sums[Rows<kChunkBytes>::kRows];
  std::uint32_t warp_sums[kWarps];
  std::uint32_t spare[cuda::ByteString::kSpareWords];
  cuda::ByteSelectors compressing;
  std::uint32_t entry[2];  ///< of the same two chunks
  std::uint32_t index[2];
  std::uint32_t next_index;
  std::uint64_t before;

  __device__ std::uint32_t bitmap1Byte(std::uint32_t i) const {
    return reinterpret_cast<const std::uint8_t*>(bitmap1)[i];
  }
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

/// A thread's share of the chunk.
struct Pieces : PieceMarks {
  uint4 bytes[kRowsPerWarp];
};

/// Bit i says whether byte i of eight differs from the one before.
__device__ __forceinline__ std::uint32_t changes8(uint2 bytes, std::uint32_t byte_before) {
  const std::uint32_t lo = bytes.x ^ (bytes.x << 8 | byte_before);
  return cuda::byteMarks8(lo, bytes.y ^ __funnelshift_l(bytes.x, bytes.y, 8));
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
    work.bitmap1[Rows<kChunkBytes>::pieceAt(r) / 16] = static_cast<std::uint16_t>(marks);
  }
  rankInRows<kChunkBytes>(pieces, work.row_sums);
}

/// Clears what a chunk of which n_kept bytes are kept can take, unless it is raw.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ void clearStored(const Chunk& chunk, std::uint32_t n_kept) {
  const std::uint32_t n_most =
      n_kept + chunk.shape.n_bytes[1] + chunk.shape.n_bytes[2] + chunk.shape.n_bytes[3] + 24;
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < n_most / 16; i += EncodeWork<kChunkBytes>::kThreads) {
    reinterpret_cast<uint4*>(chunk.stored)[i] = make_uint4(0, 0, 0, 0);
  }
}

/// One warp: bitmaps 3 and 4, with which the entry is known and published; then everything of the
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
      marks = changes8(map, lane == 0 ? 0u : work.bitmap2[8 * lane - 1]);
      if (shape.n_bytes[2] < kChunkBytes / 64) {
        marks &= cuda::marksBelow<8>(8 * lane, shape.n_bytes[2]);
      }
    }
    const std::uint32_t sum = inclusiveSum(__popc(marks));
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
  const cuda::ByteString stored(chunk.stored, work.spare);
  std::uint32_t at = kept[0] + kept[1];
  if (shape.levels >= 3) {
    stored.put(at + before, cuda::compress8(work.compressing, map.x, map.y, marks), marks != 0);
    at += kept[2];
  }
  if (shape.levels == 3) {
    stored.put(at + lane, make_uint2(marks, 0), lane < shape.n_bytes[3]);
  }
  if (shape.levels == 4) {
    stored.put(at + __popc(bitmap4 & ((1u << lane) - 1u)), make_uint2(marks, 0),
               (bitmap4 >> lane & 1u) != 0);
  }
  // Bitmap 4 and the tag stand side by side.
  const std::uint32_t tag = shape.n_bytes[0];
  const uint2 last = shape.levels == 4 ? make_uint2(bitmap4, tag) : make_uint2(tag, 0);
  stored.put(entry - kTagBytes - (shape.levels == 4 ? 4 : 0), last, lane == 0);
}

/// Writes the coded form of a chunk to shared memory and returns its entry, after a barrier. What
/// the chunk takes is published on the way. If it turns out raw, shared memory holds nothing. The
/// warps do `meanwhile()` before the barrier.
template <std::uint32_t kChunkBytes, class Meanwhile>
__device__ __forceinline__ std::uint32_t packChunk(const Chunk& chunk,
                                                   const Pieces& pieces,
                                                   std::uint32_t n_kept,
                                                   EncodeWork<kChunkBytes>& work,
                                                   const Meanwhile& meanwhile) {
  const ChunkShape& shape = chunk.shape;
  const unsigned t = threadIdx.x;
  std::uint32_t kept[kMaxLevels] = {n_kept, 0, 0, 0};
  const uint2 map = reinterpret_cast<const uint2*>(work.bitmap1)[t];
  std::uint32_t marks = 0;  // byte t of bitmap 2
  std::uint32_t before = 0;
  bool has_changes = false;  // in the warp
  if (shape.levels >= 2) {
    const std::uint32_t byte_before = t == 0 ? 0u : work.bitmap1Byte(8 * t - 1);
    std::uint32_t sum = 0;
    has_changes = __any_sync(kAllLanes, (map.x | map.y | byte_before) != 0);
    if (has_changes) {
      marks = changes8(map, byte_before);
      if (shape.n_bytes[1] < kChunkBytes / 8) {
        marks &= cuda::marksBelow<8>(8 * t, shape.n_bytes[1]);
      }
      sum = inclusiveSum(__popc(marks));
      before = sum - __popc(marks);
    }
    work.bitmap2[t] = static_cast<std::uint8_t>(marks);
    if (laneId() == kWarp - 1) {
      work.warp_sums[warpId()] = sum;
    }
  }
  __syncthreads();  // also: `stored` has been cleared
  if (shape.levels >= 2) {
    constexpr unsigned kWarps = EncodeWork<kChunkBytes>::kWarps;
    const std::uint32_t of_warp = laneId() < kWarps ? work.warp_sums[laneId()] : 0u;
    kept[1] = sumBefore(of_warp, kWarp);
    before += sumBefore(of_warp, warpId());
  }
  if (Rows<kChunkBytes>::does(0, chunk.index)) {
    packUpperLevels(chunk, kept, work);
  }
  meanwhile();
  const cuda::ByteString stored(chunk.stored, work.spare);
  if (has_changes) {
    stored.put(n_kept + before, cuda::compress8(work.compressing, map.x, map.y, marks), marks != 0);
  }
  if (shape.levels == 2) {
    stored.put(n_kept + kept[1] + t, make_uint2(marks, 0), t < shape.n_bytes[2]);
  }
  if (shape.levels == 1) {  // zeros behind the last one
    stored.put(n_kept + 8 * t, map, 8 * t < shape.n_bytes[1]);
  }
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const std::uint32_t m = pieces.marks[r];
    if ((pieces.rows >> r & 1u) != 0) {
      const uint4 b = pieces.bytes[r];
      stored.put(pieces.before[r], cuda::compress8(work.compressing, b.x, b.y, m),
                 (m & 0xFFu) != 0);
      stored.put(pieces.before[r] + __popc(m & 0xFFu),
                 cuda::compress8(work.compressing, b.z, b.w, m >> 8), m >> 8 != 0);
    }
  }
  __syncthreads();
  return work.entry[chunk.side];
}

}  // namespace fz::rze::device
