#pragma once

// RZE for a front that takes chunks in an order of its own (chunks.cuh): a block decodes chunk
// after chunk. Device code only; must compile with NVRTC.

#include "backends/cuda/async_copy.cuh"
#include "backends/cuda/group/chunks.cuh"
#include "coders/rze/rze_decode.cuh"

namespace fz::rze::device {

/// Dynamic shared memory of a block: this, then what the front asks for.
template <std::uint32_t kChunkBytes>
struct alignas(16) BlockWork {
  DecodeWork<kChunkBytes> work;
  ulonglong2 next_place;  ///< of the chunk that comes after the one at hand
  std::uint32_t next;     ///< which it is
};

/// See chunks.cuh. What is the same for all threads is kept in shared memory: there are few
/// registers beside those that a front keeps from chunk to chunk.
template <std::uint32_t kChunkBytes>
class ChunkReader {
 public:
  using Work = DecodeWork<kChunkBytes>;
  static constexpr unsigned kThreads = Work::kThreads;
  static constexpr unsigned kThreadBytes = group::kChunkThreadBytes;
  static_assert(kThreads * kThreadBytes == kChunkBytes);

  /// By all threads of the block.
  __device__ __forceinline__ ChunkReader(const RzeArgs& args, const Stream& stream) : args_(args) {
    if (threadIdx.x == 0) {
      work().stream = stream;
      memoryOfBlock().next = kNoChunk;
    }
    work().expanding.setExpanding();
    work().repeating.setRepeating();
    __syncthreads();
  }

  static __device__ __forceinline__ uint4* staging() {
    return reinterpret_cast<uint4*>(work().stored());
  }
  static __device__ __forceinline__ uint4* memory() {
    return group::dynamicShared() + sizeof(BlockWork<kChunkBytes>) / 16;
  }

  /// Makes the bytes of a chunk in staging(), and returns how many exist; zeros are behind them.
  /// Ends with a barrier.
  __device__ __forceinline__ std::uint32_t open(std::uint32_t chunk, std::uint32_t next) {
    const ulonglong2 place =
        chunk == memoryOfBlock().next ? memoryOfBlock().next_place : placeOf(chunk);
    __syncthreads();  // everybody is done with the chunk before, and has the place of this one
    if (threadIdx.x == 0) {
      const bool has_next = next < work().stream.n_chunks;
      memoryOfBlock().next = has_next ? next : kNoChunk;
      if (has_next) {
        cuda::copyAsync<16>(&memoryOfBlock().next_place, placeAt(next), true);
      }
    }
    const ChunkSource source{chunk, static_cast<std::uint32_t>(place.y), place.x};
    uint4 bytes[kRowsPerWarp];
    // Set on all paths: what is not, lives on in registers from chunk to chunk.
    if ((place.y & kHasPlace) == 0 || !unpackChunk(args_, work().stream, source, work(), bytes)) {
#pragma unroll
      for (uint4& piece : bytes) {
        piece = make_uint4(0, 0, 0, 0);
      }
    }
    __syncthreads();  // everybody has read the stored chunk
#pragma unroll
    for (unsigned r = 0; r < kRowsPerWarp; ++r) {
      staging()[Rows<kChunkBytes>::pieceAt(r) / 16] = bytes[r];
    }
    if (threadIdx.x == 0) {
      cuda::waitForCopies();
    }
    __syncthreads();
    if (memoryOfBlock().next != kNoChunk) {
      prefetch(memoryOfBlock().next_place);
    }
    return work().stream.template bytesOf<kChunkBytes>(chunk);
  }

  __device__ __forceinline__ void read(std::uint32_t chunk,
                                       std::uint32_t next,
                                       std::uint32_t (&words)[group::kChunkThreadWords]) {
    open(chunk, next);
    group::wordsOf(staging() + threadIdx.x * (kThreadBytes / 16), words);
    __syncthreads();
  }

 private:
  static constexpr std::uint32_t kNoChunk = 0xFFFFFFFFu;

  static __device__ __forceinline__ BlockWork<kChunkBytes>& memoryOfBlock() {
    return *reinterpret_cast<BlockWork<kChunkBytes>*>(group::dynamicShared());
  }
  static __device__ __forceinline__ Work& work() {
    return memoryOfBlock().work;
  }

  __device__ __forceinline__ const ulonglong2* placeAt(std::uint32_t chunk) const {
    return reinterpret_cast<const ulonglong2*>(args_.states) + chunk;
  }
  /// Zeros for a chunk that is none.
  __device__ __forceinline__ ulonglong2 placeOf(std::uint32_t chunk) const {
    return chunk < work().stream.n_chunks ? *placeAt(chunk) : make_ulonglong2(0, 0);
  }
  /// Brings a stored chunk closer, a line for each thread.
  __device__ __forceinline__ void prefetch(const ulonglong2& place) const {
    constexpr std::uint32_t kLineBytes = 128;
    static_assert(kThreads * kLineBytes >= Work::kMostBytes + kLineBytes);
    const std::uint32_t n_stored = static_cast<std::uint32_t>(place.y) & ~kRawFlag;
    const std::uint32_t at = threadIdx.x * kLineBytes;
    if (at < n_stored) {
      const std::uint64_t begin =
          kHeaderBytes + std::uint64_t{kEntryBytes} * work().stream.n_chunks + place.x + at;
      if (begin < work().stream.n_stream) {
        asm volatile(
            "prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(args_.in.data + begin)));
      }
    }
  }

  const RzeArgs& args_;
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
