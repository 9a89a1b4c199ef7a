#pragma once

// Sums along x of the neighbouring codes that a lane has, two of 16 bits in a word, and what the
// decoders of grids keep of them in shared memory. Differences of sums are the codes again, so
// nothing is lost where 16 bits are too few. Device code only; must compile with NVRTC.

#include "backends/cuda/device.cuh"

namespace fz::lorenzo_quant::device {

inline constexpr unsigned kRunValues = 64;
inline constexpr unsigned kRunWords = kRunValues / 2;
inline constexpr unsigned kRunPieces = kRunWords / 4;

/// All bits of the halves whose lowest bit is set.
__device__ __forceinline__ std::uint32_t halvesOf(std::uint32_t bits) {
  return (bits & 0x00010001u) * 0xFFFFu;
}

/// Whether all sums of kEdge numbers fit 16 bits, whatever their order.
template <unsigned kEdge, unsigned kWords>
__device__ __forceinline__ bool codesFit(bool zigzag, const std::uint32_t (&words)[kWords]) {
  std::uint32_t reach = 0;  // the bits of all; a negative number counts with its bits turned over
  if (zigzag) {
#pragma unroll
    for (const std::uint32_t codes : words) {
      reach |= codes;
    }
    reach = reach >> 1 & 0x7FFF7FFFu;
  } else {
#pragma unroll
    for (const std::uint32_t codes : words) {
      reach |= codes ^ halvesOf(codes >> 15);
    }
  }
  // kEdge numbers below 2^15 / kEdge, or as many from its negative on.
  constexpr std::uint32_t kLimit = 0x8000u / kEdge;
  constexpr std::uint32_t kAbove = 0xFFFFu & ~(kLimit - 1u);
  return (reach & (kAbove << 16 | kAbove)) == 0;
}

/// Signed numbers of 16 bits from two codes.
template <bool kZigzag>
__device__ __forceinline__ std::uint32_t numbersOf(std::uint32_t codes) {
  return kZigzag ? (codes >> 1 & 0x7FFF7FFFu) ^ halvesOf(codes) : codes;
}

/// Turns a run of codes, two in a word, into sums along x modulo 2^16, which begin with `left` and
/// anew every kEdge values.
template <unsigned kEdge, bool kZigzag, unsigned kWords>
__device__ __forceinline__ void sumCodes(std::uint32_t left, std::uint32_t (&words)[kWords]) {
#pragma unroll
  for (unsigned i = 0; i < kWords; ++i) {
    // Only the low halves of `first` and `second` count.
    const std::uint32_t two = numbersOf<kZigzag>(words[i]);
    const std::uint32_t first = i != 0 && 2 * i % kEdge == 0 ? two : left + two;
    const std::uint32_t second = first + (two >> 16);
    words[i] = __byte_perm(first, second, 0x5410);
    left = second;
  }
}

/// Turns a run of codes into sums that begin anew every kEdge values, modulo 2^16.
template <unsigned kEdge, unsigned kWords>
__device__ __forceinline__ void sumRun(bool zigzag, std::uint32_t (&words)[kWords]) {
  static_assert(2 * kWords % kEdge == 0);
  if (zigzag) {
    sumCodes<kEdge, true>(0, words);
  } else {
    sumCodes<kEdge, false>(0, words);
  }
}

/// Inclusive sum over groups of kLanes lanes.
template <unsigned kLanes, class Sum>
__device__ __forceinline__ Sum sumOfLanes(Sum own) {
#pragma unroll
  for (unsigned step = 1; step < kLanes; step *= 2) {
    const Sum other = __shfl_up_sync(cuda::kAllLanes, own, step, kLanes);
    own += cuda::laneId() % kLanes >= step ? other : Sum{0};
  }
  return own;
}

/// Turns the runs of kLanes neighbouring lanes into sums that go on from one to the next, modulo
/// 2^16. All lanes.
template <unsigned kLanes, unsigned kWords>
__device__ __forceinline__ void sumRunOfRow(bool zigzag, std::uint32_t (&words)[kWords]) {
  std::uint32_t own = 0;  // only the low half counts
#pragma unroll
  for (std::uint32_t& word : words) {
    word = zigzag ? numbersOf<true>(word) : word;
    own += word + (word >> 16);
  }
  sumCodes<2 * kWords, false>(sumOfLanes<kLanes>(own) - own, words);
}

/// A block's runs in shared memory. Pieces of 16 bytes are turned in a way that lanes with
/// neighbouring runs, and lanes in one run, do not meet in a bank.
struct RunSums {
  uint4* pieces;

  __device__ __forceinline__ void put(unsigned run, const std::uint32_t (&words)[kRunWords]) const {
#pragma unroll
    for (unsigned c = 0; c < kRunPieces; ++c) {
      pieces[run * kRunPieces + (c ^ (run % kRunPieces))] =
          make_uint4(words[4 * c], words[4 * c + 1], words[4 * c + 2], words[4 * c + 3]);
    }
  }
  /// Where value i of a row of kRowRuns runs stands, counted in values.
  template <unsigned kRowRuns>
  static __device__ __forceinline__ unsigned placeOf(unsigned row, unsigned i) {
    const unsigned run = row * kRowRuns + i / kRunValues;
    return row * (kRowRuns * kRunValues) + (i ^ (run % kRunPieces * 8));
  }
  __device__ __forceinline__ std::int16_t at(unsigned place) const {
    return reinterpret_cast<const std::int16_t*>(pieces)[place];
  }
  /// Two neighbours; `place` is even.
  __device__ __forceinline__ std::uint32_t pairAt(unsigned place) const {
    return reinterpret_cast<const std::uint32_t*>(pieces)[place / 2];
  }
};

}  // namespace fz::lorenzo_quant::device
