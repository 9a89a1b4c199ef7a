#pragma once

// The decoder: a thread block for each chunk, which it hands to a front. Device code only.

#include "backends/cuda/group/lines.cuh"
#include "coders/rze/cuda/kernels.h"
#include "coders/rze/cuda/op/decode_chunks.cuh"

namespace fz::rze::device {

constexpr std::uint64_t kHasPlace = std::uint64_t{1} << 32;  // above the entry

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
    const std::uint32_t selector = expanding.of(marks >> (4 * i));
    out[i] = cuda::pickBytes(s[0], 0u, selector);
#pragma unroll
    for (unsigned k = 0; k + 1 + i < 4; ++k) {  // the rest of the string moves up
      s[k] = __funnelshift_rc(s[k], s[k + 1], selector >> 16);
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
    cuda::recordError(args.record, DeviceError::kCorrupt, 0);
    args.record->error_value = kHeaderIsWrong;
  }
  if (good && speaks && !args.out.size_known) {
    cuda::publishSize(args.record, 0, stream.n_bytes, args.out.capacity_bytes);
  }
  return good && stream.n_bytes <= args.out.capacity_bytes;
}

/// The calling thread's part, of kThreads, of the sizes of the first n chunks. The stream has all
/// of their entries.
template <unsigned kThreads>
__device__ __forceinline__ std::uint64_t partOfSizes(const RzeArgs& args, std::uint32_t n) {
  const auto* pairs = reinterpret_cast<const uint2*>(args.in.data + kHeaderBytes);
  std::uint64_t sum = 0;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x; i < n / 2; i += kThreads) {
    const uint2 pair = pairs[i];
    sum += std::uint64_t{pair.x & ~kRawFlag} + (pair.y & ~kRawFlag);
  }
  if (n % 2 != 0 && threadIdx.x == 0) {
    sum += reinterpret_cast<const std::uint32_t*>(pairs)[n - 1] & ~kRawFlag;
  }
  return sum;
}

/// Where the stored chunks begin, behind the entries, and the entries themselves; from a block of
/// kPlaceThreads per kPlaceChunks chunks, each of which adds up the entries before its own: they
/// are few beside the stream. A chunk without a place is none: there are fewer, or the stream is
/// damaged.
__device__ __forceinline__ void placeChunks(const RzeArgs& args, std::uint32_t chunk_bytes) {
  __shared__ std::uint64_t warp_sums[kPlaceThreads / kWarp];
  __shared__ std::uint64_t parts[kPlaceThreads / kWarp];
  Stream stream;
  const bool is_good = readStream<1>(args, chunk_bytes, stream);
  const std::uint32_t n_chunks = is_good ? stream.n_chunks : 0;
  const std::uint32_t first_of_block = blockIdx.x * kPlaceChunks;
  const std::uint32_t first = first_of_block + threadIdx.x * kPlaceEach;
  const auto* entries = reinterpret_cast<const std::uint32_t*>(args.in.data + kHeaderBytes);
  std::uint32_t own[kPlaceEach];
  std::uint64_t own_sum = 0;
#pragma unroll
  for (unsigned i = 0; i < kPlaceEach; ++i) {
    own[i] = first + i < n_chunks ? entries[first + i] : 0u;
    own_sum += own[i] & ~kRawFlag;
  }
  std::uint64_t total = 0;
  std::uint64_t before = cuda::blockExclusiveSum<kPlaceThreads>(own_sum, warp_sums, &total);
  std::uint64_t before_block = 0;
  const std::uint64_t part =
      partOfSizes<kPlaceThreads>(args, first_of_block < n_chunks ? first_of_block : 0);
  cuda::blockExclusiveSum<kPlaceThreads>(part, parts, &before_block);
  before += before_block;
#pragma unroll
  for (unsigned i = 0; i < kPlaceEach; ++i) {
    if (first + i < args.n_chunks) {
      reinterpret_cast<ulonglong2*>(args.states)[first + i] =
          first + i < n_chunks ? make_ulonglong2(before, kHasPlace | own[i])
                               : make_ulonglong2(0, 0);
    }
    before += own[i] & ~kRawFlag;
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
      staging[Rows<kChunkBytes>::pieceAt(r) / 16] = bytes[r];
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
      const std::uint64_t at = (begin + Rows<kChunkBytes>::pieceAt(r)) / sizeof(V);
      cuda::Vec16<V> piece;
      piece.raw = bytes[r];
      front.putPiece(at, group::valuesFrom(at, n_values), piece.v);
    }
  }
}

/// As placeChunks has it, but for the chunks before.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ ulonglong2 ownPlace(const RzeArgs& args, std::uint32_t chunk) {
  Stream stream;
  if (!readStream<1>(args, kChunkBytes, stream) || chunk >= stream.n_chunks) {
    return make_ulonglong2(0, 0);
  }
  const auto* entries = reinterpret_cast<const std::uint32_t*>(args.in.data + kHeaderBytes);
  return make_ulonglong2(0, kHasPlace | entries[chunk]);
}

/// A chunk of the stream, as its place says.
struct ChunkSource {
  std::uint32_t chunk;
  std::uint32_t entry;
  std::uint64_t before;  ///< bytes of the stored chunks before it
};

