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
template <std::uint32_t kAxes, class T, bool kIsRegular>
struct Encoder : Column<kAxes> {
  using Base = Column<kAxes>;
  using Base::job;
  using Base::kHasX;
  using Base::kHasY;

  const Scale scale;
  const Bin bin;
  const bool has_gaps;
  const bool is_tested;
  const bool is_own;  ///< not in the halo
  const CodeColumns<kIsRegular> codes;
  const T* row;
  std::uint32_t to_odd_row;  ///< of y; 0 where there is none
  std::int32_t* result;
  bool is_stored;

  __device__ __forceinline__
  Encoder(const LevelJob& level, std::uint32_t x, std::uint32_t y, bool is_own_column)
      : Base(level, x, y),
        scale(level.setup->scale),
        bin(binOf(*level.setup, level.halvings)),
        has_gaps(level.setup->has_gaps != 0),
        is_tested(level.marks.may_test && level.setup->is_tested != 0),
        is_own(is_own_column),
        codes(level, x, y) {
    is_stored =
        is_own && job.result.exists && (!job.result.is_for_tests || level.setup->is_tested != 0);
    row = static_cast<const T*>(job.source.data) + this->rowPlace(job.source, false);
    to_odd_row =
        static_cast<std::uint32_t>(this->fineY(true) > this->fineY(false) ? job.source.step[1] : 0);
    result = static_cast<std::int32_t*>(job.result.data) + this->rowPlace(job.result, false);
  }

  /// Values of a row, as they are.
  __device__ __forceinline__ Pair<T> values(std::uint32_t k, bool is_odd_y, bool is_odd_z) const {
    const T* const in =
        row + this->fineZ(k, is_odd_z) * job.source.step[2] + (is_odd_y ? to_odd_row : 0);
    if constexpr (!kHasX) {
      return {__ldg(in), T{}};
    } else if (job.source_has_pairs) {
      const WidePair<T> pair = *reinterpret_cast<const WidePair<T>*>(in);
      return {pair.even, pair.odd};
    } else {
      const unsigned next = this->fineX() + 1 < job.n[0] ? 1 : 0;
      return {__ldg(in), __ldg(in + next)};
    }
  }

  /// Codes a value, predicted as p; 0 where there is no such point. r becomes what the code gives.
  __device__ __forceinline__ std::int32_t code(std::uint32_t odd,
                                               std::uint32_t k,
                                               std::uint32_t k_end,
                                               T value,
                                               std::int32_t p,
                                               std::int32_t& r) const {
    const std::int32_t x = fixedOf(value, has_gaps, scale);
    const std::int32_t wanted = x == kNoValue ? 0 : codeOf(bits::wrapSub(x, p), bin);
    std::int32_t c = fittingCode(wanted, job.code_bytes);
    const bool is_point = this->has(odd, k);
    const bool is_suspect = (c != wanted || is_tested) && is_point;
    c = is_point ? c : 0;
    r = bits::wrapAdd(p, wrapMul(c, bin.units));
    if (is_own && k < k_end) {
      if (is_suspect && x != kNoValue) {
        lookAt<kAxes>(job, {{this->i, this->j, k}}, odd, c != wanted, r);
      }
      if (this->isPlace(odd, k)) {
        codes.store(odd, k, c);
      }
    }
    return c;
  }

  __device__ __forceinline__ void storeRow(std::uint32_t k,
                                           bool is_odd_y,
                                           bool is_odd_z,
                                           const Pair<std::int32_t>& r) const {
    if (is_stored) {
      this->store(result, k, is_odd_y, is_odd_z, r, scale);
    }
  }
};

/// What is asked for a step before it is needed: the even plane of the next cell, the odd plane of
/// this one.
template <class T>
struct Ahead {
  Pair<T> even[2];
  Pair<T> odd[2];
};
template <std::uint32_t kAxes, class T, bool kIsRegular>
__device__ __forceinline__ void loadAhead(const Encoder<kAxes, T, kIsRegular>& e,
                                          std::uint32_t k,
                                          Ahead<T>& ahead) {
  using E = Encoder<kAxes, T, kIsRegular>;
  if constexpr (E::kHasX) {
    ahead.even[0] = e.values(k + 1, false, false);
  }
  if constexpr (E::kHasY) {
    ahead.even[1] = e.values(k + 1, true, false);
    ahead.odd[1] = e.values(k, true, true);
  }
  ahead.odd[0] = e.values(k, false, true);
}

/// Of an even plane: codes, and sums with those of neighbours.
struct EvenCodes {
  std::int32_t x, y, xy, sx, sy;
};

