#pragma once

// What stands where in the mask that is written. Device code only.

#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "transforms/mask/cuda/bricks.cuh"
#include "transforms/mask/cuda/values.cuh"

namespace fz::mask {

/// Patterns in the dictionary; none where there are too many.
__device__ __forceinline__ std::uint32_t patternsOf(const Findings& found) {
  return found.has_too_many != 0 ? 0 : static_cast<std::uint32_t>(found.n_keys);
}
/// Layers of a mask that has missing values.
__device__ __forceinline__ std::uint32_t layersOf(const Findings& found) {
  const std::uint32_t n = patternsOf(found);
  return 1 + (n < 2 ? 0 : bits::bitWidth(n - 1));
}
/// Whether there is something behind the first layer.
__device__ __forceinline__ bool hasOthers(const Findings& found) {
  return patternsOf(found) != 1;
}
__device__ __forceinline__ LayerForm formOf(const Findings& found,
                                            std::uint32_t layer,
                                            std::uint64_t n_ones,
                                            std::uint64_t n_values) {
  return n_ones == 0                                ? kAllZeros
         : n_ones == n_values                       ? kAllOnes
         : layer == 0 && found.has_own_chances != 0 ? kBricksOfChances
                                                    : kBricks;
}
/// Bytes of a layer in bricks before the ends of its groups.
__device__ __forceinline__ std::uint32_t frontBytes(const Grid& grid, LayerForm form) {
  return form == kBricksOfChances ? 1 + contextsOf(grid) : 1;
}
/// Bytes of the mask before its layers.
template <class T>
__device__ __forceinline__ std::uint64_t headBytes(const Findings& found) {
  return 4 + std::uint64_t{patternsOf(found)} * sizeof(T);
}

template <class U>
__device__ void storeBytes(std::uint8_t* out, U value, std::uint32_t n_bytes) {
  for (std::uint32_t i = 0; i < n_bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// All threads of a block: patterns, and the front of the first layer; the mask has room for them.
template <class T>
__device__ __forceinline__ void writeHead(const EncodeArgs& args,
                                          const Field& field,
                                          const Grid& grid,
                                          std::uint64_t n_ones) {
  const Findings& found = *args.found;
  std::uint8_t* const out = args.mask.data;
  const LayerForm form = formOf(found, 0, n_ones, field.n_values);
  if (threadIdx.x == 0) {
    storeBytes(out, patternsOf(found), 4);
    out[headBytes<T>(found)] = form;
  }
  for (std::uint64_t i = threadIdx.x; i < patternsOf(found); i += blockDim.x) {
    storeBytes(out + 4 + i * sizeof(T), found.patterns[i], sizeof(T));
  }
  for (std::uint32_t i = threadIdx.x; form == kBricksOfChances && i < contextsOf(grid);
       i += blockDim.x) {
    out[headBytes<T>(found) + 1 + i] = found.chances.of_one[i];
  }
}

/// The record of a group, and what a thread knows of its own brick.
struct GroupRecord {
  std::uint32_t n;        ///< bricks
  std::uint32_t n_bytes;  ///< of the record
  std::uint32_t n_coded;
  BrickKind kind;
  std::uint32_t brick_bytes;
  std::uint32_t coded_before;
  std::uint32_t bytes_before;

  bool is_all_ones;

  /// All threads; `bytes` are those of the own brick, when it has some.
  __device__ __forceinline__ void write(std::uint8_t* to, const std::uint8_t* bytes) const {
    if (n_bytes == 0) {
      return;
    }
    if (is_all_ones) {
      if (threadIdx.x == 0) {
        to[0] = kFourOnes;
      }
      return;
    }
    unsigned four = kind;
#pragma unroll
    for (unsigned k = 1; k < 4; ++k) {
      four |= __shfl_down_sync(cuda::kAllLanes, static_cast<unsigned>(kind), k) << (2 * k);
    }
    if (threadIdx.x < n && threadIdx.x % 4 == 0) {
      to[threadIdx.x / 4] = static_cast<std::uint8_t>(four);
    }
    std::uint8_t* const sizes = to + kindBytes(n);
    if (kind == kCoded) {
      sizes[coded_before] = static_cast<std::uint8_t>(brick_bytes / kUnitBytes);
    }
    std::uint8_t* const own = sizes + n_coded + bytes_before;
    copyBrick(bytes, brick_bytes, own);
  }
};

/// All threads of a block, a brick each for the first n: what the record of their group is like.
template <unsigned kThreads>
__device__ __forceinline__ GroupRecord
planRecord(std::uint32_t n,
           BrickKind kind,
           std::uint32_t brick_bytes,
           std::uint32_t (&warp_sums)[2][kThreads / cuda::kWarp]) {
  static_assert(kThreads >= kGroupBricks);
  const bool is_there = threadIdx.x < n;
  GroupRecord record{};
  record.n = n;
  record.kind = is_there ? kind : kNone;
  record.brick_bytes = is_there ? brick_bytes : 0;
  const bool is_zero = __syncthreads_and(record.kind == kNone ? 1 : 0) != 0;
  record.is_all_ones = __syncthreads_and(!is_there || kind == kAll ? 1 : 0) != 0;
  std::uint32_t n_of_bricks = 0;
  record.coded_before = cuda::blockExclusiveSum<kThreads>(record.kind == kCoded ? 1u : 0u,
                                                          warp_sums[0], &record.n_coded);
  record.bytes_before =
      cuda::blockExclusiveSum<kThreads>(record.brick_bytes, warp_sums[1], &n_of_bricks);
  record.n_bytes = is_zero              ? 0
                   : record.is_all_ones ? 1
                                        : kindBytes(n) + record.n_coded + n_of_bricks;
  return record;
}

}  // namespace fz::mask