/// This thread's pieces of a chunk. False, in the whole block, when it is damaged, which is
/// recorded. Has barriers inside; work.expanding and work.repeating must be there.
template <std::uint32_t kChunkBytes>
__device__ __forceinline__ bool unpackChunk(const RzeArgs& args,
                                            const Stream& stream,
                                            const ChunkSource& source,
                                            DecodeWork<kChunkBytes>& work,
                                            uint4 (&bytes)[kRowsPerWarp]) {
  using Shape = Rows<kChunkBytes>;
  const std::uint32_t chunk = source.chunk;
  const std::uint32_t n_stored = source.entry & ~kRawFlag;
  const std::uint64_t at =
      kHeaderBytes + std::uint64_t{kEntryBytes} * stream.n_chunks + source.before;
  const std::uint64_t end = at + n_stored;
  if (chunk == stream.n_chunks - 1 && threadIdx.x == 0 &&
      bits::roundUp(end, std::uint64_t{kStreamAlign}) != stream.n_stream) {
    cuda::recordError(args.record, DeviceError::kCorrupt, 0);
    args.record->error_value = end;
  }
  if (end > stream.n_stream) {
    return false;  // then the chunks do not end with the stream
  }
  const std::uint32_t n_here = stream.bytesOf<kChunkBytes>(chunk);
  const ChunkShape shape = shapeOf(n_here, args.levels);
  const bool is_raw = (source.entry & kRawFlag) != 0;
  const bool is_zero = !is_raw && n_stored == kZeroChunkBytes;
  bool good = is_zero || (is_raw ? n_stored == n_here
                                 : n_stored >= lastBitmapBytes(shape) + kTagBytes &&
                                       n_stored <= maxPackedBytes(shape));
  PieceMarks pieces;
  pieces.rows = is_raw ? (1u << kRowsPerWarp) - 1u : 0u;
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {  // right for zeros and for raw chunks
    pieces.marks.set(r, is_raw ? cuda::marksBelow<16>(Shape::pieceAt(r), n_here) : 0u);
    pieces.before.set(r, Shape::pieceAt(r));
  }
  const cuda::StagedRange range{args.in.data, stream.n_stream, at, n_stored};
  if (good && !is_zero) {
    cuda::copyToStaging({threadIdx.x, DecodeWork<kChunkBytes>::kThreads}, range, work.stored());
    __syncthreads();
    if (!is_raw) {
      const StoredChunk stored{work.stored(), range.skew(), n_stored};
      if (n_here == kChunkBytes && args.levels == kMaxLevels) {  // sizes known when compiled
        good = unpackBitmaps(shapeOf(kChunkBytes, kMaxLevels), stored, chunk, work, pieces);
      } else {
        good = unpackBitmaps(shape, stored, chunk, work, pieces);
      }
    }
  }
  if (!good) {
    if (threadIdx.x == 0) {
      cuda::recordError(args.record, DeviceError::kCorrupt, chunk);
    }
    return false;
  }
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    bytes[r] = make_uint4(0, 0, 0, 0);
    if ((pieces.rows >> r & 1u) != 0) {
      bytes[r] =
          expand16(work.expanding, work.stored(), range.skew() + pieces.before[r], pieces.marks[r]);
    }
  }
  return true;
}

template <std::uint32_t kChunkBytes, class Front>
__device__ __forceinline__ void decodeChunk(const RzeArgs& args, const Front& front) {
  using V = typename Front::Value;
  __shared__ DecodeWork<kChunkBytes> work;
  constexpr unsigned kWarps = DecodeWork<kChunkBytes>::kWarps;
  const std::uint32_t chunk = blockIdx.x;
  const bool adds_up = args.states == nullptr;
  if (adds_up) {
    // What is read is inside the stream's buffer; whether it is in the stream is looked at below.
    const std::uint64_t end = kHeaderBytes + std::uint64_t{kEntryBytes} * chunk;
    const std::uint64_t part = end < args.in.size.n_bytes
                                   ? partOfSizes<DecodeWork<kChunkBytes>::kThreads>(args, chunk)
                                   : 0;
    const std::uint64_t sum = cuda::warpSum(part);
    if (laneId() == 0) {
      work.parts_before[warpId()] = sum;
    }
  }
  if (warpId() == 0) {  // one warp for all: the others have nothing to add
    const ulonglong2 place = adds_up ? ownPlace<kChunkBytes>(args, chunk)
                                     : reinterpret_cast<const ulonglong2*>(args.states)[chunk];
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
  work.repeating.setRepeating();
  __syncthreads();
  if (!work.is_open) {
    return;
  }
  const Stream stream = work.stream;
  std::uint64_t before = work.before;
  if (adds_up) {
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) {
      before += work.parts_before[w];
    }
  }
  uint4 bytes[kRowsPerWarp];
  if (!unpackChunk(args, stream, {chunk, work.entry, before}, work, bytes)) {
    return;
  }
  putPieces<kChunkBytes>(front, std::uint64_t{chunk} * kChunkBytes,
                         stream.bytesOf<kChunkBytes>(chunk), stream.n_bytes / sizeof(V), bytes,
                         reinterpret_cast<uint4*>(work.stored()));
}

}  // namespace fz::rze::device
