#pragma once

// Single-pass sums over chains of predecessors (decoupled look-back) for words of any width, in
// whatever arithmetic `add` has; LookBack in lookback.cuh is for counts of up to 62 bits. A member
// of a chain publishes its own sum at once and its prefix when known. Members wait only for such
// with a lower block index, which the hardware starts first.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/device.cuh"
#include "shared/fp.h"

namespace fz::cuda {

/// What a member of a chain has published; all bytes 0 (nothing) before the kernel starts. The
/// value stands in 32-bit halves, each beside its own copy of the flag: a half is written and read
/// whole, and halves with the same flag belong together.
template <class Word>
struct ChainState {
  static_assert(sizeof(Word) == 4 || sizeof(Word) == 8);
  std::uint64_t half[sizeof(Word) / 4];
};

enum class ChainFlag : std::uint32_t { kNothing = 0, kSum = 1, kPrefix = 2 };

template <class Word>
struct ChainSeen {
  ChainFlag flag;
  Word value;
};

template <class Word>
__device__ __forceinline__ void publishChain(ChainState<Word>* state, ChainFlag flag, Word value) {
  const std::uint64_t tag = std::uint64_t{static_cast<std::uint32_t>(flag)} << 62;
  if constexpr (sizeof(Word) == 4) {
    const std::uint64_t word = tag | fp::bitCast<std::uint32_t>(value);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(state), "l"(word) : "memory");
  } else {
    const auto bits = fp::bitCast<std::uint64_t>(value);
    const std::uint64_t low = tag | (bits & 0xffffffffu);
    const std::uint64_t high = tag | (bits >> 32);
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(state), "l"(low), "l"(high)
                 : "memory");
  }
}

template <class Word>
__device__ __forceinline__ ChainSeen<Word> seeChain(const ChainState<Word>* state) {
  if constexpr (sizeof(Word) == 4) {
    std::uint64_t word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(state) : "memory");
    return {static_cast<ChainFlag>(word >> 62),
            fp::bitCast<Word>(static_cast<std::uint32_t>(word))};
  } else {
    std::uint64_t low;
    std::uint64_t high;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(low), "=l"(high)
                 : "l"(state)
                 : "memory");
    const bool same = (low >> 62) == (high >> 62);
    return {same ? static_cast<ChainFlag>(low >> 62) : ChainFlag::kNothing,
            fp::bitCast<Word>((high << 32) | (low & 0xffffffffu))};
  }
}

/// A full warp: the sum over the members [first, member) of a chain, for every lane. `member` has
/// published its own sum; first < member.
template <class Word, class Add>
__device__ __forceinline__ Word
warpChainSum(const ChainState<Word>* states, std::uint64_t first, std::uint64_t member, Add add) {
  Word sum = 0;
  auto last = static_cast<std::int64_t>(member) - 1;
  const auto see = [&](std::int64_t at) {
    return at >= static_cast<std::int64_t>(first) ? seeChain(states + at)
                                                  : ChainSeen<Word>{ChainFlag::kPrefix, 0};
  };
  while (true) {
    // One member per lane: larger looks take in more, but their traffic slows down all others.
    const std::int64_t at = last - static_cast<std::int64_t>(laneId());
    ChainSeen<Word> seen;
    unsigned prefixes;
    while (true) {  // until a prefix stands nearer than the first member that has nothing yet
      seen = see(at);
      const unsigned empty = __ballot_sync(kAllLanes, seen.flag == ChainFlag::kNothing);
      prefixes = __ballot_sync(kAllLanes, seen.flag == ChainFlag::kPrefix);
      // The lowest bit is the nearest lane.
      if (empty == 0 || (prefixes & (0u - prefixes)) - 1 < (empty & (0u - empty)) - 1) {
        break;
      }
    }
    const unsigned nearest =
        prefixes != 0 ? static_cast<unsigned>(__ffs(static_cast<int>(prefixes))) - 1 : kWarp - 1;
    Word part = laneId() <= nearest ? seen.value : Word{0};
#pragma unroll
    for (unsigned step = kWarp / 2; step > 0; step /= 2) {
      part = add(part, __shfl_xor_sync(kAllLanes, part, step));
    }
    sum = add(sum, part);
    if (prefixes != 0) {
      return sum;
    }
    last -= kWarp;
  }
}

}  // namespace fz::cuda