/// Codes along x and y of an even plane; r gets what they give.
template <std::uint32_t kAxes, class T, bool kIsRegular>
__device__ __forceinline__ void encodeEven(const Encoder<kAxes, T, kIsRegular>& e,
                                           const Exchange& exchange,
                                           std::uint32_t k,
                                           std::uint32_t k_end,
                                           const Pair<T> (&values)[2],
                                           const PlanePart& t,
                                           EvenCodes& codes,
                                           Pair<std::int32_t> (&r)[2]) {
  using E = Encoder<kAxes, T, kIsRegular>;
  r[0].even = t.b;
  if constexpr (E::kHasX) {
    codes.x = e.code(kX, k, k_end, values[0].odd, t.x, r[0].odd);
  }
  if constexpr (E::kHasY) {
    codes.y = e.code(kY, k, k_end, values[1].even, t.y, r[1].even);
  }
  if constexpr (kAxes == kXyz) {
    exchange.put(0, codes.x);
    exchange.put(1, codes.y);
  }
}

/// Behind a barrier: of xy; then the plane is complete.
template <std::uint32_t kAxes, class T, bool kIsRegular>
__device__ __forceinline__ void encodeEvenXy(const Encoder<kAxes, T, kIsRegular>& e,
                                             const Exchange& exchange,
                                             std::uint32_t k,
                                             std::uint32_t k_end,
                                             T value,
                                             const PlanePart& t,
                                             EvenCodes& codes,
                                             Pair<std::int32_t> (&r)[2]) {
  if constexpr (kAxes == kXyz) {
    codes.sx = bits::wrapAdd(codes.x, exchange.below(0));
    codes.sy = bits::wrapAdd(codes.y, exchange.right(1));
    const std::int32_t sum = e.pairSum(kX | kY, codes.sy, codes.sx);
    codes.xy = e.code(kX | kY, k, k_end, value, e.corrected(t.xy, sum, e.bin.units), r[1].odd);
  }
  if (k < k_end) {
    e.storeRow(k, false, false, r[0]);
    if constexpr (Encoder<kAxes, T, kIsRegular>::kHasY) {
      e.storeRow(k, true, false, r[1]);
    }
  }
}

/// Even planes one cell ahead, odd planes behind them.
template <std::uint32_t kAxes, class T, bool kIsRegular>
__device__ __forceinline__ void encodeColumn(const Encoder<kAxes, T, kIsRegular>& e,
                                             const Exchange& exchange,
                                             BaseTile<kAxes>& tile,
                                             std::int32_t* plane,
                                             std::uint32_t place,
                                             std::uint32_t k_begin,
                                             std::uint32_t k_end) {
  using E = Encoder<kAxes, T, kIsRegular>;
  constexpr bool kIsCube = kAxes == kXyz;
  const std::int32_t units = e.bin.units;
  PlanePart t[4];  // cells k - 1 to k + 2
#pragma unroll
  for (int n = 0; n < 3; ++n) {
    tile.load(std::int64_t{k_begin} - 1 + n);
    tile.put(plane);
    __syncthreads();
    t[n] = e.partAt(plane + place, tile.pitch);
    __syncthreads();
  }
  tile.load(std::int64_t{k_begin} + 2);
  Ahead<T> ahead = {};
  EvenCodes here = {};
  Pair<std::int32_t> r[2] = {};
  {
    Pair<T> first[2] = {};
    first[0] = e.values(k_begin, false, false);
    first[1] = e.values(k_begin, true, false);
    encodeEven(e, exchange, k_begin, k_end, first, t[1], here, r);
    __syncthreads();
    encodeEvenXy(e, exchange, k_begin, k_end, first[1].odd, t[1], here, r);
  }
  loadAhead(e, k_begin, ahead);
  tile.put(plane);
  __syncthreads();
  tile.load(std::int64_t{k_begin} + 3);
  for (std::uint32_t k = k_begin; k < k_end; ++k) {
    t[3] = e.partAt(plane + place, tile.pitch);
    EvenCodes next = {};
    encodeEven(e, exchange, k + 1, k_end, ahead.even, t[2], next, r);
    Pair<std::int32_t> q[2] = {};
    const std::int32_t cz = e.code(kZ, k, k_end, ahead.odd[0].even,
                                   between(e.bends[2], t[0].b, t[1].b, t[2].b, t[3].b), q[0].even);
    if constexpr (kAxes != kZ) {
      exchange.put(2, cz);
    }
    __syncthreads();
    const std::int32_t right_z = E::kHasX ? exchange.right(2) : 0;
    const std::int32_t below_z = E::kHasY ? exchange.below(2) : 0;
    const std::int32_t diagonal_z = kIsCube ? exchange.diagonal(2) : 0;
    encodeEvenXy(e, exchange, k + 1, k_end, ahead.even[1].odd, t[2], next, r);
    std::int32_t cxz = 0;
    std::int32_t cyz = 0;
    if constexpr (E::kHasX) {
      const std::int32_t p = between(e.bends[2], t[0].x, t[1].x, t[2].x, t[3].x);
      const std::int32_t sum =
          e.pairSum(kX | kZ, bits::wrapAdd(cz, right_z), bits::wrapAdd(here.x, next.x));
      cxz = e.code(kX | kZ, k, k_end, ahead.odd[0].odd, e.corrected(p, sum, units), q[0].odd);
    }
    if constexpr (E::kHasY) {
      const std::int32_t p = between(e.bends[2], t[0].y, t[1].y, t[2].y, t[3].y);
      const std::int32_t sum =
          e.pairSum(kY | kZ, bits::wrapAdd(cz, below_z), bits::wrapAdd(here.y, next.y));
      cyz = e.code(kY | kZ, k, k_end, ahead.odd[1].even, e.corrected(p, sum, units), q[1].even);
    }
    if constexpr (kIsCube) {
      exchange.put(3, cxz);
      exchange.put(4, cyz);
    }
    tile.put(plane);
    const T last = ahead.odd[1].odd;
    if (k + 1 < k_end) {
      loadAhead(e, k + 1, ahead);
    }
    __syncthreads();
    if (k + 2 < k_end) {
      tile.load(std::int64_t{k} + 4);
    }
    if constexpr (kIsCube) {
      using bits::wrapAdd;
      const std::int32_t sums[6] = {wrapAdd(cyz, exchange.right(4)),
                                    wrapAdd(cxz, exchange.below(3)),
                                    wrapAdd(here.xy, next.xy),
                                    wrapAdd(here.sx, next.sx),
                                    wrapAdd(here.sy, next.sy),
                                    wrapAdd(wrapAdd(cz, right_z), wrapAdd(below_z, diagonal_z))};
      const std::int32_t p = between(e.bends[2], t[0].xy, t[1].xy, t[2].xy, t[3].xy);
      if (e.is_own) {
        e.code(kXyz, k, k_end, last, e.corrected(p, e.cubeSum(sums), units), q[1].odd);
      }
    }
    e.storeRow(k, false, true, q[0]);
    if constexpr (E::kHasY) {
      e.storeRow(k, true, true, q[1]);
    }
    t[0] = t[1];
    t[1] = t[2];
    t[2] = t[3];
    here = next;
  }
}

