#pragma once

// The checksum of a payload and what follows from it, in one kernel: blocks sum up parts, and the
// one that comes last finishes. Device code only.

#include "backends/cuda/crc_device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/run_block.h"

namespace fz::cuda {

/// A payload whose place and length the device finds out.
struct PayloadPlace {
  const std::uint8_t* data;  ///< 16-byte aligned
  std::uint64_t n_bytes;
};

namespace {

/// One block: the remainder of its part of the whole pieces, moved to its place, into *remainder.
/// The start value is in the first four bytes.
__device__ __forceinline__ void addPartOfCrc(PayloadPlace payload,
                                             unsigned n_rounds,
                                             CrcDesk& desk,
                                             std::uint32_t* remainder) {
  // The rest is left to the last block.
  const std::uint64_t n_main = payload.n_bytes / kCrcPieceBytes * kCrcPieceBytes;
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * n_rounds * kCrcRoundBytes;
  if (begin >= n_main) {
    return;
  }
  const std::uint64_t block_bytes = std::uint64_t{n_rounds} * kCrcRoundBytes;
  const std::uint64_t end = begin + block_bytes < n_main ? begin + block_bytes : n_main;
  desk.open();
  __syncthreads();
  const std::uint32_t sum = desk.sum(begin, end, [&](std::uint64_t at) {
    uint4 v = __ldg(reinterpret_cast<const uint4*>(payload.data + at));
    v.x ^= at == 0 ? ~0u : 0u;
    return v;
  });
  if (threadIdx.x < kWarp) {
    const std::uint32_t moved = warpMoved(sum, n_main - end);
    if (threadIdx.x == 0) {
      atomicXor(remainder, moved);  // order-free: a sum over GF(2)
    }
  }
}

/// The checksum as stored, of a payload whose parts have been summed up. By a full warp.
__device__ __forceinline__ std::uint32_t finishCrc(PayloadPlace payload, std::uint32_t remainder) {
  const unsigned n_rest = static_cast<unsigned>(payload.n_bytes % kCrcPieceBytes);
  const bool has_pieces = payload.n_bytes >= kCrcPieceBytes;
  return finishedCrc(has_pieces ? remainder : ~0u, payload.data + (payload.n_bytes - n_rest),
                     n_rest);
}

/// Every block: adds its part; true for all threads of the block that comes last, which then has
/// the checksum. The state is as before afterwards, ready for the next payload.
__device__ __forceinline__ bool sumPayload(
    PayloadPlace payload, unsigned n_rounds, CrcDesk& desk, FrameState* state, std::uint32_t* crc) {
  __shared__ std::uint32_t crc_of_last;
  __shared__ bool is_last;
  addPartOfCrc(payload, n_rounds, desk, &state->crc_remainder);
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
  __threadfence();
  if (threadIdx.x < kWarp) {
    const std::uint32_t remainder =
        *const_cast<const volatile std::uint32_t*>(&state->crc_remainder);
    const std::uint32_t finished = finishCrc(payload, remainder);
    if (threadIdx.x == 0) {
      crc_of_last = finished;
      state->crc_remainder = 0;
      state->blocks_done = 0;
    }
  }
  __syncthreads();
  *crc = crc_of_last;
  return true;
}

/// The checksum of a header in shared memory, whole pieces, for the first warp. All threads, after
/// a barrier; the desk has been opened or not.
__device__ __forceinline__ std::uint32_t headerCrc(const std::uint8_t* header,
                                                   std::uint32_t n_bytes,
                                                   CrcDesk& desk) {
  desk.open();
  __syncthreads();
  return ~desk.sum(0, n_bytes, [&](std::uint64_t at) {
    uint4 v = *reinterpret_cast<const uint4*>(header + at);
    v.x ^= at == 0 ? ~0u : 0u;
    return v;
  });
}

}  // namespace

/// How a payload of at most max_bytes is shared out: few rounds while that still fills the device,
/// more when there is plenty to do.
struct CrcGrid {
  unsigned n_rounds;
  unsigned n_blocks;

  explicit CrcGrid(std::uint64_t max_bytes) {
    constexpr std::uint64_t kMinRounds = 4;
    constexpr std::uint64_t kMaxRounds = 32;
    const std::uint64_t all_rounds = (max_bytes + kCrcRoundBytes - 1) / kCrcRoundBytes;
    const std::uint64_t wanted = all_rounds / (8ull * multiprocessorCount());
    n_rounds = static_cast<unsigned>(std::max(kMinRounds, std::min(wanted, kMaxRounds)));
    n_blocks = gridFor(all_rounds, n_rounds);
  }
};

}  // namespace fz::cuda
