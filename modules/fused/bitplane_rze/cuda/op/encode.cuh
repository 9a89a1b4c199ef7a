#pragma once

// From the words of a chunk to the groups of its planes that are stored. A lane has 32 words, and
// after the transpose a word of every plane. Device code only; must compile with NVRTC.

#include "backends/cuda/bit_transpose.cuh"
#include "backends/cuda/device.cuh"
#include "fused/bitplane_rze/codec.h"

namespace fz::bitplane_rze::device {

/// A word of a stream to group `at` behind `to`, where a bit of `is_set` is set. As compilers write
/// it, this is a branch around three times as many instructions.
__device__ __forceinline__ void storeGroupWord(std::uint64_t to,
                                               std::uint32_t at,
                                               std::uint32_t is_set,
                                               std::uint32_t word) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      ".reg .b64 address;\n"
      "setp.ne.u32 p, %2, 0;\n"
      "mad.wide.u32 address, %1, %4, %0;\n"
      "@p st.global.cs.b32 [address], %3;\n"
      "}\n" ::"l"(to),
      "r"(at), "r"(is_set), "r"(word), "n"(4 * kGroupWords)
      : "memory");
}

/// The groups of a chunk that are stored, known to all lanes: a word for every four planes, in
/// which bit 4 q + k says whether group q of plane k of the four is.
struct StoredGroups {
  static constexpr unsigned kFours = kPlanes / 4;
  static constexpr std::uint32_t kAllGroups = 0x11111111u;  // of the first plane of four

  std::uint32_t own;    ///< bit p: this lane's group of plane p is stored
  std::uint32_t flags;  ///< of plane p for lane p: bit q says whether group q is stored
  std::uint32_t n_groups;
  std::uint32_t fours[kFours];

  /// `set`: bit p says whether this lane's word of plane p has a bit set.
  explicit __device__ __forceinline__ StoredGroups(std::uint32_t set) {
    static_assert(kGroupWords == 4);
    set |= __shfl_xor_sync(cuda::kAllLanes, set, 1);
    set |= __shfl_xor_sync(cuda::kAllLanes, set, 2);
    own = set;
    set >>= cuda::laneId() % 4;
    std::uint32_t bits = 0;
    n_groups = 0;
#pragma unroll
    for (unsigned i = 0; i < kFours; ++i) {
      const std::uint32_t four = __ballot_sync(cuda::kAllLanes, (set & 1u << 4 * i) != 0);
      bits = cuda::laneId() / 4 == i ? four : bits;
      n_groups += __popc(four);
      fours[i] = four;
    }
    bits = bits >> cuda::laneId() % 4 & kAllGroups;  // to be drawn together
    bits = (bits | bits >> 3) & 0x03030303u;
    bits = (bits | bits >> 6) & 0x000F000Fu;
    flags = (bits | bits >> 12) & 0xFFu;
  }
  /// This lane's words to where the chunk's stream begins.
  __device__ __forceinline__ void store(const std::uint32_t (&planes)[kPlanes],
                                        std::uint32_t* stream) const {
    const std::uint64_t to = __cvta_generic_to_global(stream + cuda::laneId() % kGroupWords);
    const std::uint32_t before = kAllGroups & ((1u << cuda::laneId() / 4 * 4) - 1u);
    std::uint32_t rank = 0;
#pragma unroll
    for (unsigned i = 0; i < kFours; ++i) {
      if (fours[i] != 0) {  // most planes of most data are empty
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
          const std::uint32_t planes_before = kAllGroups * ((1u << k) - 1u);
          const std::uint32_t at = rank + __popc(fours[i] & (before << k | planes_before));
          storeGroupWord(to, at, own & 1u << (4 * i + k), planes[4 * i + k]);
        }
        rank += __popc(fours[i]);
      }
    }
  }
};

/// cuda::toPlanes<32> of words whose bytes 1 and 3 are 0, as are the planes that are not set here.
__device__ __forceinline__ void evenBytesToPlanes(std::uint32_t (&a)[kPlanes]) {
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) {
    const std::uint32_t x = __byte_perm(a[k], a[k + 8], 0x6240);
    const std::uint32_t y = __byte_perm(a[k + 16], a[k + 24], 0x6240);
    a[k] = __byte_perm(x, y, 0x5410);
    a[k + 16] = __byte_perm(x, y, 0x7632);
  }
  cuda::swapInsideBytes<8>(a);
  cuda::swapSquares<24, 4, 16>(a, 0x0F0F0F0Fu);
  cuda::swapSquares<24, 2, 16>(a, 0x33333333u);
  cuda::swapSquares<24, 1, 16>(a, 0x55555555u);
}

/// From a lane's words to its words of the planes. `set`: the bits that any word of the warp has;
/// planes without one are left undefined.
__device__ __forceinline__ void wordsToPlanes(std::uint32_t set, std::uint32_t (&words)[kPlanes]) {
  if ((set & 0xFF00FF00u) == 0) {  // symbols below 256, as most are
    evenBytesToPlanes(words);
  } else {
    cuda::toPlanes<32>(words);
  }
}

}  // namespace fz::bitplane_rze::device
