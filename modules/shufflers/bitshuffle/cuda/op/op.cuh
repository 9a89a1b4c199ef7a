#pragma once

// Bit planes of a chunk as part of a fused group. A thread takes 64 bytes of neighbouring values,
// turns them in registers and puts its bits into every plane of the chunk in shared memory; back
// the other way. Device code only.
//
// The kind of front that this is: chunks. fill<kThreads>(begin, n_here, chunk) writes the n_here
// bytes from byte `begin` of the coder's input on to shared memory, and take<kThreads> is its
// inverse. All threads of the block call them together; a chunk has 64 bytes for each of them, and
// bytes behind n_here are undefined. Both have barriers inside and need one before the chunk is
// used, and before they are called.

#include "backends/cuda/group/lines.cuh"
#include "shufflers/bitshuffle/cuda/kernels.h"
#include "shufflers/bitshuffle/cuda/op/rows.cuh"

namespace fz::bitshuffle {

template <unsigned kBytes>
struct BitshuffleOp {
  using Args = BitshuffleArgs;

  template <class Inner>
  struct Front {
    using Planes = ThreadPlanes<kBytes>;
    using Part = typename Planes::Part;
    using Value = typename Inner::Value;
    static_assert(sizeof(Value) == kBytes);
    static constexpr bool kHasChunks = true;
    static constexpr bool kHasRows = false;
    static constexpr bool kBlockWide = true;
    static constexpr bool kCanFetch = false;
    static constexpr bool kManyRegisters = group::kNeedsRegisters<Inner>;
    static constexpr unsigned kElements = Planes::kElements;
    static constexpr unsigned kThreadBytes = kElements * kBytes;
    static_assert(cuda::kWarp * kThreadBytes == kWarpBytes);
    static constexpr unsigned kStagingPieces = cuda::kWarp * kThreadBytes / 16;  // of a warp

    static constexpr bool kFitsRows = group::kFitsOwnStaging<Inner, kElements>;

    std::uint32_t block_bytes;
    Inner inner;

    __device__ __forceinline__ Front(const BitshuffleArgs& a, const Inner& i)
        : block_bytes(a.block_bytes), inner(i) {}

    __device__ __forceinline__ std::uint64_t count() const { return inner.count(); }
    __device__ __forceinline__ bool begin(std::uint64_t n) const { return inner.begin(n); }
    __device__ __forceinline__ bool isNeeded() const { return group::isNeeded(inner); }
    __device__ __forceinline__ void finish() const { inner.finish(); }

    __device__ __forceinline__ void prefetch(std::uint64_t at, unsigned n) const {
      group::prefetch(inner, at, n);
    }

    template <unsigned kThreads>
    __device__ __forceinline__ void fill(std::uint64_t begin,
                                         std::uint32_t n_here,
                                         uint4* chunk) const {
      Value v[kElements];
      group::rowsOfBlock<kElements>(inner, firstOf(begin), chunk + cuda::warpId() * kStagingPieces,
                                    v);
      typename Planes::Element e[kElements];
#pragma unroll
      for (unsigned k = 0; k < kElements; ++k) {
        e[k] = static_cast<typename Planes::Element>(v[k]);
      }
      if (block_bytes == kThreads * kThreadBytes && n_here == block_bytes) {
        fillWhole<kThreads>(e, chunk);  // places that are known when compiled
        return;
      }
      const Spot spot(block_bytes);
      if (spot.block_end <= n_here) {
        Part* parts = spot.parts(chunk);
        const unsigned plane_parts = spot.planeParts(block_bytes);
        std::uint32_t a[16];
        Planes::encode(e, a);
        Planes::each(a, [&](unsigned plane, Part part) { parts[plane * plane_parts] = part; });
      } else {  // behind the last whole block: as it is
        cuda::Vec16<typename Planes::Element> piece;
#pragma unroll
        for (unsigned c = 0; c < kThreadBytes / 16; ++c) {
#pragma unroll
          for (unsigned k = 0; k < piece.kCount; ++k) {
            piece.v[k] = e[c * piece.kCount + k];
          }
          chunk[threadIdx.x * (kThreadBytes / 16) + c] = piece.raw;
        }
      }
    }

    /// n: values of the whole field.
    template <unsigned kThreads>
    __device__ __forceinline__ void take(std::uint64_t begin,
                                         std::uint32_t n_here,
                                         std::uint64_t n,
                                         uint4* chunk) const {
      typename Planes::Element e[kElements];
      takeElements<kThreads>(block_bytes, n_here, chunk, e);
      __syncthreads();
      Value v[kElements];
#pragma unroll
      for (unsigned k = 0; k < kElements; ++k) {
        v[k] = static_cast<Value>(e[k]);
      }
      group::putRows<kElements>(inner, firstOf(begin), n, chunk + cuda::warpId() * kStagingPieces,
                                v);
    }

