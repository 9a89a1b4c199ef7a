// A level, to codes.
#include "backends/cuda/launch.h"
#include "fused/interp/cuda/level.cuh"
#include "fused/interp/cuda/policy.h"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

/// Lists a value if it has to be.
template <std::uint32_t kAxes>
__device__ __noinline__ void lookAt(
    const LevelJob& job, Points cell, std::uint32_t odd, bool is_clamped, std::int32_t r) {
  std::uint32_t at[3];
#pragma unroll
  for (unsigned axis = 0; axis < 3; ++axis) {
    at[axis] = (kAxes >> axis & 1) != 0 ? 2 * cell[axis] + (odd >> axis & 1) : cell[axis];
  }
  const std::uint64_t place = fieldPlace(job.marks.places, at[0], at[1], at[2]);
  const bool is_tested = job.marks.may_test && job.setup->is_tested != 0;
  if (is_clamped || (is_tested && missesBound(job.marks, place, r, *job.setup))) {
    markOutlier(job.marks.words, place);
  }
}

/// Of a thread that codes its column; codes of neighbours come by shared memory.
template <std::uint32_t kAxes, class T>
struct Encoder : Column<kAxes> {
  using Base = Column<kAxes>;
  using Base::job;
  using Base::kHasX;
  using Base::kHasY;
  using Base::kHasZ;

  const Setup& setup;
  const Scale scale;
  const Bin bin;
  const bool has_gaps;
  const bool is_tested;
  const bool is_own;  ///< not in the halo

  __device__ __forceinline__
  Encoder(const LevelJob& level, std::uint32_t x, std::uint32_t y, bool is_own_column)
      : Base(level, x, y),
        setup(*level.setup),
        scale(setup.scale),
        bin(binOf(setup, level.halvings)),
        has_gaps(setup.has_gaps != 0),
        is_tested(level.marks.may_test && setup.is_tested != 0),
        is_own(is_own_column) {}

  /// Fixed point of a row.
  __device__ __forceinline__ Pair<std::int32_t> values(std::uint32_t k,
                                                       bool is_odd_y,
                                                       bool is_odd_z) const {
    const T* const in =
        static_cast<const T*>(job.source.data) +
        placeIn(job.source, this->fineX(), this->fineY(is_odd_y), this->fineZ(k, is_odd_z));
    if constexpr (!kHasX) {
      return {fixedOf(__ldg(in), has_gaps, scale), 0};
    } else if (job.source_has_pairs) {
      const WidePair<T> pair = *reinterpret_cast<const WidePair<T>*>(in);
      return {fixedOf(pair.even, has_gaps, scale), fixedOf(pair.odd, has_gaps, scale)};
    } else {
      const unsigned next = this->fineX() + 1 < job.n[0] ? 1 : 0;
      return {fixedOf(__ldg(in), has_gaps, scale), fixedOf(__ldg(in + next), has_gaps, scale)};
    }
  }

  /// Codes x, predicted as p; 0 where there is no such point. r becomes what the code gives.
  __device__ __forceinline__ std::int32_t code(std::uint32_t odd,
                                               std::uint32_t k,
                                               std::uint32_t k_end,
                                               std::int32_t x,
                                               std::int32_t p,
                                               std::int32_t& r) const {
    const std::int32_t wanted = x == kNoValue ? 0 : codeOf(bits::wrapSub(x, p), bin);
    std::int32_t c = fittingCode(wanted, job.code_bytes);
    const bool is_point = this->has(odd, k);
    c = is_point ? c : 0;
    r = bits::wrapAdd(p, wrapMul(c, bin.units));
    const bool is_stored_here = is_own && k < k_end;
    if (is_stored_here && is_point && (c != wanted || is_tested) && x != kNoValue) {
      lookAt<kAxes>(job, {{this->i, this->j, k}}, odd, c != wanted, r);
    }
    if (is_stored_here && this->isPlace(odd, k)) {
      storeCode(job.codes, job.code_bytes, codePlace(job.classes[odd], this->i, this->j, k), c);
    }
    return c;
  }
};

/// Codes that neighbours need: x, y, z, xz, yz.
struct Exchange {
  std::int32_t* memory;
  std::uint32_t pitch;
  std::uint32_t n_array;
  std::uint32_t at;
  bool may_put;  ///< surplus threads may not

  __device__ __forceinline__ void put(unsigned array, std::int32_t code) const {
    if (may_put) {
      memory[array * n_array + at] = code;
    }
  }
  __device__ __forceinline__ std::int32_t right(unsigned array) const {
    return memory[array * n_array + at + 1];
  }
  __device__ __forceinline__ std::int32_t below(unsigned array) const {
    return memory[array * n_array + at + pitch];
  }
  __device__ __forceinline__ std::int32_t diagonal(unsigned array) const {
    return memory[array * n_array + at + pitch + 1];
  }
};
constexpr unsigned kArrays = 5;

