#pragma once

// A level, cell by cell: what encoding and decoding share. Axes are turned so that z is one of the
// level's unless that is x alone; a thread goes through its column of cells along z. Device code
// only.

#include "fused/interp/cuda/values.cuh"

namespace fz::interp::device {

inline constexpr std::uint32_t kX = 1;
inline constexpr std::uint32_t kY = 2;
inline constexpr std::uint32_t kZ = 4;
inline constexpr std::uint32_t kXyz = 7;

/// Of a plane of the base at a cell: the point itself, and between it and the next ones.
struct PlanePart {
  std::int32_t b, x, y, xy;
};

/// Even and odd point of a row.
template <class T>
struct Pair {
  T even, odd;
};
template <class T>
struct alignas(2 * sizeof(T)) WidePair {
  T even, odd;
};

/// A column of cells.
template <std::uint32_t kAxes>
struct Column {
  static constexpr bool kHasX = (kAxes & kX) != 0;
  static constexpr bool kHasY = (kAxes & kY) != 0;
  static constexpr bool kHasZ = (kAxes & kZ) != 0;

  const LevelJob& job;
  Bend bends[3];
  std::uint32_t i, j;    ///< the cell
  std::uint32_t ci, cj;  ///< the same, or the last one
  /// Which points of the column's cells there are, as far as x and y say: a bit per class.
  std::uint32_t exists;
  std::uint32_t is_padding;  ///< the same for places of code arrays
  const std::int32_t* base;

  __device__ __forceinline__ Column(const LevelJob& level, std::uint32_t x, std::uint32_t y)
      : job(level), i(x), j(y) {
#pragma unroll
    for (unsigned axis = 0; axis < 3; ++axis) {
      bends[axis] = bendOf(job.kernels[axis]);
    }
    ci = min(i, job.cells[0] - 1);
    cj = min(j, job.cells[1] - 1);
    base = static_cast<const std::int32_t*>(job.base.data) + placeIn(job.base, ci, cj, 0);
    exists = 0;
    is_padding = 0;
#pragma unroll
    for (std::uint32_t odd = 1; odd <= kXyz; ++odd) {
      if ((odd & ~kAxes) == 0) {
        const CodePlaces& array = job.classes[odd];
        exists |= i < array.n[0] && j < array.n[1] ? 1u << odd : 0u;
        is_padding |= i < array.n_padded[0] && j < array.n_padded[1] ? 1u << odd : 0u;
      }
    }
  }

  __device__ __forceinline__ bool has(std::uint32_t odd, std::uint32_t k) const {
    return (exists >> odd & 1) != 0 && k < job.classes[odd].n[2];
  }
  __device__ __forceinline__ bool isPlace(std::uint32_t odd, std::uint32_t k) const {
    return (is_padding >> odd & 1) != 0 && k < job.classes[odd].n_padded[2];
  }

  /// Of a plane of the base; behind the ghosts, the last of them.
  __device__ __forceinline__ PlanePart plane(std::int64_t k) const {
    const std::int64_t last = std::int64_t{job.cells[2]} + (kHasZ ? 1 : -1);
    const std::int32_t* const p = base + (k < last ? k : last) * job.base.step[2];
    const std::int64_t row = job.base.step[1];
    PlanePart part = {};
    part.b = __ldg(p);
    if constexpr (kHasX && !kHasY) {
      part.x = between(bends[0], __ldg(p - 1), part.b, __ldg(p + 1), __ldg(p + 2));
    } else if constexpr (kHasY && !kHasX) {
      part.y = between(bends[1], __ldg(p - row), part.b, __ldg(p + row), __ldg(p + 2 * row));
    } else if constexpr (kHasX && kHasY) {
      std::int32_t b[4];
      std::int32_t x[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const std::int32_t* const q = p + (r - 1) * row;
        b[r] = __ldg(q);
        x[r] = between(bends[0], __ldg(q - 1), b[r], __ldg(q + 1), __ldg(q + 2));
      }
      part.x = x[1];
      part.y = between(bends[1], b[0], b[1], b[2], b[3]);
      part.xy = between(bends[1], x[0], x[1], x[2], x[3]);
    }
    return part;
  }

  __device__ __forceinline__ std::int32_t corrected(std::int32_t t,
                                                    std::int32_t sum,
                                                    std::int32_t units) const {
    return bits::wrapAdd(t, correction(sum, units));
  }
  /// Weighted sum for a class of two axes: codes of the second one's class, of the first one's.
  __device__ __forceinline__ std::int32_t pairSum(std::uint32_t odd,
                                                  std::int32_t second,
                                                  std::int32_t first) const {
    return bits::wrapAdd(wrapMul(job.pair_weights[odd][0], second),
                         wrapMul(job.pair_weights[odd][1], first));
  }
  __device__ __forceinline__ std::int32_t cubeSum(const std::int32_t (&sums)[6]) const {
    std::int32_t sum = 0;
#pragma unroll
    for (unsigned s = 0; s < 6; ++s) {
      sum = bits::wrapAdd(sum, wrapMul(job.cube_weights[s], sums[s]));
    }
    return sum;
  }

