#pragma once

// The encoder: a thread block takes chunk after chunk from a front and writes the stream. Device
// code only.

#include "backends/cuda/group/lines.cuh"
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/tile_ticket.cuh"
#include "backends/cuda/unaligned_copy.cuh"
#include "coders/rze/cuda/kernels.h"
#include "coders/rze/cuda/op/encode_chunks.cuh"

namespace fz::rze::device {

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

/// Brings the chunk into registers. Where the front makes chunks in shared memory, `stored` serves
/// for that, and there are barriers.
template <std::uint32_t kChunkBytes, class Front>
__device__ __forceinline__ void readPieces(const Front& front,
                                           std::uint64_t begin,
                                           std::uint32_t n_bytes,
                                           std::uint32_t* stored,
                                           Pieces& pieces) {
  using V = typename Front::Value;
  using Shape = Rows<kChunkBytes>;
  if constexpr (kHasChunks<Front>) {
    auto* chunk = reinterpret_cast<uint4*>(stored);
    front.template fill<EncodeWork<kChunkBytes>::kThreads>(begin, n_bytes, chunk);
    __syncthreads();
#pragma unroll
    for (unsigned r = 0; r < kRowsPerWarp; ++r) {
      pieces.bytes[r] = chunk[Shape::pieceAt(r) / 16];
    }
    if (n_bytes < kChunkBytes) {
#pragma unroll
      for (unsigned r = 0; r < kRowsPerWarp; ++r) {
        clearFrom(pieces.bytes[r], Shape::pieceAt(r), n_bytes);
      }
    }
    __syncthreads();
  } else {
    constexpr unsigned kCount = cuda::Vec16<V>::kCount;
    const std::uint64_t n = front.count();
#pragma unroll
    for (unsigned r = 0; r < kRowsPerWarp; ++r) {
      group::LineWalk<Front> walk(front, (begin + Shape::row(r) * kRowBytes) / sizeof(V));
      const std::uint64_t at = (begin + Shape::pieceAt(r)) / sizeof(V);
      cuda::Vec16<V> piece;
      static_assert(sizeof(piece.v) == 16 && kCount * sizeof(V) == 16);
      walk.next(at, group::valuesFrom(at, n), piece.v);
      pieces.bytes[r] = piece.raw;
    }
  }
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
      cuda::recordError(args.record, DeviceError::kDoesNotFit, n_bytes);
    }
  }
}

/// Codes a chunk: its entry is in shared memory after the barrier at the end, its stored form after
/// the next one, and its size is published. The warps do `meanwhile()` before the barrier.
template <std::uint32_t kChunkBytes, class Meanwhile>
__device__ __forceinline__ void encodePieces(const Chunk& chunk,
                                             Pieces& pieces,
                                             EncodeWork<kChunkBytes>& work,
                                             const Meanwhile& meanwhile) {
  markPieces(work, pieces);
  __syncthreads();
  const std::uint32_t n_kept = addRowsBefore<kChunkBytes>(pieces, work.row_sums);
  // What is raw whatever the bitmaps cost, and what is all zeros, needs no bitmaps.
  const std::uint32_t kept[kMaxLevels] = {n_kept, 0, 0, 0};
  std::uint32_t entry = entryOf(chunk.format, chunk.shape, kept);
  if (n_kept == 0 || (entry & kRawFlag) != 0) {
    if (threadIdx.x == 0) {
      chunk.look_back.publish(chunk.index, entry & ~kRawFlag);
      work.entry[chunk.side] = entry;
      chunk.stored[0] = chunk.shape.n_bytes[0];  // the tag of a chunk of zeros
    }
    meanwhile();
    __syncthreads();
  } else {
    clearStored<kChunkBytes>(chunk, n_kept);
    entry = packChunk(chunk, pieces, n_kept, work, meanwhile);
  }
  if ((entry & kRawFlag) != 0) {
#pragma unroll
    for (unsigned r = 0; r < kRowsPerWarp; ++r) {
      *reinterpret_cast<uint4*>(chunk.stored + Rows<kChunkBytes>::pieceAt(r) / 4) = pieces.bytes[r];
    }
  }
}

