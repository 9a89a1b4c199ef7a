// A level, from codes.
#include "backends/cuda/launch.h"
#include "fused/interp/cuda/level.cuh"
#include "fused/interp/cuda/policy.h"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

/// Codes of a class next to a column.
template <std::uint32_t kAxes>
struct Codes {
  const LevelJob& job;
  std::uint32_t i, j;

  /// 0 outside the array.
  __device__ __forceinline__ std::int32_t at(std::uint32_t odd,
                                             std::uint32_t right,
                                             std::uint32_t below,
                                             std::uint32_t k) const {
    const CodePlaces& array = job.classes[odd];
    const std::uint32_t x = i + right;
    const std::uint32_t y = j + below;
    if (x >= array.n[0] || y >= array.n[1] || k >= array.n[2]) {
      return 0;
    }
    return loadCode(job.codes, job.code_bytes, codePlace(array, x, y, k));
  }
};

template <std::uint32_t kAxes, class T>
__device__ __forceinline__ void decodeColumn(const Column<kAxes>& column,
                                             const Codes<kAxes>& codes,
                                             std::int32_t units,
                                             const Scale& scale,
                                             std::uint32_t k_begin,
                                             std::uint32_t k_end) {
  using C = Column<kAxes>;
  constexpr bool kIsCube = kAxes == kXyz;
  const auto found = [&](std::int32_t p, std::int32_t code) {
    return bits::wrapAdd(p, wrapMul(code, units));
  };
  PlanePart before = column.plane(std::int64_t{k_begin} - 1);
  PlanePart here = column.plane(k_begin);
  PlanePart next = column.plane(std::int64_t{k_begin} + 1);
  std::int32_t cx = 0, cy = 0, cxy = 0, sx = 0, sy = 0;
  const auto even = [&](std::uint32_t k, const PlanePart& t, std::int32_t& new_x,
                        std::int32_t& new_y, std::int32_t& new_xy, std::int32_t& new_sx,
                        std::int32_t& new_sy) {
    Pair<std::int32_t> r0 = {t.b, 0};
    Pair<std::int32_t> r1 = {0, 0};
    if constexpr (C::kHasX) {
      new_x = codes.at(kX, 0, 0, k);
      r0.odd = found(t.x, new_x);
    }
    if constexpr (C::kHasY) {
      new_y = codes.at(kY, 0, 0, k);
      r1.even = found(t.y, new_y);
    }
    if constexpr (kIsCube) {
      new_sx = bits::wrapAdd(new_x, codes.at(kX, 0, 1, k));
      new_sy = bits::wrapAdd(new_y, codes.at(kY, 1, 0, k));
      new_xy = codes.at(kX | kY, 0, 0, k);
      r1.odd =
          found(column.corrected(t.xy, column.pairSum(kX | kY, new_sy, new_sx), units), new_xy);
    }
    if (k < k_end) {
      column.template store<T>(k, false, false, r0, scale);
      if constexpr (C::kHasY) {
        column.template store<T>(k, true, false, r1, scale);
      }
    }
  };
  even(k_begin, here, cx, cy, cxy, sx, sy);
  for (std::uint32_t k = k_begin; k < k_end; ++k) {
    const PlanePart far = column.plane(std::int64_t{k} + 2);
    std::int32_t cx1 = 0, cy1 = 0, cxy1 = 0, sx1 = 0, sy1 = 0;
    even(k + 1, next, cx1, cy1, cxy1, sx1, sy1);
    const std::int32_t cz = codes.at(kZ, 0, 0, k);
    const std::int32_t right_z = C::kHasX ? codes.at(kZ, 1, 0, k) : 0;
    const std::int32_t below_z = C::kHasY ? codes.at(kZ, 0, 1, k) : 0;
    Pair<std::int32_t> r0 = {found(between(column.bends[2], before.b, here.b, next.b, far.b), cz),
                             0};
    Pair<std::int32_t> r1 = {0, 0};
    std::int32_t cxz = 0, cyz = 0;
    if constexpr (C::kHasX) {
      cxz = codes.at(kX | kZ, 0, 0, k);
      const std::int32_t t = between(column.bends[2], before.x, here.x, next.x, far.x);
      const std::int32_t sum =
          column.pairSum(kX | kZ, bits::wrapAdd(cz, right_z), bits::wrapAdd(cx, cx1));
      r0.odd = found(column.corrected(t, sum, units), cxz);
    }
    if constexpr (C::kHasY) {
      cyz = codes.at(kY | kZ, 0, 0, k);
      const std::int32_t t = between(column.bends[2], before.y, here.y, next.y, far.y);
      const std::int32_t sum =
          column.pairSum(kY | kZ, bits::wrapAdd(cz, below_z), bits::wrapAdd(cy, cy1));
      r1.even = found(column.corrected(t, sum, units), cyz);
    }
    if constexpr (kIsCube) {
      using bits::wrapAdd;
      const std::int32_t sums[6] = {
          wrapAdd(cyz, codes.at(kY | kZ, 1, 0, k)),
          wrapAdd(cxz, codes.at(kX | kZ, 0, 1, k)),
          wrapAdd(cxy, cxy1),
          wrapAdd(sx, sx1),
          wrapAdd(sy, sy1),
          wrapAdd(wrapAdd(cz, right_z), wrapAdd(below_z, codes.at(kZ, 1, 1, k)))};
      const std::int32_t t = between(column.bends[2], before.xy, here.xy, next.xy, far.xy);
      r1.odd = found(column.corrected(t, column.cubeSum(sums), units), codes.at(kXyz, 0, 0, k));
    }
    column.template store<T>(k, false, true, r0, scale);
    if constexpr (C::kHasY) {
      column.template store<T>(k, true, true, r1, scale);
    }
    before = here;
    here = next;
    next = far;
    cx = cx1;
    cy = cy1;
    cxy = cxy1;
    sx = sx1;
    sy = sy1;
  }
}