   private:
    /// This thread's elements of a chunk.
    template <unsigned kThreads>
    static __device__ __forceinline__ void takeElements(std::uint32_t block_bytes,
                                                        std::uint32_t n_here,
                                                        const uint4* chunk,
                                                        typename Planes::Element (&e)[kElements]) {
      if (block_bytes == kThreads * kThreadBytes && n_here == block_bytes) {
        takeWhole<kThreads>(chunk, e);
      } else if (const Spot spot(block_bytes); spot.block_end <= n_here) {
        const Part* parts = spot.parts(chunk);
        const unsigned plane_parts = spot.planeParts(block_bytes);
        std::uint32_t a[16];
        Planes::gather([&](unsigned plane) { return parts[plane * plane_parts]; }, a);
        Planes::decode(a, e);
      } else {
        cuda::Vec16<typename Planes::Element> piece;
#pragma unroll
        for (unsigned c = 0; c < kThreadBytes / 16; ++c) {
          piece.raw = chunk[threadIdx.x * (kThreadBytes / 16) + c];
#pragma unroll
          for (unsigned k = 0; k < piece.kCount; ++k) {
            e[c * piece.kCount + k] = piece.v[k];
          }
        }
      }
    }
    /// A chunk that is one whole block.
    template <unsigned kThreads>
    static __device__ __forceinline__ void fillWhole(const typename Planes::Element (&e)[kElements],
                                                     uint4* chunk) {
      Part* parts = reinterpret_cast<Part*>(chunk) + Planes::place(threadIdx.x);
      const auto store = [=](unsigned plane, Part part) { parts[plane * kThreads] = part; };
      if constexpr (Planes::kHasNarrow) {
        if (__all_sync(cuda::kAllLanes, Planes::isNarrow(e))) {
          Planes::encodeNarrow(e, store);
#pragma unroll
          for (unsigned i = 0; i < kZeroPieces; ++i) {
            chunk[zeroPiece<kThreads>(i)] = make_uint4(0, 0, 0, 0);
          }
          return;
        }
      }
      std::uint32_t a[16];
      Planes::encode(e, a);
      Planes::each(a, store);
    }
    template <unsigned kThreads>
    static __device__ __forceinline__ void takeWhole(const uint4* chunk,
                                                     typename Planes::Element (&e)[kElements]) {
      const Part* parts = reinterpret_cast<const Part*>(chunk) + Planes::place(threadIdx.x);
      const auto load = [=](unsigned plane) { return parts[plane * kThreads]; };
      if constexpr (Planes::kHasNarrow) {
        std::uint32_t any = 0;
#pragma unroll
        for (unsigned i = 0; i < kZeroPieces; ++i) {
          const uint4 piece = chunk[zeroPiece<kThreads>(i)];
          any |= piece.x | piece.y | piece.z | piece.w;
        }
        if (__all_sync(cuda::kAllLanes, any == 0)) {
          Planes::decodeNarrow(load, e);
          return;
        }
      }
      std::uint32_t a[16];
      Planes::gather(load, a);
      Planes::decode(a, e);
    }

    // The warp's part of the planes that are zero for narrow elements: 64 bytes of each, so four
    // lanes have a piece of 16 bytes each.
    static constexpr unsigned kLanesOfPart = 4;
    static constexpr unsigned kZeroPieces = 16 / (cuda::kWarp / kLanesOfPart);  // of 16 planes
    template <unsigned kThreads>
    static __device__ __forceinline__ unsigned zeroPiece(unsigned i) {
      static_assert(Planes::kZeroPlanes == 16 && cuda::kWarp * sizeof(Part) == 16 * kLanesOfPart);
      const unsigned plane = i * (cuda::kWarp / kLanesOfPart) + cuda::laneId() / kLanesOfPart;
      return (plane * kThreads + cuda::warpId() * cuda::kWarp) * sizeof(Part) / 16 +
             cuda::laneId() % kLanesOfPart;
    }

    static __device__ __forceinline__ std::uint64_t firstOf(std::uint64_t begin) {
      return begin / kBytes + cuda::warpId() * (cuda::kWarp * kElements);
    }

    /// Where a thread's values stand in the chunk.
    struct Spot {
      std::uint32_t block_begin;  ///< of its block, in bytes
      std::uint32_t block_end;
      unsigned index;  ///< of the thread among those of its block

      explicit __device__ __forceinline__ Spot(std::uint32_t block) {
        const std::uint32_t at = threadIdx.x * kThreadBytes;
        block_begin = at / block * block;
        block_end = block_begin + block;
        index = (at - block_begin) / kThreadBytes;
      }
      static __device__ __forceinline__ unsigned planeParts(std::uint32_t block) {
        return block / kThreadBytes;
      }
      __device__ __forceinline__ Part* parts(uint4* chunk) const {
        return reinterpret_cast<Part*>(reinterpret_cast<std::uint8_t*>(chunk) + block_begin) +
               Planes::place(index);
      }
      __device__ __forceinline__ const Part* parts(const uint4* chunk) const {
        return reinterpret_cast<const Part*>(reinterpret_cast<const std::uint8_t*>(chunk) +
                                             block_begin) +
               Planes::place(index);
      }
    };
  };
};

}  // namespace fz::bitshuffle