template <std::uint32_t kAxes, class T, bool kIsRegular>
__global__ void __launch_bounds__(kLevelThreads, 2)
    encodeLevelKernel(const __grid_constant__ LevelJob job) {
  extern __shared__ std::int32_t shared[];
  const TilePlace tile = tilePlace(job);
  if constexpr (kAxes == kX) {
    const Pair<std::uint32_t> cell = cellOf(job, threadIdx.x);
    const Encoder<kAxes, T, kIsRegular> e(job, tile.x + cell.even, tile.y + cell.odd,
                                          cell.odd < job.tile_y);
    const std::int32_t* const base =
        static_cast<const std::int32_t*>(job.base.data) + placeIn(job.base, e.ci, e.cj, 0);
#pragma unroll 2
    for (std::uint32_t k = tile.k_begin; k < tile.k_end; ++k) {
      const PlanePart t = e.partAt(base + min(k, job.cells[2] - 1) * job.base.step[2], 0);
      Pair<std::int32_t> r = {t.b, 0};
      e.code(kX, k, tile.k_end, e.values(k, false, false).odd, t.x, r.odd);
      e.storeRow(k, false, false, r);
    }
  } else {
    const HaloCell at = haloCellOf<kAxes>(job);
    const Encoder<kAxes, T, kIsRegular> e(job, tile.x + at.cell.even, tile.y + at.cell.odd,
                                          at.is_own);
    BaseTile<kAxes> base(job, tile.x, tile.y);
    encodeColumn(e, exchangeOf<kAxes>(job, at, shared + BaseTile<kAxes>::memory(job)), base, shared,
                 base.place(at.cell), tile.k_begin, tile.k_end);
  }
}

}  // namespace

void launchEncodeLevel(const LevelJob& job, const cuda::Call& call) {
  LevelJob shaped = job;
  const unsigned n_blocks = shapeLevel(shaped);
  withLevelKind(shaped, shaped.source.type, [&]<std::uint32_t kAxes, class T, bool kIsRegular>() {
    const HaloShape shape = haloShape<kAxes>(shaped, 1);
    call.launch("interp encode level", encodeLevelKernel<kAxes, T, kIsRegular>, n_blocks,
                shape.n_threads, shape.shared_bytes, shaped);
  });
}

}  // namespace fz::interp::device
