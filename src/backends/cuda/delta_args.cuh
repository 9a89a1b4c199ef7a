#pragma once

// What the kernels of delta_encode.cu, delta_decode.cu and delta_float.cu share.

#include "backends/cuda/delta_cuda.h"
#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/packed.cuh"

namespace fz::delta {

inline constexpr unsigned kThreads = 256;
inline constexpr unsigned kWarps = kThreads / cuda::kWarp;
inline constexpr unsigned kRows = 4;  // per warp: loads under way at a time
/// A tile has this many bytes at most, whatever the type; a power of two of values.
inline constexpr unsigned kTileBytes = kWarps * kRows * cuda::kWarp * 16;
/// Decoding: place of the chain in the working memory.
inline constexpr std::size_t kScratchStates = 64;
inline constexpr std::uint64_t kOneBlock = std::uint64_t{1} << 63;

inline std::uint64_t blockLength(std::uint64_t block) {
  return block == 0 ? kOneBlock : block;
}

/// Size and place of the values of a run.
struct CudaValues {
  const void* in;
  void* out;
  DeviceSize size;
  std::uint64_t capacity_bytes;
  std::uint64_t expected_bytes;
  StageRecord* record;
  bool publishes;  ///< whether the size of the output is the kernel's to write
};

inline CudaValues cudaValues(const CudaBlocks& run) {
  return {run.input.data,     run.output.data, run.input.size,        run.output.capacity_bytes,
          run.expected_bytes, run.record,      !run.output.size_known};
}

/// How many values there are. The first thread of the grid writes down what follows from that.
template <class U>
__device__ __forceinline__ std::uint64_t valueCount(const CudaValues& values) {
  const std::uint64_t n_bytes = cuda::load(values.size);
  const bool is_right =
      n_bytes % sizeof(U) == 0 && (values.expected_bytes == 0 || values.expected_bytes == n_bytes);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (values.publishes) {
      cuda::publishSize(values.record, 0, n_bytes, values.capacity_bytes);
    }
    if (!is_right) {
      cuda::recordError(values.record, DeviceError::kCorrupt, n_bytes);
    }
  }
  return (n_bytes < values.capacity_bytes ? n_bytes : values.capacity_bytes) / sizeof(U);
}

/// Codes and differences for a whole word of packed values; toCode and fromCode of shared/delta.h.
template <Code kCode, class P>
__device__ __forceinline__ typename P::Word toCodes(typename P::Word differences) {
  if constexpr (kCode == Code::kNegabinary) {
    constexpr auto kMask = bits::kNegabinaryMask<typename P::Word>;  // the same for every width
    return P::add(differences, kMask) ^ kMask;
  } else {
    return differences;
  }
}
template <Code kCode, class P>
__device__ __forceinline__ typename P::Word fromCodes(typename P::Word codes) {
  if constexpr (kCode == Code::kNegabinary) {
    constexpr auto kMask = bits::kNegabinaryMask<typename P::Word>;
    return P::sub(codes ^ kMask, kMask);
  } else {
    return codes;
  }
}

}  // namespace fz::delta
