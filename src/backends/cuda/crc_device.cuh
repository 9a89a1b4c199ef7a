#pragma once

// CRC-32 by warps and blocks: tables, and the steps that kernels of frames share. Nothing here
// multiplies bit after bit where others wait for it: at the end of a small frame that would take
// longer than its bytes. Device code only.

#include <cstdint>

#include "backends/cuda/crc32.cuh"
#include "backends/cuda/device.cuh"

namespace fz::cuda {

inline constexpr unsigned kCrcThreads = 256;
inline constexpr unsigned kCrcPieceBytes = 16;  // what a thread takes at a time
inline constexpr unsigned kCrcRoundBytes = kCrcThreads * kCrcPieceBytes;

namespace {

/// Moves on by a round, and by a word.
struct alignas(16) StepTables {
  CrcTables round;
  CrcTables word;
};
__device__ const StepTables kStepTables = {makeCrcTables(kCrcRoundBytes), makeCrcTables(4)};
__device__ const CrcMoves kMoves = makeCrcMoves();
__device__ const CrcPlaces<kCrcThreads> kPlaces = makeCrcPlaces<kCrcThreads>(kCrcPieceBytes);

__device__ __forceinline__ std::uint32_t lookUp(const CrcTables& tables, std::uint32_t w) {
  return tables.table[0][w & 0xff] ^ tables.table[1][(w >> 8) & 0xff] ^
         tables.table[2][(w >> 16) & 0xff] ^ tables.table[3][w >> 24];
}

/// A piece into a remainder of 0.
__device__ __forceinline__ std::uint32_t pieceCrc(const CrcTables& word_tables, const uint4& v) {
  std::uint32_t r = lookUp(word_tables, v.x) ^ v.y;
  r = lookUp(word_tables, r) ^ v.z;
  r = lookUp(word_tables, r) ^ v.w;
  return lookUp(word_tables, r);
}

/// r moved on by n_bytes (below 2^48), by a full warp, for every lane.
__device__ __forceinline__ std::uint32_t warpMoved(std::uint32_t r, std::uint64_t n_bytes) {
  const unsigned lane = laneId();
#pragma unroll
  for (unsigned k = 0; k < CrcMoves::kDigits; ++k) {
    const unsigned digit = static_cast<unsigned>(n_bytes >> (4 * k)) & 15u;
    if (digit != 0) {
      const std::uint32_t image = kMoves.image[k][digit][lane];
      r = __reduce_xor_sync(kAllLanes, (r >> (31 - lane) & 1u) != 0 ? image : 0u);
    }
  }
  return r;
}

/// What a block of kCrcThreads needs in shared memory to sum up bytes.
struct CrcDesk {
  StepTables tables;
  std::uint32_t parts[kCrcThreads / kWarp];

  /// All threads; a barrier must follow.
  __device__ __forceinline__ void open() {
    constexpr unsigned kPieces = sizeof(StepTables) / sizeof(uint4);
#pragma unroll
    for (unsigned i = 0; i < kPieces; i += kCrcThreads) {
      reinterpret_cast<uint4*>(&tables)[i + threadIdx.x] =
          reinterpret_cast<const uint4*>(&kStepTables)[i + threadIdx.x];
    }
  }

  /// The remainder of the bytes from `begin` to `end`, whole pieces, for the first warp; piece(at)
  /// gives the piece at byte `at`. All threads, after a barrier; another must come before the next
  /// call.
  template <class Piece>
  __device__ __forceinline__ std::uint32_t sum(std::uint64_t begin,
                                               std::uint64_t end,
                                               Piece piece) {
    const uint4 place = *reinterpret_cast<const uint4*>(kPlaces.part[threadIdx.x]);
    // Leading zeros do not change a remainder, so the bytes are aligned at their end: thread t of a
    // round always stands the same number of bytes before it.
    const std::uint64_t rounds = (end - begin + kCrcRoundBytes - 1) / kCrcRoundBytes;
    const std::int64_t first = static_cast<std::int64_t>(end - rounds * kCrcRoundBytes) +
                               kCrcPieceBytes * static_cast<std::int64_t>(threadIdx.x);
    uint4 r = make_uint4(0, 0, 0, 0);
#pragma unroll 4
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::int64_t at = first + static_cast<std::int64_t>(round * kCrcRoundBytes);
      uint4 v = make_uint4(0, 0, 0, 0);
      if (at >= static_cast<std::int64_t>(begin)) {
        v = piece(static_cast<std::uint64_t>(at));
      }
      if (round != 0) {
        r.x = lookUp(tables.round, r.x);
        r.y = lookUp(tables.round, r.y);
        r.z = lookUp(tables.round, r.z);
        r.w = lookUp(tables.round, r.w);
      }
      r.x ^= v.x;
      r.y ^= v.y;
      r.z ^= v.z;
      r.w ^= v.w;
    }
    // A register still has its own last word in it, as a piece that was just read has.
    const std::uint32_t own = moved(pieceCrc(tables.word, r), place);
    const std::uint32_t of_warp = __reduce_xor_sync(kAllLanes, own);
    if (laneId() == 0) {
      parts[warpId()] = of_warp;
    }
    __syncthreads();
    const std::uint32_t sum = threadIdx.x < kCrcThreads / kWarp ? parts[threadIdx.x] : 0;
    return threadIdx.x < kWarp ? __reduce_xor_sync(kAllLanes, sum) : 0u;
  }

 private:
  /// r times the power whose four parts are given.
  static __device__ __forceinline__ std::uint32_t moved(std::uint32_t r, uint4 place) {
    std::uint32_t product = 0;
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      product ^= (r >> (31 - i) & 1u) != 0 ? place.x : 0u;
      product ^= (r >> (23 - i) & 1u) != 0 ? place.y : 0u;
      product ^= (r >> (15 - i) & 1u) != 0 ? place.z : 0u;
      product ^= (r >> (7 - i) & 1u) != 0 ? place.w : 0u;
      place.x = crcShift(place.x);
      place.y = crcShift(place.y);
      place.z = crcShift(place.z);
      place.w = crcShift(place.w);
    }
    return product;
  }
};

/// The checksum of a message whose whole pieces leave `remainder` (with the start value in their
/// first four bytes) and whose last bytes stand at `rest`, by a full warp, for every lane.
__device__ __forceinline__ std::uint32_t finishedCrc(std::uint32_t remainder,
                                                     const std::uint8_t* rest,
                                                     unsigned n_rest) {
  if (n_rest == 0) {
    return ~remainder;
  }
  // The last bytes as a piece that begins with zeros.
  const unsigned lane = laneId();
  const unsigned n_zeros = kCrcPieceBytes - n_rest;
  std::uint32_t word = 0;
  if (lane >= n_zeros && lane < kCrcPieceBytes) {
    word = static_cast<std::uint32_t>(rest[lane - n_zeros]) << (8 * (lane & 3u));
  }
  word |= __shfl_xor_sync(kAllLanes, word, 1);
  word |= __shfl_xor_sync(kAllLanes, word, 2);
  const uint4 piece = make_uint4(__shfl_sync(kAllLanes, word, 0), __shfl_sync(kAllLanes, word, 4),
                                 __shfl_sync(kAllLanes, word, 8), __shfl_sync(kAllLanes, word, 12));
  return ~(warpMoved(remainder, n_rest) ^ pieceCrc(kStepTables.word, piece));
}

}  // namespace
}  // namespace fz::cuda
