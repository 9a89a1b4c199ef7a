#pragma once

// What both directions use. Device code only.

#include <cstdint>

#include "backends/cuda/byte_marks.cuh"
#include "coders/rle/codec.h"
#include "coders/rle/cuda/kernels.h"
#include "coders/rle/cuda/policy.h"

namespace fz::rle {

/// A block reads or writes one tile; a thread has four pieces of 16 bytes of it.
constexpr unsigned kThreads = kTileBytes / (16 * cuda::kRowsPerWarp);
constexpr unsigned kRows = kTileBytes / cuda::kRowBytes;
static_assert(kRows == cuda::kWarp);

template <class U>
constexpr unsigned kPieceValues = 16 / sizeof(U);

/// Bit i says whether value i of the piece is not zero.
template <class U>
__device__ __forceinline__ std::uint32_t valueMarks(uint4 x) {
  if constexpr (sizeof(U) == 1) {
    return cuda::byteMarks16(x);
  } else if constexpr (sizeof(U) == 2) {
    // The sum of 128 times a power of two, for every half that has a byte set.
    const auto halves = [](std::uint32_t word) {
      const std::uint32_t set = cuda::nonzeroBytes(word);
      return (set | set << 8) & 0x80008000u;
    };
    std::uint32_t sum = __dp4a(halves(x.x), 0x02000100u, 0u);
    sum = __dp4a(halves(x.y), 0x08000400u, sum);
    sum = __dp4a(halves(x.z), 0x20001000u, sum);
    return __dp4a(halves(x.w), 0x80004000u, sum) >> 7;
  } else {
    return (x.x != 0 ? 1u : 0u) | (x.y != 0 ? 2u : 0u) | (x.z != 0 ? 4u : 0u) |
           (x.w != 0 ? 8u : 0u);
  }
}

/// Value i of the piece; i is a constant after unrolling.
template <class U>
__device__ __forceinline__ std::uint32_t valueOf(uint4 x, unsigned i) {
  const std::uint32_t words[4] = {x.x, x.y, x.z, x.w};
  constexpr unsigned kPerWord = 4 / sizeof(U);
  return words[i / kPerWord] >> (i % kPerWord * 8 * sizeof(U)) &
         (0xFFFFFFFFu >> (32 - 8 * sizeof(U)));
}

/// Place of the highest set bit; marks != 0.
__device__ __forceinline__ std::uint32_t highestMark(std::uint32_t marks) {
  return 31u - static_cast<std::uint32_t>(__clz(static_cast<int>(marks)));
}

/// The largest i in [0, n) for which is_before(i) holds, which is true for 0 and, once false, false
/// for all that follow. By a full warp, in steps of 33.
template <class F>
__device__ __forceinline__ std::uint64_t lastWhere(std::uint64_t n, F is_before) {
  std::uint64_t lo = 0;
  std::uint64_t hi = n;
  while (hi - lo > 1) {
    const std::uint64_t width = hi - lo;
    const auto probe = [&](unsigned i) { return lo + width * (i + 1) / 33; };
    const std::uint32_t yes = __ballot_sync(cuda::kAllLanes, is_before(probe(cuda::laneId())));
    const auto n_yes = static_cast<unsigned>(__popc(yes));
    const std::uint64_t new_lo = n_yes == 0 ? lo : probe(n_yes - 1);
    hi = n_yes == cuda::kWarp ? hi : probe(n_yes);
    lo = new_lo;
  }
  return lo;
}

}  // namespace fz::rle
