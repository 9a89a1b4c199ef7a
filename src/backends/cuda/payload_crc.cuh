#pragma once

// The checksum of a payload and what follows from it, in one kernel: blocks sum up parts, and the
// one that comes last finishes. Device code only.

#include "backends/cuda/crc_device.cuh"
#include "backends/cuda/launch.h"

namespace fz::cuda {

/// A payload whose place and length the device finds out.
struct PayloadPlace {
  const std::uint8_t* data;  ///< 16-byte aligned
  std::uint64_t n_bytes;
};

namespace {

/// One block: the remainder of its part of the whole 16-byte pieces, moved to its place, into
/// *remainder.
__device__ __forceinline__ void addPartOfCrc(PayloadPlace payload,
                                             unsigned n_rounds,
                                             std::uint32_t* remainder) {
  __shared__ std::uint32_t tables[4][256];
  __shared__ std::uint32_t parts[kCrcThreads];
  const std::uint64_t n_main = payload.n_bytes / 16 * 16;  // the rest is left to the last block
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * n_rounds * kCrcRoundBytes;
  if (begin >= n_main) {
    return;
  }
  const std::uint64_t block_bytes = std::uint64_t{n_rounds} * kCrcRoundBytes;
  const std::uint64_t end = begin + block_bytes < n_main ? begin + block_bytes : n_main;
  for (unsigned i = threadIdx.x; i < 1024; i += kCrcThreads) {
    (&tables[0][0])[i] = (&kRoundTables.table[0][0])[i];
  }
  __syncthreads();
  // Leading zeros do not change a remainder, so the part is aligned at its end: thread t of a round
  // always stands the same number of bytes before it.
  const std::uint64_t rounds = (end - begin + kCrcRoundBytes - 1) / kCrcRoundBytes;
  const std::int64_t first = static_cast<std::int64_t>(end - rounds * kCrcRoundBytes) +
                             16 * static_cast<std::int64_t>(threadIdx.x);
  std::uint32_t r0 = 0;
  std::uint32_t r1 = 0;
  std::uint32_t r2 = 0;
  std::uint32_t r3 = 0;
#pragma unroll 4
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::int64_t at = first + static_cast<std::int64_t>(round * kCrcRoundBytes);
    uint4 v = make_uint4(0, 0, 0, 0);
    if (at >= static_cast<std::int64_t>(begin)) {
      v = __ldg(reinterpret_cast<const uint4*>(payload.data + at));
    }
    if (round != 0) {
      r0 = lookUp(tables, r0);
      r1 = lookUp(tables, r1);
      r2 = lookUp(tables, r2);
      r3 = lookUp(tables, r3);
    }
    r0 ^= v.x;
    r1 ^= v.y;
    r2 ^= v.z;
    r3 ^= v.w;
  }
  // The four words of a thread, then the threads: every step doubles the distance. A register still
  // has its own last word in it, so moving on by four bytes ends the word.
  std::uint32_t r = lookUp(kWordTables.table, r0) ^ r1;
  r = lookUp(kWordTables.table, r) ^ r2;
  r = lookUp(kWordTables.table, r) ^ r3;
  r = lookUp(kWordTables.table, r);
  parts[threadIdx.x] = r;
  __syncthreads();
  unsigned level = 4;  // 16 bytes = 2^4
  for (unsigned n = kCrcThreads / 2; n > 0; n /= 2, ++level) {
    std::uint32_t sum = 0;
    if (threadIdx.x < n) {
      sum = crcMultiply(parts[2 * threadIdx.x], kPowers.power[level]) ^ parts[2 * threadIdx.x + 1];
    }
    __syncthreads();
    if (threadIdx.x < n) {
      parts[threadIdx.x] = sum;
    }
    __syncthreads();
  }
  if (threadIdx.x < kWarp) {
    const std::uint32_t power = warpPower(n_main - end);
    if (threadIdx.x == 0) {
      atomicXor(remainder, crcMultiply(parts[0], power));  // order-free: a sum over GF(2)
    }
  }
}

/// The checksum as stored: the remainder of the parts, the bytes behind the last whole 16, and what
/// the start value 0xffffffff has become. By a full warp.
__device__ __forceinline__ std::uint32_t finishCrc(PayloadPlace payload, std::uint32_t remainder) {
  const std::uint64_t n_main = payload.n_bytes / 16 * 16;
  std::uint32_t crc = remainder ^ crcMultiply(0xffffffffu, warpPower(n_main));
  for (std::uint64_t i = n_main; i < payload.n_bytes; ++i) {
    crc = crcByte(crc, payload.data[i]);
  }
  return ~crc;
}

/// Every block: adds its part; true for all threads of the block that comes last, which then has
/// the checksum. The state is as before afterwards, ready for the next payload.
__device__ __forceinline__ bool sumPayload(PayloadPlace payload,
                                           unsigned n_rounds,
                                           FrameState* state,
                                           std::uint32_t* crc) {
  __shared__ std::uint32_t crc_of_last;
  __shared__ bool is_last;
  addPartOfCrc(payload, n_rounds, &state->crc_remainder);
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
