#pragma once

// CRC-32 by warps and blocks: tables, and the steps that kernels of frames share. The bytes go
// through the units that multiply matrices of bits, which are there for nothing else: tables in
// shared memory took longer than reading the bytes. Device code only.

#include <cstdint>

#include "backends/cuda/crc32.cuh"
#include "backends/cuda/device.cuh"

namespace fz::cuda {

inline constexpr unsigned kCrcThreads = 256;
inline constexpr unsigned kCrcPieceBytes = 16;  // what a thread takes at a time
inline constexpr unsigned kCrcSteps = 2;        // pieces of a thread that are summed up together
inline constexpr unsigned kCrcStepBytes = kCrcThreads * kCrcPieceBytes;
inline constexpr unsigned kCrcRoundBytes = kCrcSteps * kCrcStepBytes;

namespace {

constexpr unsigned kCrcWarps = kCrcThreads / kWarp;
__device__ const CrcMatrices<kCrcSteps> kMatrices = makeCrcMatrices<kCrcSteps>(kCrcStepBytes);
__device__ const CrcPlaces<kCrcWarps> kPlaces = makeCrcPlaces<kCrcWarps>();
__device__ const CrcMoves kMoves = makeCrcMoves();

/// For a warp whose lane i has x^i: the lane's part of a remainder that is moved as `image` tells.
__device__ __forceinline__ std::uint32_t movedPart(std::uint32_t r, std::uint32_t image) {
  return (r >> (31 - laneId()) & 1u) != 0 ? image : 0u;
}

/// A distance (below 2^48 bytes) for a full warp: all that must be read is asked for at once.
class CrcDistance {
 public:
  __device__ __forceinline__ explicit CrcDistance(std::uint64_t n_bytes) : n_bytes_(n_bytes) {
#pragma unroll
    for (unsigned k = 0; k < CrcMoves::kDigits; ++k) {
      image_[k] = digit(k) != 0 ? kMoves.image[k][digit(k)][laneId()] : 0u;
    }
  }
  /// r moved on, for every lane.
  __device__ __forceinline__ std::uint32_t moved(std::uint32_t r) const {
#pragma unroll
    for (unsigned k = 0; k < CrcMoves::kDigits; ++k) {
      if (digit(k) != 0) {
        r = __reduce_xor_sync(kAllLanes, movedPart(r, image_[k]));
      }
    }
    return r;
  }

 private:
  __device__ __forceinline__ unsigned digit(unsigned k) const {
    return static_cast<unsigned>(n_bytes_ >> (4 * k)) & 15u;
  }

  std::uint64_t n_bytes_;
  std::uint32_t image_[CrcMoves::kDigits];
};

/// sums += the number of bits that rows of `matrix` and columns of `words` have in common.
__device__ __forceinline__ void addCommonBits(int (&sums)[4],
                                              const uint4& matrix,
                                              std::uint32_t word0,
                                              std::uint32_t word1) {
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(matrix.x), "r"(matrix.y), "r"(matrix.z), "r"(matrix.w), "r"(word0), "r"(word1));
}

/// What a block of kCrcThreads needs to sum up bytes.
class CrcAgent {
 public:
  /// Reads the tables; parts is shared memory of kCrcWarps words.
  __device__ __forceinline__ explicit CrcAgent(std::uint32_t* parts)
      : parts_(parts), round_image_(kMoves.image[3][kCrcRoundBytes >> 12][laneId()]) {
    static_assert(kCrcRoundBytes % 4096 == 0 && kCrcRoundBytes >> 12 < 16);
#pragma unroll
    for (unsigned i = 0; i < kCrcSteps * 4; ++i) {
      matrix_[i / 4][i / 2 % 2][i % 2] =
          *reinterpret_cast<const uint4*>(kMatrices.word[i / 4][i / 2 % 2][i % 2][laneId()]);
    }
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
      const uint4 four = *reinterpret_cast<const uint4*>(kPlaces.part[warpId()][laneId()] + 4 * i);
      place_[i][0] = four.x;
      place_[i][1] = four.y;
      place_[i][2] = four.z;
      place_[i][3] = four.w;
    }
  }

