#pragma once

// Register kernels: one thread holds a group of 32 values of a block. A warp brings 1024 values
// through its own shared memory; 16-byte pieces are swizzled so that both the coalesced side and
// the side of the threads are free of bank conflicts.

#include "coders/adaptive_bitpack/adaptive_bitpack_device.cuh"

namespace fz::adaptive_bitpack {

/// 16-byte pieces of a group.
template <class T>
inline constexpr unsigned kPieces = kGroupValues * sizeof(T) / 16;
template <class T>
inline constexpr unsigned kPieceValues = 16 / sizeof(T);

/// Where piece c of the group of lane b stands.
template <class T>
__device__ __forceinline__ unsigned pieceAt(unsigned b, unsigned c) {
  return kPieces<T> * b + (kPieces<T> == 8 ? c ^ (b & 7u) : c ^ (b >> 1 & 3u));
}

/// What the threads of a block share: its groups lie on n_lanes neighbouring lanes.
template <bool kOneGroup>
struct Lanes {
  unsigned count_log2;  ///< of the number of groups in a block

  __device__ __forceinline__ explicit Lanes(std::uint32_t block_values)
      : count_log2(kOneGroup ? 0u : bits::bitWidth(block_values) - bits::bitWidth(kGroupValues)) {}
  __device__ __forceinline__ unsigned count() const { return kOneGroup ? 1u : 1u << count_log2; }
  /// The thread's group inside its block.
  __device__ __forceinline__ unsigned group() const {
    return kOneGroup ? 0u : cuda::laneId() & (count() - 1);
  }
};

/// Reads the warp's values from `first` on into its shared memory; 0 behind the last value.
template <class T>
__device__ __forceinline__ void loadWarpValues(const T* in,
                                               std::uint64_t first,
                                               std::uint64_t n_values,
                                               uint4* pieces) {
  const unsigned lane = cuda::laneId();
  const auto at = [](unsigned i) { return pieceAt<T>(i / kPieces<T>, i % kPieces<T>); };
  if (first + kWarpValues <= n_values) {
    uint4 loaded[kPieces<T>];
#pragma unroll
    for (unsigned i = 0; i < kPieces<T>; ++i) {
      loaded[i] = cuda::loadStream(in + first + (lane + cuda::kWarp * i) * kPieceValues<T>);
    }
#pragma unroll
    for (unsigned i = 0; i < kPieces<T>; ++i) {
      pieces[at(lane + cuda::kWarp * i)] = loaded[i];
    }
    return;
  }
  for (unsigned i = lane; i < cuda::kWarp * kPieces<T>; i += cuda::kWarp) {
    cuda::Vec16<T> piece;
#pragma unroll
    for (unsigned k = 0; k < kPieceValues<T>; ++k) {
      const std::uint64_t index = first + i * kPieceValues<T> + k;
      piece.v[k] = index < n_values ? in[index] : T{0};
    }
    pieces[at(i)] = piece.raw;
  }
}

/// The inverse of loadWarpValues.
template <class T>
__device__ __forceinline__ void storeWarpValues(const uint4* pieces,
                                                std::uint64_t first,
                                                std::uint64_t n_values,
                                                T* out) {
  const unsigned lane = cuda::laneId();
  const auto at = [](unsigned i) { return pieceAt<T>(i / kPieces<T>, i % kPieces<T>); };
  if (first + kWarpValues <= n_values) {
#pragma unroll
    for (unsigned i = 0; i < kPieces<T>; ++i) {
      cuda::storeStream(out + first + (lane + cuda::kWarp * i) * kPieceValues<T>,
                        pieces[at(lane + cuda::kWarp * i)]);
    }
    return;
  }
  for (unsigned i = lane; i < cuda::kWarp * kPieces<T>; i += cuda::kWarp) {
    cuda::Vec16<T> piece;
    piece.raw = pieces[at(i)];
#pragma unroll
    for (unsigned k = 0; k < kPieceValues<T>; ++k) {
      const std::uint64_t index = first + i * kPieceValues<T> + k;
      if (index < n_values) {
        out[index] = piece.v[k];
      }
    }
  }
}

/// Calls f.operator()<P>() with the smallest P of 8, 16 and 32 planes that holds n_planes.
template <class T, class F>
__device__ __forceinline__ void withPlanes(std::uint32_t n_planes, F f) {
  if (n_planes <= 8) {
    f.template operator()<8>();
  } else if (sizeof(T) == 2 || n_planes <= 16) {
    f.template operator()<16>();
  } else if constexpr (sizeof(T) == 4) {
    f.template operator()<32>();
  }
}

}  // namespace fz::adaptive_bitpack
