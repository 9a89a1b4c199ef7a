#pragma once

// The decoder: a thread block for each chunk, which it hands to a front. Device code only.

#include "backends/cuda/byte_marks.cuh"
#include "backends/cuda/group/lines.cuh"
#include "backends/cuda/lookback.cuh"
#include "backends/cuda/unaligned_copy.cuh"
#include "coders/rze/rze_codec.h"
#include "coders/rze/rze_encode.cuh"
#include "coders/rze/rze_op.h"

namespace fz::rze::device {

constexpr std::uint64_t kHasPlace = std::uint64_t{1} << 32;  // above the entry
constexpr std::uint32_t kBad = 0xFFFFFFFFu;  // instead of a position in a stored chunk

/// What every block finds out about the stream.
struct Stream {
  std::uint64_t n_bytes;  ///< of the decoded data
  std::uint64_t n_stream;
  std::uint32_t n_chunks;
};

/// A block works on one chunk; a thread makes four pieces of 16 bytes of it.
template <std::uint32_t kChunkBytes>
struct DecodeWork {
  static constexpr unsigned kThreads = kChunkBytes / (16 * kRowsPerWarp);
  static constexpr unsigned kBlocksPerSm = 2048 / kThreads;
  static constexpr unsigned kWarps = kThreads / kWarp;
  static constexpr unsigned kRows = kChunkBytes / kRowBytes;
  static constexpr unsigned kMostBytes =
      kChunkBytes + kChunkBytes / 8 + kChunkBytes / 64 + kChunkBytes / 512 + 4 + kTagBytes;
  // A piece is made of five words, of which a last one may need none.
  static constexpr unsigned kStoredBytes = cuda::stagingBytes(kMostBytes) + 16;

  alignas(16) std::uint32_t stored[kStoredBytes / 4];
  alignas(16) std::uint16_t bitmap1[kChunkBytes / 16];
  alignas(16) std::uint8_t bitmap2[kChunkBytes / 64];
  std::uint32_t row_sums[kRows];
  std::uint32_t warp_sums[kWarps];
  cuda::ByteSelectors expanding;
  std::uint32_t at;
  bool is_open;
  std::uint32_t entry;
  Stream stream;
  std::uint64_t before;
};

/// Marks of a thread's pieces, and where the kept bytes of each begin in the stored chunk.
struct DecodePieces {
  cuda::PieceNumbers marks;
  cuda::PieceNumbers before;
};

/// Eight bytes of a bitmap, of which those in [8 index, n_bytes) are wanted: a set mark takes the
/// next of the kept bytes, a clear one repeats the last. `rank` marks are set before.
__device__ __forceinline__ uint2 repeat8(const std::uint8_t* kept,
                                         std::uint32_t marks,
                                         std::uint32_t rank,
                                         std::uint32_t wanted) {
  std::uint32_t words[2] = {0, 0};
#pragma unroll
  for (unsigned i = 0; i < 8; ++i) {
    rank += marks >> i & 1u;
    if ((wanted >> i & 1u) != 0 && rank != 0) {
      words[i / 4] |= static_cast<std::uint32_t>(kept[rank - 1]) << (8 * (i % 4));
    }
  }
  return make_uint2(words[0], words[1]);
}

/// Warp 0, three levels or more: makes bitmap 2. Returns where K2 begins, or kBad.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ std::uint32_t unpackUpperLevels(const ChunkShape& shape,
                                                           const std::uint8_t* stored,
                                                           std::uint32_t at,
                                                           DecodeWork<kChunkBytes>& work) {
  const unsigned lane = laneId();
  std::uint32_t marks = 0;  // byte `lane` of bitmap 3
  if (shape.levels == 4) {
    std::uint32_t bitmap4 = 0;
    for (unsigned i = 0; i < 4; ++i) {
      bitmap4 |= static_cast<std::uint32_t>(stored[at + i]) << (8 * i);
    }
    const std::uint32_t n_marked = shape.n_bytes[3];
    const std::uint32_t n_kept = __popc(bitmap4);
    if ((n_marked < 32 && bitmap4 >> n_marked != 0) || n_kept > at) {
      return kBad;
    }
    at -= n_kept;
    const std::uint32_t rank = __popc(bitmap4 & (0xFFFFFFFFu >> (31 - lane)));
    marks = lane < n_marked && rank != 0 ? stored[at + rank - 1] : 0u;
  } else {
    marks = lane < shape.n_bytes[3] ? stored[at + lane] : 0u;
  }
  const std::uint32_t wanted = cuda::marksBelow<8>(8 * lane, shape.n_bytes[2]);
  const std::uint32_t sum = cuda::warpInclusiveSum<std::uint32_t>(__popc(marks));
  const std::uint32_t n_kept = __shfl_sync(kAllLanes, sum, kWarp - 1);
  if (__any_sync(kAllLanes, (marks & ~wanted) != 0) || n_kept > at) {
    return kBad;
  }
  at -= n_kept;
  if (lane < kChunkBytes / 512) {
    reinterpret_cast<uint2*>(work.bitmap2)[lane] =
        repeat8(stored + at, marks, sum - __popc(marks), wanted);
  }
  return at;
}

