#pragma once

// RZE for a front that takes chunks in an order of its own (chunks.cuh): a block decodes chunk
// after chunk. Device code only; must compile with NVRTC.

#include "backends/cuda/group/chunks.cuh"
#include "coders/rze/rze_decode.cuh"

namespace fz::rze::device {

/// Dynamic shared memory of a block: the work on a chunk, then what the front asks for.
template <std::uint32_t kChunkBytes>
inline constexpr unsigned kWorkBytes = (sizeof(DecodeWork<kChunkBytes>) + 15) / 16 * 16;

/// See chunks.cuh.
template <std::uint32_t kChunkBytes>
class ChunkReader {
 public:
  using Work = DecodeWork<kChunkBytes>;
  static constexpr unsigned kThreads = Work::kThreads;
  static constexpr unsigned kThreadBytes = group::kChunkThreadBytes;
  static_assert(kThreads * kThreadBytes == kChunkBytes);

  /// By all threads of the block.
  __device__ __forceinline__ ChunkReader(const RzeArgs& args, const Stream& stream)
      : args_(args), stream_(stream) {
    work().expanding.setExpanding();
    work().repeating.setRepeating();
  }

  static __device__ __forceinline__ uint4* staging() {
    return reinterpret_cast<uint4*>(work().stored());
  }
  static __device__ __forceinline__ uint4* memory() {
    return group::dynamicShared() + kWorkBytes<kChunkBytes> / 16;
  }

  /// Makes the bytes of a chunk in staging(), and returns how many exist; zeros are behind them.
  /// Ends with a barrier.
  __device__ __forceinline__ std::uint32_t open(std::uint32_t chunk, std::uint32_t next) {
    const ulonglong2 place = chunk == held_chunk_ ? held_ : placeOf(chunk);
    held_chunk_ = next;
    held_ = placeOf(next);  // on its way while this chunk is decoded
    __syncthreads();        // everybody is done with the chunk before
    uint4 bytes[kRowsPerWarp];
    const ChunkSource source{chunk, static_cast<std::uint32_t>(place.y), place.x};
    const bool good =
        (place.y & kHasPlace) != 0 && unpackChunk(args_, stream_, source, work(), bytes);
    __syncthreads();  // everybody has read the stored chunk
#pragma unroll
    for (unsigned r = 0; r < kRowsPerWarp; ++r) {
      staging()[Rows<kChunkBytes>::pieceAt(r) / 16] = good ? bytes[r] : make_uint4(0, 0, 0, 0);
    }
    prefetchHeld();
    __syncthreads();
    return stream_.template bytesOf<kChunkBytes>(chunk);
  }

  __device__ __forceinline__ void read(std::uint32_t chunk,
                                       std::uint32_t next,
                                       std::uint32_t (&words)[group::kChunkThreadWords]) {
    open(chunk, next);
#pragma unroll
    for (unsigned c = 0; c < kThreadBytes / 16; ++c) {
      const uint4 piece = staging()[threadIdx.x * (kThreadBytes / 16) + c];
      words[4 * c] = piece.x;
      words[4 * c + 1] = piece.y;
      words[4 * c + 2] = piece.z;
      words[4 * c + 3] = piece.w;
    }
    __syncthreads();
  }

 private:
  static __device__ __forceinline__ Work& work() {
    return *reinterpret_cast<Work*>(group::dynamicShared());
  }
  /// Zeros for a chunk that is none.
  __device__ __forceinline__ ulonglong2 placeOf(std::uint32_t chunk) const {
    return chunk < stream_.n_chunks ? reinterpret_cast<const ulonglong2*>(args_.states)[chunk]
                                    : make_ulonglong2(0, 0);
  }
  /// Brings the next stored chunk closer, a line for each thread.
  __device__ __forceinline__ void prefetchHeld() const {
    constexpr std::uint32_t kLineBytes = 128;
    static_assert(kThreads * kLineBytes >= Work::kMostBytes + kLineBytes);
    const std::uint64_t begin =
        kHeaderBytes + std::uint64_t{kEntryBytes} * stream_.n_chunks + held_.x;
    const std::uint32_t n_stored = static_cast<std::uint32_t>(held_.y) & ~kRawFlag;
    const std::uint32_t at = threadIdx.x * kLineBytes;
    if (at < n_stored && begin + n_stored <= stream_.n_stream) {
      asm volatile(
          "prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(args_.in.data + begin + at)));
    }
  }

  const RzeArgs& args_;
  Stream stream_;
  std::uint32_t held_chunk_ = 0xFFFFFFFFu;
  ulonglong2 held_ = {0, 0};
};

/// For a front that takes the chunks in an order of its own.
template <std::uint32_t kChunkBytes, class Front>
__device__ __forceinline__ void decodeInOrderOf(const RzeArgs& args, const Front& front) {
  constexpr std::size_t kValueBytes = sizeof(typename Front::Value);
  Stream stream{args.record->value[kBytesSlot], cuda::load(args.in.size), 0};
  stream.n_chunks =
      static_cast<std::uint32_t>(bits::ceilDiv(stream.n_bytes, std::uint64_t{kChunkBytes}));
  const ulonglong2 first = reinterpret_cast<const ulonglong2*>(args.states)[0];
  bool is_open = (first.y & kHasPlace) != 0 && stream.n_bytes % kValueBytes == 0 &&
                 stream.n_bytes <= args.out.capacity_bytes;
  if (blockIdx.x == 0) {
    Stream found;
    is_open = openStream<kValueBytes>(args, kChunkBytes, found) && is_open;
  }
  if (front.begin(stream.n_bytes / kValueBytes) && is_open) {
    front.decodeChunks(ChunkReader<kChunkBytes>(args, stream));
  }
}

}  // namespace fz::rze::device
