#pragma once

// A level, cell by cell: what encoding and decoding share. Axes are turned so that z is one of the
// level's unless that is x alone; a thread goes through its column of cells along z. Device code
// only.

#include <algorithm>

#include "fused/interp/cuda/values.cuh"

namespace fz::interp::device {

inline constexpr std::uint32_t kX = 1;
inline constexpr std::uint32_t kY = 2;
inline constexpr std::uint32_t kZ = 4;
inline constexpr std::uint32_t kXyz = 7;

/// Whether an encoder must look at every value: some have no fixed point, or are tested.
__device__ __forceinline__ bool looksAtAll(const LevelJob& job) {
  const Setup& setup = *job.setup;
  const bool is_tested = job.marks.may_test || (job.result.exists && job.result.is_for_tests);
  return setup.has_gaps != 0 || (is_tested && setup.is_tested != 0);
}

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

  __device__ __forceinline__ Column(const LevelJob& level, std::uint32_t x, std::uint32_t y)
      : job(level), i(x), j(y) {
#pragma unroll
    for (unsigned axis = 0; axis < 3; ++axis) {
      bends[axis] = bendOf(job.kernels[axis]);
    }
    ci = min(i, job.cells[0] - 1);
    cj = min(j, job.cells[1] - 1);
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
  /// Which classes have a point in a plane: a bit for each. All of a plane are odd along z, or
  /// none.
  __device__ __forceinline__ std::uint32_t pointsIn(std::uint32_t k, bool is_odd_z) const {
    const std::uint32_t n = !kHasZ || !is_odd_z ? job.cells[2] : job.n[2] / 2;
    return k < n ? exists : 0;
  }
  /// The same for places of code arrays.
  template <bool kIsRegular>
  __device__ __forceinline__ std::uint32_t placesIn(std::uint32_t k, bool is_odd_z) const {
    if constexpr (kIsRegular) {
      constexpr std::uint32_t kEven = kHasX ? kX : kAxes & kY;
      const std::uint32_t odd = is_odd_z ? kAxes : kEven;
      return k < job.classes[odd].n_padded[2] ? is_padding : 0;
    } else {
      std::uint32_t places = 0;
#pragma unroll
      for (std::uint32_t odd = 1; odd <= kXyz; ++odd) {
        places |= k < job.classes[odd].n_padded[2] ? is_padding & (1u << odd) : 0u;
      }
      return places;
    }
  }

  /// Of the base at the cell, whose point stands at p; rows are `row` apart.
  __device__ __forceinline__ PlanePart partAt(const std::int32_t* p, std::int64_t row) const {
    PlanePart part = {};
    part.b = p[0];
    if constexpr (kHasX && !kHasY) {
      part.x = between(bends[0], p[-1], part.b, p[1], p[2]);
    } else if constexpr (kHasY && !kHasX) {
      part.y = between(bends[1], p[-row], part.b, p[row], p[2 * row]);
    } else if constexpr (kHasX && kHasY) {
      std::int32_t b[4];
      std::int32_t x[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const std::int32_t* const q = p + (r - 1) * row;
        b[r] = q[0];
        x[r] = between(bends[0], q[-1], b[r], q[1], q[2]);
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
  /// Of a row in a grid, at z = 0.
  __device__ __forceinline__ std::int64_t rowPlace(const Grid& grid, bool is_odd_y) const {
    return placeIn(grid, fineX(), fineY(is_odd_y), 0);
  }

  /// Stores the points of a row that there are; `out` is the cell's first point at z = 0.
  template <class T>
  __device__ __forceinline__ void store(T* out,
                                        std::uint32_t k,
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
    out += fineZ(k, is_odd_z) * job.result.step[2] + (is_odd_y ? job.result.step[1] : 0);
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

/// Where the codes of a column stand. kIsRegular: the blocks of all classes have the same extents.
template <class TCode, bool kIsRegular>
struct CodeColumns {
  const LevelJob& job;
  std::uint32_t i, j;
  std::uint32_t block_y;
  std::uint64_t offset;  ///< bytes in a row of blocks, and in a block

  __device__ __forceinline__ CodeColumns(const LevelJob& level, std::uint32_t x, std::uint32_t y)
      : job(level), i(x), j(y) {
    const CodePlaces& array = job.classes[job.axes];
    block_y = j >> array.log2[1];
    offset = (std::uint64_t{i >> array.log2[0]} * 64 +
              ((i & ((1u << array.log2[0]) - 1)) << array.shift[0]) +
              ((j & ((1u << array.log2[1]) - 1)) << array.shift[1])) *
             sizeof(TCode);
  }
  __device__ __forceinline__ TCode* place(std::uint32_t odd, std::uint32_t k) const {
    if constexpr (kIsRegular) {
      const CodePlaces& array = job.classes[job.axes];
      // What is the same for all threads; products of 32 bits.
      const std::uint32_t inside = (k & ((1u << array.log2[2]) - 1)) << array.shift[2];
      const std::uint64_t plane = job.start_bytes[odd] +
                                  std::uint64_t{k >> array.log2[2]} * job.plane_bytes[odd] +
                                  inside * sizeof(TCode);
      return reinterpret_cast<TCode*>(static_cast<std::uint8_t*>(job.codes) + plane +
                                      (std::uint64_t{block_y} * job.row_bytes[odd] + offset));
    } else {
      return static_cast<TCode*>(job.codes) + codePlace(job.classes[odd], i, j, k);
    }
  }
};

/// Planes of the base around a tile, on their way to shared memory: asked for a step before they
/// are needed.
template <std::uint32_t kAxes>
struct BaseTile {
  static constexpr unsigned kLoads = 2;  ///< per thread; launchers see to it that they are enough

  const LevelJob& job;
  const std::int32_t* from[kLoads];
  std::uint32_t to[kLoads];
  std::int32_t values[kLoads];
  std::uint32_t n_values;
  std::uint32_t pitch;

  static __host__ __device__ __forceinline__ std::uint32_t columns(const LevelJob& level) {
    return level.tile_x + ((kAxes & kX) != 0 ? 4 : 0);
  }
  static __host__ __device__ __forceinline__ std::uint32_t rows(const LevelJob& level) {
    return level.tile_y + ((kAxes & kY) != 0 ? 4 : 0);
  }

  __device__ __forceinline__ BaseTile(const LevelJob& level, std::uint32_t x, std::uint32_t y)
      : job(level), n_values(columns(level) * rows(level)), pitch(level.tile_x + 8) {
    const std::int64_t before_x = (kAxes & kX) != 0 ? 1 : 0;
    const std::int64_t before_y = (kAxes & kY) != 0 ? 1 : 0;
#pragma unroll
    for (unsigned u = 0; u < kLoads; ++u) {
      const std::uint32_t e = min(threadIdx.x + u * blockDim.x, n_values - 1);
      const std::uint32_t row = e / columns(level);
      const std::uint32_t column = e - row * columns(level);
      // Ghosts are one before and two behind.
      const std::int64_t gx =
          min(std::int64_t{x} + column - before_x, std::int64_t{job.cells[0]} - 1 + 2 * before_x);
      const std::int64_t gy =
          min(std::int64_t{y} + row - before_y, std::int64_t{job.cells[1]} - 1 + 2 * before_y);
      from[u] = static_cast<const std::int32_t*>(job.base.data) + placeIn(job.base, gx, gy, 0);
      to[u] = row * pitch + column;
    }
  }
  __device__ __forceinline__ void load(std::int64_t k) {
    const std::int64_t last = std::int64_t{job.cells[2]} + ((kAxes & kZ) != 0 ? 1 : -1);
    const std::int64_t plane = (k < last ? k : last) * job.base.step[2];
#pragma unroll
    for (unsigned u = 0; u < kLoads; ++u) {
      values[u] = __ldg(from[u] + plane);
    }
  }
  __device__ __forceinline__ void put(std::int32_t* memory) const {
#pragma unroll
    for (unsigned u = 0; u < kLoads; ++u) {
      if (threadIdx.x + u * blockDim.x < n_values) {
        memory[to[u]] = values[u];
      }
    }
  }
  /// Where a cell's point stands in that.
  __device__ __forceinline__ std::uint32_t place(const Pair<std::uint32_t>& cell) const {
    return (cell.odd + ((kAxes & kY) != 0 ? 1 : 0)) * pitch + cell.even +
           ((kAxes & kX) != 0 ? 1 : 0);
  }
  static __host__ __device__ __forceinline__ std::uint32_t memory(const LevelJob& level) {
    return rows(level) * (level.tile_x + 8);
  }
};

/// Codes that neighbours need, in shared memory: x, y, z, xz, yz.
struct Exchange {
  static constexpr unsigned kArrays = 5;

  std::int32_t* memory;  ///< of the cell
  std::uint32_t n_array;
  std::uint32_t next_x;  ///< 0 behind the last one, whose neighbours nobody needs
  std::uint32_t next_y;
  bool may_put;  ///< surplus threads may not

  __device__ __forceinline__ void put(unsigned array, std::int32_t code) const {
    if (may_put) {
      memory[array * n_array] = code;
    }
  }
  __device__ __forceinline__ std::int32_t right(unsigned array) const {
    return memory[array * n_array + next_x];
  }
  __device__ __forceinline__ std::int32_t below(unsigned array) const {
    return memory[array * n_array + next_y];
  }
  __device__ __forceinline__ std::int32_t diagonal(unsigned array) const {
    return memory[array * n_array + next_x + next_y];
  }
  static __host__ __device__ __forceinline__ std::uint32_t arrayValues(const LevelJob& level) {
    return (level.tile_x + 8) * (level.tile_y + 1);
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

/// The same with a halo: behind the tile's own cells come the row below, then the column on the
/// right, then threads that repeat its end.
struct HaloCell {
  Pair<std::uint32_t> cell;
  bool is_own;
  bool is_surplus;
};
template <std::uint32_t kAxes>
__device__ __forceinline__ HaloCell haloCellOf(const LevelJob& job) {
  const std::uint32_t n_own = job.tile_x * job.tile_y;
  if (threadIdx.x < n_own) {
    return {cellOf(job, threadIdx.x), true, false};
  }
  const std::uint32_t thread = threadIdx.x - n_own;
  std::uint32_t n_row = 0;
  if constexpr ((kAxes & kY) != 0) {
    n_row = job.tile_x;
    if (thread < n_row) {
      return {{thread, job.tile_y}, false, false};
    }
  }
  const bool has_column = (kAxes & kX) != 0;
  const std::uint32_t last = (kAxes & kY) != 0 ? job.tile_y : job.tile_y - 1;
  const std::uint32_t row = min(thread - n_row, last);
  return {
      {has_column ? job.tile_x : job.tile_x - 1, row}, false, !has_column || thread - n_row > last};
}
template <std::uint32_t kAxes>
__device__ __forceinline__ Exchange exchangeOf(const LevelJob& job,
                                               const HaloCell& at,
                                               std::int32_t* memory) {
  const std::uint32_t pitch = job.tile_x + 8;
  return {memory + at.cell.odd * pitch + at.cell.even, Exchange::arrayValues(job),
          at.cell.even < job.tile_x ? 1u : 0u, at.cell.odd < job.tile_y ? pitch : 0u,
          !at.is_surplus};
}

/// How a kernel with a halo is launched: threads, and words of shared memory for so many copies of
/// a plane of the base and of the codes.
struct HaloShape {
  unsigned n_threads;
  std::size_t shared_bytes;
};
template <std::uint32_t kAxes>
HaloShape haloShape(const LevelJob& job, unsigned n_copies) {
  std::uint32_t n = job.tile_x * job.tile_y;
  if (kAxes != kX && kAxes != kZ) {
    n += ((kAxes & kY) != 0 ? job.tile_x : 0) + ((kAxes & kX) != 0 ? job.tile_y : 0) +
         (kAxes == kXyz ? 1 : 0);
  }
  const std::uint32_t n_base = BaseTile<kAxes>::columns(job) * BaseTile<kAxes>::rows(job);
  n = std::max(n, bits::ceilDiv(n_base, BaseTile<kAxes>::kLoads));
  const std::size_t n_words =
      BaseTile<kAxes>::memory(job) + Exchange::kArrays * std::size_t{Exchange::arrayValues(job)};
  return {bits::roundUp(n, static_cast<std::uint32_t>(cuda::kWarp)),
          kAxes == kX ? 0 : n_copies * n_words * sizeof(std::int32_t)};
}

/// f.template operator()<axes, T, TCode, is regular>() for a job and the type of a grid.
template <class F>
void withLevelKind(const LevelJob& job, DataType type, F f) {
  const auto withCode = [&]<std::uint32_t kAxes, class T, bool kIsRegular>() {
    job.code_bytes == 2 ? f.template operator()<kAxes, T, std::int16_t, kIsRegular>()
                        : f.template operator()<kAxes, T, std::int32_t, kIsRegular>();
  };
  const auto withRegular = [&]<std::uint32_t kAxes, class T>() {
    job.is_regular ? withCode.template operator()<kAxes, T, true>()
                   : withCode.template operator()<kAxes, T, false>();
  };
  const auto withType = [&]<std::uint32_t kAxes>() {
    type == DataType::FLOAT32   ? withRegular.template operator()<kAxes, float>()
    : type == DataType::FLOAT64 ? withRegular.template operator()<kAxes, double>()
                                : withRegular.template operator()<kAxes, std::int32_t>();
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
