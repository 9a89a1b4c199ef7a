#pragma once

// BitplaneRZE read run by run: 64 symbols are one word of every plane, so a lane decodes them
// without the others, out of any chunk. Device code only; must compile with NVRTC.

#include "backends/cuda/bit_transpose.cuh"
#include "backends/cuda/group/runs.cuh"
#include "fused/bitplane_rze/codec.h"
#include "fused/bitplane_rze/cuda/kernels.h"

namespace fz::bitplane_rze::device {

/// See runs.cuh.
struct RunReader {
  static constexpr unsigned kRunBytes = kChunkBytes / kPlaneWords;
  static constexpr unsigned kFlagPlanes = 4;  // whose flags stand in one word

  StageRecord* record;
  const std::uint8_t* archive;
  Layout layout;
  std::uint64_t n_stream_words;

  __device__ __forceinline__ void read(std::uint64_t run,
                                       bool exists,
                                       std::uint32_t (&words)[kPlanes]) const {
    const std::uint64_t chunk = run / kPlaneWords;
    const unsigned place = static_cast<unsigned>(run) % kPlaneWords;
    std::uint32_t flags[kFlagWords] = {};
    std::uint32_t start = 0;
    if (exists) {
      const auto* from = reinterpret_cast<const uint4*>(archive + layout.flagsAt(chunk));
      start = __ldg(reinterpret_cast<const std::uint32_t*>(archive + layout.startAt(chunk)));
#pragma unroll
      for (unsigned i = 0; i < kFlagWords / 4; ++i) {
        const uint4 four = __ldg(from + i);
        flags[4 * i] = four.x;
        flags[4 * i + 1] = four.y;
        flags[4 * i + 2] = four.z;
        flags[4 * i + 3] = four.w;
      }
    }
    if (std::uint64_t{start} + storedWords(flags) > n_stream_words) {
      cuda::recordError(record, DeviceError::kCorrupt, chunk);
#pragma unroll
      for (std::uint32_t& word : flags) {
        word = 0;
      }
    }
    gather(flags, start, place, words);
    // Planes of the high bytes of both symbols.
    const std::uint32_t high = flags[2] | flags[3] | flags[6] | flags[7];
    if (__any_sync(cuda::kAllLanes, high != 0)) {
      cuda::fromPlanes<32>(words);
    } else {
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) {  // so that the compiler knows
        words[8 + k] = 0;
        words[24 + k] = 0;
      }
      cuda::fromPlanes<32>(words);
    }
  }

 private:
  /// Word `place` of every plane.
  __device__ __forceinline__ void gather(const std::uint32_t (&flags)[kFlagWords],
                                         std::uint32_t start,
                                         unsigned place,
                                         std::uint32_t (&words)[kPlanes]) const {
    const auto* stream = reinterpret_cast<const std::uint32_t*>(archive + layout.stream_at) +
                         start + place % kGroupWords;
    const unsigned group = place / kGroupWords;
    std::uint32_t rank = 0;
#pragma unroll
    for (unsigned i = 0; i < kFlagWords; ++i) {
#pragma unroll
      for (unsigned k = 0; k < kFlagPlanes; ++k) {
        words[i * kFlagPlanes + k] = 0;
      }
      if (__any_sync(cuda::kAllLanes, flags[i] != 0)) {  // most planes of most data are empty
#pragma unroll
        for (unsigned k = 0; k < kFlagPlanes; ++k) {
          const std::uint32_t own = 1u << (8 * k + group);
          const std::uint32_t at = rank + __popc(flags[i] & (own - 1u));
          if ((flags[i] & own) != 0) {
            words[i * kFlagPlanes + k] = __ldg(stream + at * kGroupWords);
          }
        }
        rank += __popc(flags[i]);
      }
    }
  }
};

}  // namespace fz::bitplane_rze::device