/// From bitmap 2 to bitmap 1, the whole block. Returns where K1 begins, or kBad; bitmap 1 is there
/// after a barrier.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ std::uint32_t unpackSecondLevel(const ChunkShape& shape,
                                                           const std::uint8_t* stored,
                                                           std::uint32_t at,
                                                           DecodeWork<kChunkBytes>& work) {
  const unsigned t = threadIdx.x;
  const std::uint32_t marks = shape.levels > 2       ? work.bitmap2[t]
                              : t < shape.n_bytes[2] ? stored[at + t]
                                                     : 0u;
  const std::uint32_t wanted = cuda::marksBelow<8>(8 * t, shape.n_bytes[1]);
  std::uint32_t rank = cuda::warpInclusiveSum<std::uint32_t>(__popc(marks));
  if (laneId() == kWarp - 1) {
    work.warp_sums[warpId()] = rank;
  }
  rank -= __popc(marks);
  const bool bad = __syncthreads_or((marks & ~wanted) != 0) != 0;
  std::uint32_t n_kept = 0;
#pragma unroll
  for (unsigned w = 0; w < DecodeWork<kChunkBytes>::kWarps; ++w) {
    rank += w < warpId() ? work.warp_sums[w] : 0u;
    n_kept += work.warp_sums[w];
  }
  if (bad || n_kept > at) {
    return kBad;
  }
  at -= n_kept;
  reinterpret_cast<uint2*>(work.bitmap1)[t] = repeat8(stored + at, marks, rank, wanted);
  return at;
}