/// Even planes one cell ahead, odd planes behind them.
template <std::uint32_t kAxes, class T>
__device__ __forceinline__ void encodeColumn(const Encoder<kAxes, T>& e,
                                             const Exchange& exchange,
                                             std::uint32_t k_begin,
                                             std::uint32_t k_end,
                                             bool is_stored) {
  using E = Encoder<kAxes, T>;
  constexpr bool kIsCube = kAxes == kXyz;
  const std::int32_t units = e.bin.units;
  const auto store = [&](std::uint32_t k, bool y, bool z, const Pair<std::int32_t>& r) {
    if (is_stored && e.is_own) {
      e.template store<std::int32_t>(k, y, z, r, e.scale);
    }
  };
  PlanePart before = e.plane(std::int64_t{k_begin} - 1);
  PlanePart here = e.plane(k_begin);
  PlanePart next = e.plane(std::int64_t{k_begin} + 1);
  std::int32_t cx = 0, cy = 0, cxy = 0, sx = 0, sy = 0;  // of the even plane, and sums of two
  std::int32_t r = 0;

  // Of an even plane: codes along x and y, then of xy; sums with the neighbour's codes.
  const auto evenFirst = [&](std::uint32_t k, const PlanePart& t, Pair<std::int32_t>& odd_row,
                             std::int32_t& new_x, std::int32_t& new_y) {
    Pair<std::int32_t> even_r = {t.b, 0};
    if constexpr (E::kHasX) {
      const Pair<std::int32_t> x = e.values(k, false, false);
      new_x = e.code(kX, k, k_end, x.odd, t.x, even_r.odd);
    }
    if (k < k_end) {
      store(k, false, false, even_r);
    }
    if constexpr (E::kHasY) {
      odd_row = e.values(k, true, false);
      new_y = e.code(kY, k, k_end, odd_row.even, t.y, r);
      odd_row.even = r;  // from now on what it became
    }
    if constexpr (kIsCube) {
      exchange.put(0, new_x);
      exchange.put(1, new_y);
    }
  };
  const auto evenSecond = [&](std::uint32_t k, const PlanePart& t, Pair<std::int32_t>& odd_row,
                              std::int32_t new_x, std::int32_t new_y, std::int32_t& new_xy,
                              std::int32_t& new_sx, std::int32_t& new_sy) {
    if constexpr (kIsCube) {
      new_sx = new_x + exchange.below(0);
      new_sy = new_y + exchange.right(1);
      const std::int32_t p = e.corrected(t.xy, e.pairSum(kX | kY, new_sy, new_sx), units);
      new_xy = e.code(kX | kY, k, k_end, odd_row.odd, p, r);
      odd_row.odd = r;
    }
    if constexpr (E::kHasY) {
      if (k < k_end) {
        store(k, true, false, odd_row);
      }
    }
  };

  Pair<std::int32_t> row = {0, 0};
  evenFirst(k_begin, here, row, cx, cy);
  if constexpr (kIsCube) {
    __syncthreads();
  }
  evenSecond(k_begin, here, row, cx, cy, cxy, sx, sy);
  if constexpr (kIsCube) {
    __syncthreads();
  }
  for (std::uint32_t k = k_begin; k < k_end; ++k) {
    const PlanePart far = e.plane(std::int64_t{k} + 2);
    std::int32_t cx1 = 0, cy1 = 0, cxy1 = 0, sx1 = 0, sy1 = 0;
    evenFirst(k + 1, next, row, cx1, cy1);
    const Pair<std::int32_t> x0 = e.values(k, false, true);
    Pair<std::int32_t> r0 = {0, 0};
    const std::int32_t cz = e.code(kZ, k, k_end, x0.even,
                                   between(e.bends[2], before.b, here.b, next.b, far.b), r0.even);
    std::int32_t right_z = 0, below_z = 0, diagonal_z = 0;
    if constexpr (kAxes != kZ) {
      exchange.put(2, cz);
      __syncthreads();
      right_z = E::kHasX ? exchange.right(2) : 0;
      below_z = E::kHasY ? exchange.below(2) : 0;
      diagonal_z = kIsCube ? exchange.diagonal(2) : 0;
    }
    evenSecond(k + 1, next, row, cx1, cy1, cxy1, sx1, sy1);
    std::int32_t cxz = 0, cyz = 0;
    Pair<std::int32_t> r1 = {0, 0};
    if constexpr (E::kHasX) {
      const std::int32_t t = between(e.bends[2], before.x, here.x, next.x, far.x);
      cxz = e.code(kX | kZ, k, k_end, x0.odd,
                   e.corrected(t, e.pairSum(kX | kZ, cz + right_z, cx + cx1), units), r0.odd);
    }
    Pair<std::int32_t> x1 = {0, 0};
    if constexpr (E::kHasY) {
      x1 = e.values(k, true, true);
      const std::int32_t t = between(e.bends[2], before.y, here.y, next.y, far.y);
      cyz = e.code(kY | kZ, k, k_end, x1.even,
                   e.corrected(t, e.pairSum(kY | kZ, cz + below_z, cy + cy1), units), r1.even);
    }
    if constexpr (kAxes != kZ) {
      if constexpr (kIsCube) {
        exchange.put(3, cxz);
        exchange.put(4, cyz);
      }
      __syncthreads();
    }
    if constexpr (kIsCube) {
      const std::int32_t sums[6] = {cyz + exchange.right(4),
                                    cxz + exchange.below(3),
                                    cxy + cxy1,
                                    sx + sx1,
                                    sy + sy1,
                                    cz + right_z + below_z + diagonal_z};
      const std::int32_t t = between(e.bends[2], before.xy, here.xy, next.xy, far.xy);
      e.code(kXyz, k, k_end, x1.odd, e.corrected(t, e.cubeSum(sums), units), r1.odd);
    }
    store(k, false, true, r0);
    if constexpr (E::kHasY) {
      store(k, true, true, r1);
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
__global__ void __launch_bounds__(kLevelThreads, 2)
    encodeLevelKernel(const __grid_constant__ LevelJob job) {
  extern __shared__ std::int32_t shared[];
  const TilePlace tile = tilePlace(job);
  const std::uint32_t n_own = job.tile_x * job.tile_y;
  std::uint32_t thread = threadIdx.x;
  bool is_surplus = false;
  Pair<std::uint32_t> cell;
  if (thread < n_own) {
    cell = cellOf(job, thread);
  } else {  // the row below, then the column on the right; the rest repeat the corner
    thread -= n_own;
    const bool is_row = (kAxes & kY) != 0 && thread < job.tile_x;
    const std::uint32_t n_row = (kAxes & kY) != 0 ? job.tile_x : 0;
    cell = is_row ? Pair<std::uint32_t>{thread, job.tile_y}
                  : Pair<std::uint32_t>{job.tile_x, min(thread - n_row, job.tile_y)};
    is_surplus = thread > n_row + job.tile_y;
  }
  const Encoder<kAxes, T> e(job, tile.x + cell.even, tile.y + cell.odd, threadIdx.x < n_own);
  const bool is_stored = job.result.exists && (!job.result.is_for_tests || e.setup.is_tested != 0);
  if constexpr (kAxes == kX) {
    for (std::uint32_t k = tile.k_begin; k < tile.k_end; ++k) {
      const PlanePart t = e.plane(k);
      Pair<std::int32_t> r = {t.b, 0};
      e.code(kX, k, tile.k_end, e.values(k, false, false).odd, t.x, r.odd);
      if (is_stored && e.is_own) {
        e.template store<std::int32_t>(k, false, false, r, e.scale);
      }
    }
  } else {
    const std::uint32_t pitch = job.tile_x + 8;
    const std::uint32_t n_array = pitch * (job.tile_y + 1);
    encodeColumn(e, {shared, pitch, n_array, cell.odd * pitch + cell.even, !is_surplus},
                 tile.k_begin, tile.k_end, is_stored);
  }
}

}  // namespace

void launchEncodeLevel(const LevelJob& job, const cuda::Call& call) {
  LevelJob shaped = job;
  const unsigned n_blocks = shapeLevel(shaped);
  const std::uint32_t n_halo = (job.axes & kY ? shaped.tile_x : 0) +
                               ((job.axes & kX) != 0 && job.axes != kX ? shaped.tile_y : 0) +
                               (job.axes == kXyz ? 1 : 0);
  const unsigned n_threads =
      bits::roundUp(shaped.tile_x * shaped.tile_y + n_halo, static_cast<unsigned>(cuda::kWarp));
  const std::size_t n_shared =
      job.axes == kX || job.axes == kZ
          ? 0
          : std::size_t{kArrays} * (shaped.tile_x + 8) * (shaped.tile_y + 1) * sizeof(std::int32_t);
  withAxesAndType(shaped, shaped.source.type, [&]<std::uint32_t kAxes, class T>() {
    call.launch("interp encode level", encodeLevelKernel<kAxes, T>, n_blocks, n_threads, n_shared,
                shaped);
  });
}

}  // namespace fz::interp::device