template <std::uint32_t kAxes, class T>
__global__ void __launch_bounds__(kThreads, 2)
    decodeLevelKernel(const __grid_constant__ LevelJob job) {
  const Setup& setup = *job.setup;
  if (setup.is_ok == 0) {
    return;
  }
  const TilePlace tile = tilePlace(job);
  const Pair<std::uint32_t> cell = cellOf(job, threadIdx.x);
  if (cell.odd >= job.tile_y) {
    return;
  }
  const Column<kAxes> column(job, tile.x + cell.even, tile.y + cell.odd);
  const Codes<kAxes> codes = {job, column.i, column.j};
  const Scale scale = setup.scale;
  const std::int32_t units = binOf(setup, job.halvings).units;
  const std::uint32_t k_end = min(tile.k_end, job.cells[2]);
  if (column.i >= job.cells[0] || column.j >= job.cells[1]) {
    return;
  }
  if constexpr (kAxes == kX) {
    for (std::uint32_t k = tile.k_begin; k < k_end; ++k) {
      const PlanePart t = column.plane(k);
      const std::int32_t r = bits::wrapAdd(t.x, wrapMul(codes.at(kX, 0, 0, k), units));
      column.template store<T>(k, false, false, {t.b, r}, scale);
    }
  } else {
    if (tile.k_begin < k_end) {
      decodeColumn<kAxes, T>(column, codes, units, scale, tile.k_begin, k_end);
    }
  }
}

}  // namespace

unsigned shapeLevel(LevelJob& job) {
  Points n = job.cells;
  for (const CodePlaces& array : job.classes) {
    for (unsigned axis = 0; axis < 3; ++axis) {
      n[axis] = std::max(n[axis], array.n_padded[axis]);
    }
  }
  const auto powerOfTwo = [](std::uint32_t v, std::uint32_t most) {
    std::uint32_t p = 1;
    while (p < v && p < most) {
      p *= 2;
    }
    return p;
  };
  const bool has_wide_halo = job.axes == kXyz || job.axes == (kY | kZ);
  job.tile_y = powerOfTwo(n[1], 8);
  job.tile_x = powerOfTwo(n[0], has_wide_halo ? 32 : kThreads / job.tile_y);
  job.tile_y = powerOfTwo(n[1], has_wide_halo ? 8 : std::min(64u, kThreads / job.tile_x));
  job.n_tiles[0] = bits::ceilDiv(n[0], job.tile_x);
  job.n_tiles[1] = bits::ceilDiv(n[1], job.tile_y);
  const std::uint64_t n_flat = std::uint64_t{job.n_tiles[0]} * job.n_tiles[1];
  job.chunk = levelChunk(n[2], n_flat, cuda::multiprocessorCount());
  job.n_tiles[2] = bits::ceilDiv(n[2], job.chunk);
  const auto hasPairs = [&](const Grid& grid) {
    const std::size_t pair_bytes = 2 * getDataTypeSize(grid.type);
    return (job.axes & kX) != 0 && job.n[0] % 2 == 0 && grid.step[1] % 2 == 0 &&
           grid.step[2] % 2 == 0 && reinterpret_cast<std::uintptr_t>(grid.data) % pair_bytes == 0;
  };
  job.source_has_pairs = hasPairs(job.source);
  job.result_has_pairs = hasPairs(job.result);
  return static_cast<unsigned>(n_flat * job.n_tiles[2]);
}

void launchDecodeLevel(const LevelJob& job, const cuda::Call& call) {
  LevelJob shaped = job;
  const unsigned n_blocks = shapeLevel(shaped);
  const unsigned n_threads =
      bits::roundUp(shaped.tile_x * shaped.tile_y, static_cast<unsigned>(cuda::kWarp));
  withAxesAndType(shaped, shaped.result.type, [&]<std::uint32_t kAxes, class T>() {
    call.launch("interp decode level", decodeLevelKernel<kAxes, T>, n_blocks, n_threads, 0, shaped);
  });
}

}  // namespace fz::interp::device