/// A warp: the place of the coded chunk on `side`.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ std::uint64_t findPlace(const RzeArgs& args,
                                                   unsigned side,
                                                   const EncodeWork<kChunkBytes>& work) {
  return cuda::LookBack{args.states}.prefix(work.index[side], work.entry[side] & ~kRawFlag);
}

/// Copies the coded chunk on `side` to its place.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ void writeChunk(const RzeArgs& args,
                                           std::uint64_t n_bytes,
                                           unsigned side,
                                           const EncodeWork<kChunkBytes>& work) {
  const std::uint32_t n_chunks = chunkCount<kChunkBytes>(n_bytes);
  const std::uint32_t index = work.index[side];
  const std::uint32_t entry = work.entry[side];
  const std::uint32_t n_stored = entry & ~kRawFlag;
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
  const cuda::TileTicket tickets{args.states + args.n_chunks};
  if (threadIdx.x == 0) {
    work.next_index = tickets.take();
  }
  work.compressing.setCompressing();
  __syncthreads();
  std::uint32_t index = work.next_index;
  for (std::uint32_t n_coded = 0; index < n_chunks; ++n_coded) {
    const unsigned side = n_coded % 2;
    if (threadIdx.x == 0) {
      work.index[side] = index;
    }
    const std::uint64_t begin = std::uint64_t{index} * kChunkBytes;
    const std::uint64_t n_left = n_bytes - begin;
    const auto n_here = static_cast<std::uint32_t>(n_left < kChunkBytes ? n_left : kChunkBytes);
    Pieces pieces;
    readPieces<kChunkBytes>(front, begin, n_here, work.stored[side], pieces);
    const auto look_ahead_and_back = [&] {  // by two warps, which both wait for memory
      if (Rows<kChunkBytes>::does(1, index)) {
        const std::uint32_t next = __shfl_sync(kAllLanes, laneId() == 0 ? tickets.take() : 0u, 0);
        if (laneId() == 0) {
          work.next_index = next;
        }
        constexpr unsigned kValues = kChunkBytes / sizeof(typename Front::Value);
        if ((std::uint64_t{next} + 1) * kChunkBytes <= n_bytes) {
          group::prefetch(front, std::uint64_t{next} * kValues, kValues);
        }
      }
      if (Rows<kChunkBytes>::does(2, index) && n_coded != 0) {
        const std::uint64_t before = findPlace(args, side ^ 1u, work);
        if (laneId() == 0) {
          work.before = before;
        }
      }
    };
    if (n_here == kChunkBytes && args.levels == kMaxLevels) {  // sizes known when compiled
      const Chunk chunk{index, {kChunkBytes, kMaxLevels}, shapeOf(kChunkBytes, kMaxLevels),
                        side,  work.stored[side],         {args.states}};
      encodePieces(chunk, pieces, work, look_ahead_and_back);
    } else {
      const Chunk chunk{index, {kChunkBytes, args.levels}, shapeOf(n_here, args.levels),
                        side,  work.stored[side],          {args.states}};
      encodePieces(chunk, pieces, work, look_ahead_and_back);
    }
    index = work.next_index;
    if (n_coded != 0) {
      writeChunk(args, n_bytes, side ^ 1u, work);
    }
    __syncthreads();
    if (index >= n_chunks) {  // nobody codes while the last one is placed
      if (warpId() == 0) {
        const std::uint64_t before = findPlace(args, side, work);
        if (laneId() == 0) {
          work.before = before;
        }
      }
      __syncthreads();
      writeChunk(args, n_bytes, side, work);
    }
  }
  cuda::clearWhenLast(args.states, args.n_chunks + kCounters, args.states + args.n_chunks + 1);
}

}  // namespace fz::rze::device