/// The marks of all pieces of a stored chunk that is neither raw nor all zeros. False, in the whole
/// block, when it is no such chunk.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ bool unpackBitmaps(const ChunkShape& shape,
                                              const std::uint8_t* stored,
                                              std::uint32_t n_stored,
                                              DecodeWork<kChunkBytes>& work,
                                              DecodePieces& pieces) {
  std::uint32_t at = n_stored - kTagBytes - lastBitmapBytes(shape);
  if (shape.levels >= 3) {
    if (warpId() == 0) {
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
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const std::uint32_t i = pieceAt(r) / 8;
    std::uint32_t marks;
    if (shape.levels >= 2) {
      marks = work.bitmap1[i / 2];
    } else {
      const std::uint32_t low = i < shape.n_bytes[1] ? stored[at + i] : 0u;
      const std::uint32_t high = i + 1 < shape.n_bytes[1] ? stored[at + i + 1] : 0u;
      marks = low | high << 8;
    }
    bad |= (marks & ~cuda::marksBelow<16>(pieceAt(r), shape.n_bytes[0])) != 0;
    pieces.marks.set(r, marks);
  }
  cuda::rankInRows(pieces.marks, pieces.before, work.row_sums);
  bad = __syncthreads_or(bad) != 0;
  const std::uint32_t n_kept =
      cuda::addRowsBefore<DecodeWork<kChunkBytes>::kRows>(pieces.before, work.row_sums);
  return !bad && n_kept == at;
}

/// 16 bytes: those marked are the string that begins at byte `from` of words, the others zero.
__device__ __forceinline__ uint4 expand16(const cuda::ByteSelectors& expanding,
                                          const std::uint32_t* words,
                                          std::uint32_t from,
                                          std::uint32_t marks) {
  words += from / 4;
  const std::uint32_t shift = 8 * (from % 4);
  std::uint32_t s[4];
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    s[i] = __funnelshift_r(words[i], words[i + 1], shift);
  }
  std::uint32_t out[4];
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t mask = marks >> (4 * i) & 15u;
    out[i] = expanding.apply(s[0], mask);
#pragma unroll
    for (unsigned k = 0; k + 1 + i < 4; ++k) {  // the rest of the string moves up
      s[k] = __funnelshift_rc(s[k], s[k + 1], 8 * __popc(mask));
    }
  }
  return make_uint4(out[0], out[1], out[2], out[3]);
}

/// What the stream says about itself; false when it contradicts the config.
template <std::size_t kValueBytes>
__device__ __forceinline__ bool readStream(const RzeArgs& args,
                                           std::uint32_t chunk_bytes,
                                           Stream& stream) {
  const std::uint64_t n_bytes = args.record->value[kBytesSlot];
  const std::uint64_t n_stream = cuda::load(args.in.size);
  const std::uint64_t n_chunks = bits::ceilDiv(n_bytes, std::uint64_t{chunk_bytes});
  stream = {n_bytes, n_stream, static_cast<std::uint32_t>(n_chunks)};
  bool good = n_bytes <= kMaxInputBytes && n_bytes % kValueBytes == 0 &&
              n_stream >= minStreamBytes(n_chunks) && (n_stream == 0) == (n_chunks == 0);
  if (good && n_chunks != 0) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(args.in.data);
    good = words[0] == n_bytes && words[1] == n_chunks;
  }
  return good;
}

/// False when there is nothing to decode: no data, a buffer to be grown, or damage. Said once.
template <std::size_t kValueBytes>
__device__ __forceinline__ bool openStream(const RzeArgs& args,
                                           std::uint32_t chunk_bytes,
                                           Stream& stream) {
  const bool speaks = blockIdx.x == 0 && threadIdx.x == 0;
  const bool good = readStream<kValueBytes>(args, chunk_bytes, stream);
  if (!good && speaks) {
    cuda::noteError(args.record, DeviceError::kCorrupt, 0);
    args.record->error_value = kHeaderIsWrong;
  }
  if (good && speaks && !args.out.size_known) {
    cuda::publishSize(args.record, 0, stream.n_bytes, args.out.capacity_bytes);
  }
  return good && stream.n_bytes <= args.out.capacity_bytes;
}

