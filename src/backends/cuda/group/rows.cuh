#pragma once

// Rows: a full warp takes 32 * N values of a front at once, lane l those from l * N on.
//
//   fetch<N>(map, staging): asks for the values; they come into `staging`, shared memory of the
//     warp (stagingBytes<N>() of it, 16-byte aligned), while the warp does something else.
//   take<N>(map, staging, v): after cuda::waitForCopies and a barrier of the warp: the lane's
//     values. Those that do not exist are undefined. `staging` is free again when it returns.
//   put<N>(map, staging, v): the inverse of both; v may be overwritten.
//
// A *map* tells which values are meant: the coder's is LinearMap, and an op that takes values in an
// order of its own hands its own map on to the ops between itself and the field.
// Device code only; must compile with NVRTC.

#include "backends/cuda/async_copy.cuh"
#include "backends/cuda/device.cuh"

namespace fz::group {

/// Where the i-th 16-byte piece that a warp moves stands in staging. Pieces of 128 bytes stay
/// together, since asynchronous copies are slow where they are scattered; inside them the order is
/// such that lanes that read their rows do not meet in a bank, for all usual orders of the field.
__device__ __forceinline__ unsigned stagedPiece(unsigned i) {
  return i ^ ((i >> 3 ^ i >> 4 ^ i >> 5 ^ i >> 7) & 7u);
}
/// The same for piece i | j, which have no bit in common, for j that the compiler knows: it does
/// not find out by itself that only the lowest bits come together.
__device__ __forceinline__ unsigned stagedPiece(unsigned i, unsigned j) {
  return (stagedPiece(i) ^ (stagedPiece(j) & 7u)) + (stagedPiece(j) & ~7u);
}

/// Values one after the other: the order of the field itself.
struct LinearMap {
  std::uint64_t first;
  std::uint64_t n_values;

  /// Calls f(lane_at, step_at, index, is_there) for every unit of kUnit values that the lane moves,
  /// 32 * N values in all: lane_at + step_at is its place among the warp's values, index the place
  /// in the field. step_at is the same for all lanes, known to the compiler where the loop over the
  /// units is unrolled, and has no bit in common with lane_at. Units come in the order of piece().
  /// False when units would be unaligned or be there only in part; then nothing was called.
  template <unsigned N, unsigned kUnit, class F>
  __device__ __forceinline__ bool eachUnit(F f) const {
    const unsigned lane_at = cuda::laneId() * kUnit;
    if (first + cuda::kWarp * N <= n_values) {
      const std::uint64_t index = first + lane_at;
#pragma unroll
      for (unsigned j = 0; j < N / kUnit; ++j) {
        f(lane_at, j * cuda::kWarp * kUnit, index + j * cuda::kWarp * kUnit, true);
      }
      return true;
    }
    if (n_values % kUnit != 0) {
      return false;
    }
#pragma unroll
    for (unsigned j = 0; j < N / kUnit; ++j) {
      const std::uint64_t index = first + lane_at + j * cuda::kWarp * kUnit;
      f(lane_at, j * cuda::kWarp * kUnit, index, index < n_values);
    }
    return true;
  }
  /// The number of the 16-byte piece (kCount values) that begins with value `at`, in the order in
  /// which neighbours in the field are neighbours. Every bit of it is a bit of `at`.
  template <unsigned kCount>
  static __device__ __forceinline__ unsigned piece(unsigned at) {
    return at / kCount;
  }
  /// Where value `at` of the warp's values stands in the field; false when it does not exist.
  __device__ __forceinline__ bool find(unsigned at, std::uint64_t& index) const {
    index = first + at;
    return index < n_values;
  }
};

/// Asks for the units of the warp's values, 32 * N in all.
template <unsigned N, unsigned kUnit, class T, class Map>
__device__ __forceinline__ bool fetchUnits(const T* in, const Map& map, uint4* staging) {
  constexpr unsigned kCount = 16 / sizeof(T);
  return map.template eachUnit<N, kUnit>(
      [=](unsigned lane_at, unsigned step_at, std::uint64_t index, bool is_there) {
        const unsigned piece =
            stagedPiece(Map::template piece<kCount>(lane_at), Map::template piece<kCount>(step_at));
        cuda::copyAsync<kUnit * sizeof(T)>(
            reinterpret_cast<T*>(staging + piece) + (lane_at + step_at) % kCount,
            in + (is_there ? index : 0), is_there);
      });
}

template <unsigned N, class T, class Map>
__device__ __forceinline__ void fetchRows(const T* in, const Map& map, uint4* staging) {
  if (!fetchUnits<N, 16 / sizeof(T)>(in, map, staging)) {
    fetchUnits<N, 1>(in, map, staging);
  }
}

/// The lane's row.
template <class Map, unsigned N, class T>
__device__ __forceinline__ void readRow(const uint4* staging, T (&v)[N]) {
  constexpr unsigned kCount = 16 / sizeof(T);
#pragma unroll
  for (unsigned c = 0; c < N / kCount; ++c) {
    cuda::Vec16<T> piece;
    piece.raw = staging[stagedPiece(Map::template piece<kCount>(cuda::laneId() * N),
                                    Map::template piece<kCount>(c * kCount))];
#pragma unroll
    for (unsigned k = 0; k < kCount; ++k) {
      v[c * kCount + k] = piece.v[k];
    }
  }
}

/// Value i of the lane's row, i known at run time only.
template <class Map, unsigned N, class T>
__device__ __forceinline__ T readValue(const uint4* staging, unsigned i) {
  constexpr unsigned kCount = 16 / sizeof(T);
  const unsigned piece =
      stagedPiece(Map::template piece<kCount>(cuda::laneId() * N + i / kCount * kCount));
  return reinterpret_cast<const T*>(staging + piece)[i % kCount];
}

template <class Map, unsigned N, class T>
__device__ __forceinline__ void writeRow(const T (&v)[N], uint4* staging) {
  constexpr unsigned kCount = 16 / sizeof(T);
#pragma unroll
  for (unsigned c = 0; c < N / kCount; ++c) {
    cuda::Vec16<T> piece;
#pragma unroll
    for (unsigned k = 0; k < kCount; ++k) {
      piece.v[k] = v[c * kCount + k];
    }
    staging[stagedPiece(Map::template piece<kCount>(cuda::laneId() * N),
                        Map::template piece<kCount>(c * kCount))] = piece.raw;
  }
}

/// From staging to the field.
template <unsigned N, unsigned kUnit, class T, class Map>
__device__ __forceinline__ bool storeUnits(const uint4* staging, const Map& map, T* out) {
  constexpr unsigned kCount = 16 / sizeof(T);
  return map.template eachUnit<N, kUnit>(
      [=](unsigned lane_at, unsigned step_at, std::uint64_t index, bool is_there) {
        const uint4* piece = staging + stagedPiece(Map::template piece<kCount>(lane_at),
                                                   Map::template piece<kCount>(step_at));
        if (is_there) {
          if constexpr (kUnit == kCount) {
            cuda::storeStream(out + index, *piece);
          } else {
            out[index] = reinterpret_cast<const T*>(piece)[(lane_at + step_at) % kCount];
          }
        }
      });
}

template <unsigned N, class T, class Map>
__device__ __forceinline__ void storeRowsTo(const T (&v)[N],
                                            const Map& map,
                                            uint4* staging,
                                            T* out) {
  writeRow<Map>(v, staging);
  __syncwarp();
  if (!storeUnits<N, 16 / sizeof(T)>(staging, map, out)) {
    storeUnits<N, 1>(staging, map, out);
  }
  __syncwarp();
}

}  // namespace fz::group
