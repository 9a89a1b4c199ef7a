#pragma once

// The checksum of a payload and what follows from it, in one kernel: block 0 deals with the header,
// the others sum up parts of the payload, and the one that comes last finishes. Device code only.

#include "backends/cuda/crc_device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/run_state.h"

namespace fz::cuda {

/// A payload whose place and length the device finds out.
struct PayloadPlace {
  const std::uint8_t* data;  ///< 16-byte aligned
  std::uint64_t n_bytes;
  std::uint64_t n_summed = 0;  ///< whole pieces at its beginning whose remainder is known
};

namespace {

constexpr unsigned kCrcBlocksPerProcessor = 3;

/// What one of the blocks but the first has to do with a payload.
struct PayloadPart {
  std::uint64_t begin;
  std::uint64_t end;        ///< of the whole pieces to sum up
  std::uint64_t place_end;  ///< with the rest behind the last whole piece
};
__device__ __forceinline__ PayloadPart partOfPayload(PayloadPlace payload) {
  const std::uint64_t n_main = payload.n_bytes / kCrcPieceBytes * kCrcPieceBytes;
  const std::uint64_t n_parts = gridDim.x - 1;
  const std::uint64_t n_rounds = (n_main - payload.n_summed + kCrcRoundBytes - 1) / kCrcRoundBytes;
  const std::uint64_t part_bytes = (n_rounds + n_parts - 1) / n_parts * kCrcRoundBytes;
  const std::uint64_t begin = payload.n_summed + (blockIdx.x - 1) * part_bytes;
  if (begin >= n_main) {
    const bool is_all_rest = n_main == payload.n_summed && blockIdx.x == 1;
    return {n_main, n_main, is_all_rest ? payload.n_bytes : n_main};
  }
  const std::uint64_t end = begin + part_bytes < n_main ? begin + part_bytes : n_main;
  return {begin, end, end == n_main ? payload.n_bytes : end};
}

/// The blocks but the first: the remainder of their parts of the whole pieces, moved to their
/// places, into *remainder; the rest is left to the last block. The start value is in the first
/// four bytes. load(p) reads a piece.
template <class Load>
__device__ __forceinline__ void addPartOfCrc(PayloadPlace payload,
                                             const PayloadPart& part,
                                             const CrcAgent& agent,
                                             std::uint32_t* remainder,
                                             Load load) {
  if (part.begin >= part.end) {
    return;
  }
  const std::uint64_t n_main = payload.n_bytes / kCrcPieceBytes * kCrcPieceBytes;
  const CrcDistance distance(threadIdx.x < kWarp ? n_main - part.end : 0);
  const std::uint32_t sum = agent.sum(part.begin, part.end, [&](std::uint64_t at) {
    uint4 v = load(reinterpret_cast<const uint4*>(payload.data + at));
    v.x ^= at == 0 ? ~0u : 0u;
    return v;
  });
  if (threadIdx.x < kWarp) {
    const std::uint32_t moved = distance.moved(sum);
    if (threadIdx.x == 0) {
      atomicXor(remainder, moved);  // order-free: a sum over GF(2)
    }
  }
}

/// The same of a payload that is not written meanwhile.
__device__ __forceinline__ void addPartOfCrc(PayloadPlace payload,
                                             const CrcAgent& agent,
                                             std::uint32_t* remainder) {
  addPartOfCrc(payload, partOfPayload(payload), agent, remainder,
               [](const uint4* p) { return __ldg(p); });
}

/// The checksum as stored, of a payload whose parts have been summed up. By a full warp.
__device__ __forceinline__ std::uint32_t finishCrc(PayloadPlace payload, std::uint32_t remainder) {
  const unsigned n_rest = static_cast<unsigned>(payload.n_bytes % kCrcPieceBytes);
  const bool has_pieces = payload.n_bytes >= kCrcPieceBytes;
  return finishedCrc(has_pieces ? remainder : ~0u, payload.data + (payload.n_bytes - n_rest),
                     n_rest);
}

/// Every block, when its part is done: true for all threads of the block that comes last, whose
/// first warp then has the checksum. The state is as before afterwards, ready for the next payload.
__device__ __forceinline__ bool endPayload(PayloadPlace payload,
                                           FrameState* state,
                                           std::uint32_t* crc) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    // order-free: who comes last finishes, with the same result whoever it is
    const unsigned n_before = atomicAdd(&state->blocks_done, 1u);  // order-free: as said
    is_last = n_before == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) {
    return false;
  }
  if (threadIdx.x < kWarp) {
    __threadfence();
    const std::uint32_t remainder =
        *const_cast<const volatile std::uint32_t*>(&state->crc_remainder);
    std::uint32_t front = 0;
    if (payload.n_summed != 0) {
      const std::uint64_t n_main = payload.n_bytes / kCrcPieceBytes * kCrcPieceBytes;
      const CrcDistance distance(n_main - payload.n_summed);
      front = distance.moved(*const_cast<const volatile std::uint32_t*>(&state->front_remainder));
    }
    *crc = finishCrc(payload, remainder ^ front);
    if (threadIdx.x == 0) {
      state->crc_remainder = 0;
      state->front_remainder = 0;
      state->blocks_done = 0;
    }
  }
  return true;
}

/// The checksum of a header in shared memory, whole pieces, for the first warp. All threads, after
/// a barrier.
__device__ __forceinline__ std::uint32_t headerCrc(const std::uint8_t* header,
                                                   std::uint32_t n_bytes,
                                                   const CrcAgent& agent) {
  return ~agent.sum(0, n_bytes, [&](std::uint64_t at) {
    uint4 v = *reinterpret_cast<const uint4*>(header + at);
    v.x ^= at == 0 ? ~0u : 0u;
    return v;
  });
}

}  // namespace

/// Blocks for a payload of at most max_bytes: the one for the header, and what the device can have
/// at a time for the rest.
inline unsigned crcBlocks(std::uint64_t max_bytes) {
  const unsigned most = kCrcBlocksPerProcessor * multiprocessorCount();
  return 1 + std::min(gridFor(max_bytes, kCrcRoundBytes), std::max(1u, most - 1));
}

}  // namespace fz::cuda
