#pragma once

// RZE at the end of a fused group. Device code only.

#include "backends/cuda/group/front.cuh"
#include "coders/rze/cuda/op/decode.cuh"
#include "coders/rze/cuda/op/encode.cuh"

namespace fz::rze {

template <std::uint32_t kChunkBytes>
struct RzeOp {
  using Args = RzeArgs;
  /// See AnyChain.
  template <class Front>
  static constexpr bool kFitsRows = [] {
    if constexpr (device::kHasChunks<Front>) {
      return Front::kFitsRows;
    } else {
      constexpr unsigned kCount = cuda::Vec16<typename Front::Value>::kCount;
      return !Front::kBlockWide || group::kFitsOwnStaging<Front, device::kRowsPerWarp * kCount>;
    }
  }();

  template <class Front>
  struct Encoding {
    using Work = device::EncodeWork<kChunkBytes>;
    static constexpr unsigned kThreads = Work::kThreads;
    static constexpr unsigned kBlocks =
        group::kNeedsRegisters<Front> ? 1024 / kThreads : Work::kBlocksPerSm;
    static constexpr unsigned kTileValues = kChunkBytes / sizeof(typename Front::Value);
    static constexpr bool kIsPersistent = true;
    static constexpr unsigned kSharedBytes = 0;
  };
  template <class Front>
  struct Decoding {
    using Work = device::DecodeWork<kChunkBytes>;
    static_assert(kWarpBytes == cuda::kWarp * 16 * device::kRowsPerWarp);
    static constexpr unsigned kThreads = Work::kThreads;
    // A front that makes values of chunks needs more registers than one that stores them.
    static constexpr unsigned kBlocks =
        device::kHasChunks<Front> ? 1536 / kThreads : Work::kBlocksPerSm;
    static constexpr unsigned kTileValues = kChunkBytes / sizeof(typename Front::Value);
    static constexpr bool kIsPersistent = false;
    static constexpr unsigned kSharedBytes = 0;
  };

  template <class Front>
  static __device__ __forceinline__ void encode(const RzeArgs& args, const Front& front) {
    device::encodeChunks<kChunkBytes>(args, front);
    front.finish();
  }
  template <class Front>
  static __device__ __forceinline__ void decode(const RzeArgs& args, const Front& front) {
    device::decodeChunk<kChunkBytes>(args, front);
  }
};

}  // namespace fz::rze