  /// The remainder of the bytes from `begin` to `end`, whole pieces, for the first warp; piece(at)
  /// gives the piece at byte `at`. All threads; a barrier must come before the next call.
  template <class Piece>
  __device__ __forceinline__ std::uint32_t sum(std::uint64_t begin,
                                               std::uint64_t end,
                                               Piece piece) const {
    // Leading zeros do not change a remainder, so the bytes are aligned at their end: thread t of a
    // round always stands the same number of bytes before it.
    const std::uint64_t n_rounds = (end - begin + kCrcRoundBytes - 1) / kCrcRoundBytes;
    std::int64_t at = static_cast<std::int64_t>(end - n_rounds * kCrcRoundBytes) +
                      kCrcPieceBytes * static_cast<std::int64_t>(threadIdx.x);
    const auto readRound = [&](uint4(&v)[kCrcSteps]) {
#pragma unroll
      for (unsigned s = 0; s < kCrcSteps; ++s) {
        const std::int64_t from = at + s * kCrcStepBytes;
        v[s] = make_uint4(0, 0, 0, 0);
        if (from >= static_cast<std::int64_t>(begin)) {
          v[s] = piece(static_cast<std::uint64_t>(from));
        }
      }
      at += kCrcRoundBytes;
    };
    std::uint32_t r = 0;
    uint4 next[kCrcSteps];
    readRound(next);
    for (std::uint64_t round = 1; round <= n_rounds; ++round) {
      uint4 v[kCrcSteps];
#pragma unroll
      for (unsigned s = 0; s < kCrcSteps; ++s) {
        v[s] = next[s];
      }
      if (round < n_rounds) {
        readRound(next);
      }
      r = nextRemainder(r, v);
    }
    if (laneId() == 0) {
      parts_[warpId()] = r;
    }
    __syncthreads();
    return threadIdx.x < kWarp
               ? __reduce_xor_sync(kAllLanes, laneId() < kCrcWarps ? parts_[laneId()] : 0u)
               : 0u;
  }

 private:
  /// A round into a warp's remainder.
  __device__ __forceinline__ std::uint32_t nextRemainder(std::uint32_t r,
                                                         const uint4 (&v)[kCrcSteps]) const {
    std::uint32_t own = movedPart(r, round_image_);
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      int sums[4] = {};
#pragma unroll
      for (unsigned s = 0; s < kCrcSteps; ++s) {
        addCommonBits(sums, matrix_[s][0][half], v[s].x, v[s].y);
        addCommonBits(sums, matrix_[s][1][half], v[s].z, v[s].w);
      }
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        own ^= (sums[i] & 1) != 0 ? place_[half][i] : 0u;
      }
    }
    return __reduce_xor_sync(kAllLanes, own);
  }

  std::uint32_t* parts_;
  std::uint32_t round_image_;
  uint4 matrix_[kCrcSteps][2][2];
  std::uint32_t place_[2][4];
};

/// The checksum of a message whose whole pieces leave `remainder` (with the start value in their
/// first four bytes) and whose last bytes stand at `rest`, by a full warp, for every lane.
__device__ __forceinline__ std::uint32_t finishedCrc(std::uint32_t remainder,
                                                     const std::uint8_t* rest,
                                                     unsigned n_rest) {
  if (n_rest == 0) {
    return ~remainder;
  }
  const unsigned lane = laneId();
  const std::uint32_t moved = movedPart(remainder, kMoves.image[0][n_rest][lane]);
  const std::uint32_t image[4] = {kMoves.image[1][1][lane], kMoves.image[0][12][lane],
                                  kMoves.image[0][8][lane], kMoves.image[0][4][lane]};
  // The last bytes as a piece that begins with zeros.
  const unsigned n_zeros = kCrcPieceBytes - n_rest;
  std::uint32_t word = 0;
  if (lane >= n_zeros && lane < kCrcPieceBytes) {
    word = static_cast<std::uint32_t>(rest[lane - n_zeros]) << (8 * (lane & 3u));
  }
  word |= __shfl_xor_sync(kAllLanes, word, 1);
  word |= __shfl_xor_sync(kAllLanes, word, 2);
  std::uint32_t own = moved;
#pragma unroll
  for (unsigned w = 0; w < 4; ++w) {
    own ^= movedPart(__shfl_sync(kAllLanes, word, static_cast<int>(4 * w)), image[w]);
  }
  return ~__reduce_xor_sync(kAllLanes, own);
}

}  // namespace
}  // namespace fz::cuda