  __device__ __forceinline__ std::uint32_t fineX() const {
    return kHasX ? 2 * ci : ci;
  }
  __device__ __forceinline__ std::uint32_t fineY(bool is_odd) const {
    const std::uint32_t y = kHasY ? 2 * cj + (is_odd ? 1 : 0) : cj;
    return min(y, job.n[1] - 1);
  }
  __device__ __forceinline__ std::uint32_t fineZ(std::uint32_t k, bool is_odd) const {
    const std::uint32_t z = kHasZ ? 2 * k + (is_odd ? 1 : 0) : k;
    return min(z, job.n[2] - 1);
  }

  /// Stores the points of a row that there are.
  template <class T>
  __device__ __forceinline__ void store(std::uint32_t k,
                                        bool is_odd_y,
                                        bool is_odd_z,
                                        const Pair<std::int32_t>& r,
                                        const Scale& scale) const {
    const std::uint32_t odd = (is_odd_y ? kY : 0) | (is_odd_z ? kZ : 0);
    const bool has_even =
        odd == 0 ? i < job.cells[0] && j < job.cells[1] && k < job.cells[2] : has(odd, k);
    if (!has_even) {
      return;
    }
    T* const out = static_cast<T*>(job.result.data) +
                   placeIn(job.result, fineX(), fineY(is_odd_y), fineZ(k, is_odd_z));
    if constexpr (!kHasX) {
      *out = resultOf<T>(r.even, scale);
    } else if (job.result_has_pairs) {
      *reinterpret_cast<WidePair<T>*>(out) = {resultOf<T>(r.even, scale),
                                              resultOf<T>(r.odd, scale)};
    } else {
      *out = resultOf<T>(r.even, scale);
      if (has(odd | kX, k)) {
        out[1] = resultOf<T>(r.odd, scale);
      }
    }
  }
};

/// Cells of a thread block, and of a thread in it.
struct TilePlace {
  std::uint32_t x, y;  ///< of the tile's first cell
  std::uint32_t k_begin, k_end;
};
__device__ __forceinline__ TilePlace tilePlace(const LevelJob& job) {
  const Points tile = pointOf(blockIdx.x, job.n_tiles);
  TilePlace place = {tile[0] * job.tile_x, tile[1] * job.tile_y, tile[2] * job.chunk, 0};
  std::uint32_t n_padded = 0;
#pragma unroll
  for (std::uint32_t odd = 1; odd <= kXyz; ++odd) {
    n_padded = max(n_padded, job.classes[odd].n_padded[2]);  // 0 where there is no such class
  }
  place.k_end = min(place.k_begin + job.chunk, max(job.cells[2], n_padded));
  return place;
}

/// The cell of a thread in its tile: warps are 8 x 4 cells where there is room, so that they write
/// whole pieces of blocks.
__device__ __forceinline__ Pair<std::uint32_t> cellOf(const LevelJob& job, std::uint32_t thread) {
  if (job.tile_x >= 8 && job.tile_y >= 4) {
    const std::uint32_t warp = thread / 32;
    const std::uint32_t lane = thread % 32;
    const std::uint32_t n_across = job.tile_x / 8;
    return {warp % n_across * 8 + lane % 8, warp / n_across * 4 + lane / 8};
  }
  return {thread % job.tile_x, thread / job.tile_x};
}

/// f.template operator()<axes, T>() for the axes of a job and the type of a grid.
template <class F>
void withAxesAndType(const LevelJob& job, DataType type, F f) {
  const auto withType = [&]<std::uint32_t kAxes>() {
    type == DataType::FLOAT32   ? f.template operator()<kAxes, float>()
    : type == DataType::FLOAT64 ? f.template operator()<kAxes, double>()
                                : f.template operator()<kAxes, std::int32_t>();
  };
  switch (job.axes) {
    case kX:
      return withType.template operator()<kX>();
    case kZ:
      return withType.template operator()<kZ>();
    case kX | kZ:
      return withType.template operator()<kX | kZ>();
    case kY | kZ:
      return withType.template operator()<kY | kZ>();
    default:
      return withType.template operator()<kXyz>();
  }
}

/// Fills in what the launchers decide, and gives the number of thread blocks.
unsigned shapeLevel(LevelJob& job);

}  // namespace fz::interp::device