/// Where the stored chunks begin, behind the entries, and the entries themselves; from a block of
/// kPlaceThreads per kPlaceChunks chunks. The states of the look-back stand behind the places. A
/// chunk without a place is none: there are fewer, or the stream is damaged.
__device__ __forceinline__ void placeChunks(const RzeArgs& args, std::uint32_t chunk_bytes) {
  __shared__ std::uint64_t warp_sums[kPlaceThreads / kWarp];
  __shared__ std::uint64_t before_block;
  Stream stream;
  const std::uint32_t first = blockIdx.x * kPlaceChunks + threadIdx.x * kPlaceEach;
  if (!readStream<1>(args, chunk_bytes, stream) || blockIdx.x * kPlaceChunks >= stream.n_chunks) {
    return;
  }
  const auto* entries = reinterpret_cast<const std::uint32_t*>(args.in.data + kHeaderBytes);
  std::uint64_t sizes[kPlaceEach];
  std::uint64_t own = 0;
#pragma unroll
  for (unsigned i = 0; i < kPlaceEach; ++i) {
    sizes[i] = first + i < stream.n_chunks ? entries[first + i] & ~kRawFlag : 0u;
    own += sizes[i];
  }
  std::uint64_t total = 0;
  std::uint64_t before = cuda::blockExclusiveSum<kPlaceThreads>(own, warp_sums, &total);
  if (warpId() == 0) {
    const cuda::LookBack look_back{args.states + 2 * std::size_t{args.n_chunks}};
    if (laneId() == 0) {
      look_back.publish(blockIdx.x, total);
    }
    __syncwarp();
    const std::uint64_t prefix = look_back.prefix(blockIdx.x, total);
    if (laneId() == 0) {
      before_block = prefix;
    }
  }
  __syncthreads();
  before += before_block;
#pragma unroll
  for (unsigned i = 0; i < kPlaceEach; ++i) {
    if (first + i < stream.n_chunks) {
      const std::uint64_t entry = entries[first + i];
      reinterpret_cast<ulonglong2*>(args.states)[first + i] =
          make_ulonglong2(before, kHasPlace | entry);
    }
    before += sizes[i];
  }
}

/// Hands a chunk over to the front. `staging` is the memory of the stored chunk.
template <std::uint32_t kChunkBytes, class Front>
__device__ __forceinline__ void putPieces(const Front& front,
                                          std::uint64_t begin,
                                          std::uint32_t n_here,
                                          std::uint64_t n_values,
                                          const uint4 (&bytes)[kRowsPerWarp],
                                          uint4* staging) {
  using V = typename Front::Value;
  constexpr unsigned kThreads = DecodeWork<kChunkBytes>::kThreads;
  if constexpr (kHasChunks<Front> || Front::kBlockWide) {
    __syncthreads();  // everybody has read the stored chunk
#pragma unroll
    for (unsigned r = 0; r < kRowsPerWarp; ++r) {
      staging[pieceAt(r) / 16] = bytes[r];
    }
    __syncthreads();
    if constexpr (kHasChunks<Front>) {
      front.template take<kThreads>(begin, n_here, n_values, staging);
    } else {
      constexpr unsigned kCount = cuda::Vec16<V>::kCount;
      V v[kRowsPerWarp * kCount];  // rows of neighbours, in the order of the threads
#pragma unroll
      for (unsigned c = 0; c < kRowsPerWarp; ++c) {
        cuda::Vec16<V> piece;
        piece.raw = staging[threadIdx.x * kRowsPerWarp + c];
#pragma unroll
        for (unsigned k = 0; k < kCount; ++k) {
          v[c * kCount + k] = piece.v[k];
        }
      }
      __syncthreads();
      group::putRows<kRowsPerWarp * kCount>(
          front, begin / sizeof(V) + warpId() * (kWarp * kRowsPerWarp * kCount), n_values,
          staging + warpId() * (kWarp * kRowsPerWarp), v);
    }
  } else {
#pragma unroll
    for (unsigned r = 0; r < kRowsPerWarp; ++r) {
      const std::uint64_t at = (begin + pieceAt(r)) / sizeof(V);
      cuda::Vec16<V> piece;
      piece.raw = bytes[r];
      front.putPiece(at, group::valuesFrom(at, n_values), piece.v);
    }
  }
}

