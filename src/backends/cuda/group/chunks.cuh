#pragma once

// Chunks: values that a decoder's front takes by the chunk, in an order of its own.
//
// A front with kTakesChunks has decodeChunks(reader) instead of store, called by all threads of a
// block after begin(). kChunkSharedBytes says how much shared memory it needs for itself. The
// coder's reader, or that of planes around it, has
//
//   kThreads of the block, and kThreadBytes = 64 that each of them gets of a chunk;
//   read(chunk, next, words): this thread's bytes of a chunk as little-endian words, those from
//     chunk * kThreads * kThreadBytes + threadIdx.x * kThreadBytes on. All threads of the block
//     call it together, any number of times for a chunk. `next` is the chunk that is read after
//     it, so that it can be on its way. What is wrong with the stream there is noted, and the
//     chunk is zeros. Has barriers inside; the first one stands before staging() is written.
//   staging(): shared memory of the size of a chunk, free for the front between two reads;
//   memory(): the front's kChunkSharedBytes.
//
// Device code only; must compile with NVRTC.

#include "backends/cuda/group/front.cuh"

namespace fz::group {

inline constexpr unsigned kChunkThreadBytes = 64;
inline constexpr unsigned kChunkThreadWords = kChunkThreadBytes / 4;

/// A thread's bytes of a chunk.
__device__ __forceinline__ void wordsOf(const uint4* pieces,
                                        std::uint32_t (&words)[kChunkThreadWords]) {
#pragma unroll
  for (unsigned c = 0; c < kChunkThreadWords / 4; ++c) {
    const uint4 piece = pieces[c];
    words[4 * c] = piece.x;
    words[4 * c + 1] = piece.y;
    words[4 * c + 2] = piece.z;
    words[4 * c + 3] = piece.w;
  }
}

template <class Front>
FZ_HD constexpr bool takesChunks() {
  if constexpr (requires { Front::kTakesChunks; }) {
    return Front::kTakesChunks;
  } else {
    return false;
  }
}

/// Shared memory that a front needs beside the coder's.
template <class Front>
FZ_HD constexpr unsigned chunkSharedBytes() {
  if constexpr (takesChunks<Front>()) {
    return Front::kChunkSharedBytes;
  } else {
    return 0;
  }
}

}  // namespace fz::group