template <std::uint32_t kChunkBytes, class Front>
__device__ __forceinline__ void decodeChunk(const RzeArgs& args, const Front& front) {
  using V = typename Front::Value;
  __shared__ DecodeWork<kChunkBytes> work;
  const std::uint32_t chunk = blockIdx.x;
  if (warpId() == 0) {  // one warp for all: the others have nothing to add
    const ulonglong2 place = reinterpret_cast<const ulonglong2*>(args.states)[chunk];
    const std::uint64_t n_bytes = args.record->value[kBytesSlot];
    const std::uint64_t n_stream = cuda::load(args.in.size);
    const std::uint64_t n_chunks = bits::ceilDiv(n_bytes, std::uint64_t{kChunkBytes});
    bool is_open = (place.y & kHasPlace) != 0 && n_bytes % sizeof(V) == 0 &&
                   n_bytes <= args.out.capacity_bytes;
    if (chunk == 0) {
      Stream found;
      is_open = openStream<sizeof(V)>(args, kChunkBytes, found) && is_open;
    }
    is_open = front.begin(n_bytes / sizeof(V)) && is_open;
    if (laneId() == 0) {
      work.is_open = is_open;
      work.entry = static_cast<std::uint32_t>(place.y);
      work.before = place.x;
      work.stream = {n_bytes, n_stream, static_cast<std::uint32_t>(n_chunks)};
    }
  }
  work.expanding.setExpanding();
  __syncthreads();
  if (!work.is_open) {
    return;
  }
  const Stream stream = work.stream;
  const std::uint32_t entry = work.entry;
  const std::uint32_t n_stored = entry & ~kRawFlag;
  const std::uint64_t at =
      kHeaderBytes + std::uint64_t{kEntryBytes} * stream.n_chunks + work.before;
  const std::uint64_t end = at + n_stored;
  if (chunk == stream.n_chunks - 1 && threadIdx.x == 0 &&
      bits::roundUp(end, std::uint64_t{kStreamAlign}) != stream.n_stream) {
    cuda::noteError(args.record, DeviceError::kCorrupt, 0);
    args.record->error_value = end;
  }
  if (end > stream.n_stream) {
    return;  // then the chunks do not end with the stream
  }
  const std::uint64_t begin = std::uint64_t{chunk} * kChunkBytes;
  const std::uint64_t n_left = stream.n_bytes - begin;
  const auto n_here = static_cast<std::uint32_t>(n_left < kChunkBytes ? n_left : kChunkBytes);
  const ChunkShape shape = shapeOf(n_here, args.levels);
  const bool is_raw = (entry & kRawFlag) != 0;
  const bool is_zero = !is_raw && n_stored == kZeroChunkBytes;
  bool good = is_zero || (is_raw ? n_stored == n_here
                                 : n_stored >= lastBitmapBytes(shape) + kTagBytes &&
                                       n_stored <= maxPackedBytes(shape));
  DecodePieces pieces;
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {  // right for zeros and for raw chunks
    pieces.marks.set(r, is_raw ? cuda::marksBelow<16>(pieceAt(r), n_here) : 0u);
    pieces.before.set(r, pieceAt(r));
  }
  const cuda::StagedRange range{args.in.data, stream.n_stream, at, n_stored};
  if (good && !is_zero) {
    cuda::copyToStaging({threadIdx.x, DecodeWork<kChunkBytes>::kThreads}, range, work.stored);
    __syncthreads();
    if (!is_raw) {
      const auto* stored = reinterpret_cast<const std::uint8_t*>(work.stored) + range.skew();
      good = unpackBitmaps(shape, stored, n_stored, work, pieces);
    }
  }
  if (!good) {
    if (threadIdx.x == 0) {
      cuda::noteError(args.record, DeviceError::kCorrupt, chunk);
    }
    return;
  }
  uint4 bytes[kRowsPerWarp];
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    bytes[r] = make_uint4(0, 0, 0, 0);
    if (__any_sync(kAllLanes, pieces.marks[r] != 0)) {
      bytes[r] =
          expand16(work.expanding, work.stored, range.skew() + pieces.before[r], pieces.marks[r]);
    }
  }
  putPieces<kChunkBytes>(front, begin, n_here, stream.n_bytes / sizeof(V), bytes,
                         reinterpret_cast<uint4*>(work.stored));
}

}  // namespace fz::rze::device
