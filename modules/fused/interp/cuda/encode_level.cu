// A level, to codes.
#include "backends/cuda/launch.h"
#include "fused/interp/cuda/level.cuh"
#include "fused/interp/cuda/policy.h"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

/// Places of the field where the points of a cell lie.
template <std::uint32_t kAxes>
__device__ __forceinline__ std::uint64_t placeOf(const LevelJob& job,
                                                 const Points& cell,
                                                 std::uint32_t odd) {
  std::uint32_t at[3];
#pragma unroll
  for (unsigned axis = 0; axis < 3; ++axis) {
    at[axis] = (kAxes >> axis & 1) != 0 ? 2 * cell[axis] + (odd >> axis & 1) : cell[axis];
  }
  return fieldPlace(job.marks.places, at[0], at[1], at[2]);
}

/// Lists the points of a cell whose codes did not fit: a bit per class.
template <std::uint32_t kAxes>
__device__ __noinline__ void markAll(const LevelJob& job, Points cell, std::uint32_t bits) {
  for (; bits != 0; bits &= bits - 1) {
    const auto odd = static_cast<std::uint32_t>(__ffs(static_cast<int>(bits)) - 1);
    markOutlier(job.marks.words, placeOf<kAxes>(job, cell, odd));
  }
}

/// Lists a point if what its code gives misses the bound.
template <std::uint32_t kAxes>
__device__ __noinline__ void testOne(const LevelJob& job,
                                     Points cell,
                                     std::uint32_t odd,
                                     std::int32_t r) {
  const std::uint64_t place = placeOf<kAxes>(job, cell, odd);
  if (missesBound(job.marks, place, r, *job.setup)) {
    markOutlier(job.marks.words, place);
  }
}

/// What is to be done with the points of a cell in a plane, a bit per class.
struct PlaneWork {
  std::uint32_t k;
  std::uint32_t valid;   ///< there is a value
  std::uint32_t stored;  ///< here, and not by another thread; with what fills up blocks
  std::uint32_t misfit;  ///< the code did not fit
};

/// Of a thread that codes its column; codes of neighbours come by shared memory.
template <std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
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
  const CodeColumns<TCode, kIsRegular> codes;
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

  __device__ __forceinline__ bool isGap(T value) const {
    if constexpr (std::is_same_v<T, std::int32_t>) {
      return value == kNoValue;
    } else {
      return !isCodable(scaled(value, scale));
    }
  }
  /// The values of the two rows of a plane: of the even points nobody asks in an even one.
  __device__ __forceinline__ PlaneWork work(std::uint32_t k,
                                            bool is_odd_z,
                                            std::uint32_t k_end,
                                            const Pair<T> (&v)[2]) const {
    const std::uint32_t z = is_odd_z ? kZ : 0;
    PlaneWork work = {k, this->pointsIn(k, is_odd_z), 0, 0};
    if (is_own && k < k_end) {
      work.stored = this->template placesIn<kIsRegular>(k, is_odd_z);
    }
    if (has_gaps) {
      const std::uint32_t gaps =
          (isGap(v[0].even) ? 1u << z : 0u) | (isGap(v[0].odd) ? 1u << (kX | z) : 0u) |
          (isGap(v[1].even) ? 1u << (kY | z) : 0u) | (isGap(v[1].odd) ? 1u << (kX | kY | z) : 0u);
      work.valid &= ~gaps;
    }
    return work;
  }

  /// Codes a value, predicted as p; 0 where there is none. r becomes what the code gives.
  template <bool kShifts>
  __device__ __forceinline__ std::int32_t code(
      std::uint32_t odd, PlaneWork& work, T value, std::int32_t p, std::int32_t& r) const {
    const std::int32_t distance = bits::wrapSub(fixedOf(value, false, scale), p);
    const std::int32_t wanted = kShifts ? codeOf<true>(distance, bin) : codeOf(distance, bin);
    std::int32_t c = clampCode<TCode>(wanted);
    if constexpr (sizeof(TCode) == 2) {
      work.misfit |= c != wanted ? 1u << odd : 0u;
    }
    c = (work.valid >> odd & 1) != 0 ? c : 0;
    r = bits::wrapAdd(p, wrapMul(c, bin.units));
    if (is_tested && (work.valid & work.stored) >> odd & 1) {
      testOne<kAxes>(job, {{this->i, this->j, work.k}}, odd, r);
    }
    if ((work.stored >> odd & 1) != 0) {
      *codes.place(odd, work.k) = static_cast<TCode>(c);
    }
    return c;
  }
  __device__ __forceinline__ void finish(const PlaneWork& work) const {
    const std::uint32_t listed = work.misfit & work.valid & work.stored;
    if (listed != 0) {
      markAll<kAxes>(job, {{this->i, this->j, work.k}}, listed);
    }
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
template <std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__device__ __forceinline__ void loadAhead(const Encoder<kAxes, T, TCode, kIsRegular>& e,
                                          std::uint32_t k,
                                          Ahead<T>& ahead) {
  using E = Encoder<kAxes, T, TCode, kIsRegular>;
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
template <bool kShifts, std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__device__ __forceinline__ void encodeEven(const Encoder<kAxes, T, TCode, kIsRegular>& e,
                                           const Exchange& exchange,
                                           PlaneWork& work,
                                           const Pair<T> (&values)[2],
                                           const PlanePart& t,
                                           EvenCodes& codes,
                                           Pair<std::int32_t> (&r)[2]) {
  using E = Encoder<kAxes, T, TCode, kIsRegular>;
  r[0].even = t.b;
  if constexpr (E::kHasX) {
    codes.x = e.template code<kShifts>(kX, work, values[0].odd, t.x, r[0].odd);
  }
  if constexpr (E::kHasY) {
    codes.y = e.template code<kShifts>(kY, work, values[1].even, t.y, r[1].even);
  }
  if constexpr (kAxes == kXyz) {
    exchange.put(0, codes.x);
    exchange.put(1, codes.y);
  }
}

/// Behind a barrier: of xy; then the plane is complete.
template <bool kShifts, std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__device__ __forceinline__ void encodeEvenXy(const Encoder<kAxes, T, TCode, kIsRegular>& e,
                                             const Exchange& exchange,
                                             PlaneWork& work,
                                             std::uint32_t k_end,
                                             T value,
                                             const PlanePart& t,
                                             EvenCodes& codes,
                                             Pair<std::int32_t> (&r)[2]) {
  if constexpr (kAxes == kXyz) {
    codes.sx = bits::wrapAdd(codes.x, exchange.below(0));
    codes.sy = bits::wrapAdd(codes.y, exchange.right(1));
    const std::int32_t sum = e.pairSum(kX | kY, codes.sy, codes.sx);
    codes.xy = e.template code<kShifts>(kX | kY, work, value, e.corrected(t.xy, sum, e.bin.units),
                                        r[1].odd);
  }
  e.finish(work);
  const std::uint32_t k = work.k;
  if (k < k_end) {
    e.storeRow(k, false, false, r[0]);
    if constexpr (Encoder<kAxes, T, TCode, kIsRegular>::kHasY) {
      e.storeRow(k, true, false, r[1]);
    }
  }
}

/// Even planes one cell ahead, odd planes behind them.
template <bool kShifts, std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__device__ __forceinline__ void encodeColumn(const Encoder<kAxes, T, TCode, kIsRegular>& e,
                                             const Exchange& exchange,
                                             BaseTile<kAxes>& tile,
                                             std::int32_t* plane,
                                             std::uint32_t place,
                                             std::uint32_t k_begin,
                                             std::uint32_t k_end) {
  using E = Encoder<kAxes, T, TCode, kIsRegular>;
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
    PlaneWork work = e.work(k_begin, false, k_end, first);
    encodeEven<kShifts>(e, exchange, work, first, t[1], here, r);
    __syncthreads();
    encodeEvenXy<kShifts>(e, exchange, work, k_end, first[1].odd, t[1], here, r);
  }
  loadAhead(e, k_begin, ahead);
  tile.put(plane);
  __syncthreads();
  tile.load(std::int64_t{k_begin} + 3);
  for (std::uint32_t k = k_begin; k < k_end; ++k) {
    t[3] = e.partAt(plane + place, tile.pitch);
    EvenCodes next = {};
    PlaneWork even = e.work(k + 1, false, k_end, ahead.even);
    PlaneWork odd = e.work(k, true, k_end, ahead.odd);
    encodeEven<kShifts>(e, exchange, even, ahead.even, t[2], next, r);
    Pair<std::int32_t> q[2] = {};
    const std::int32_t cz = e.template code<kShifts>(
        kZ, odd, ahead.odd[0].even, between(e.bends[2], t[0].b, t[1].b, t[2].b, t[3].b), q[0].even);
    if constexpr (kAxes != kZ) {
      exchange.put(2, cz);
    }
    __syncthreads();
    const std::int32_t right_z = E::kHasX ? exchange.right(2) : 0;
    const std::int32_t below_z = E::kHasY ? exchange.below(2) : 0;
    const std::int32_t diagonal_z = kIsCube ? exchange.diagonal(2) : 0;
    encodeEvenXy<kShifts>(e, exchange, even, k_end, ahead.even[1].odd, t[2], next, r);
    std::int32_t cxz = 0;
    std::int32_t cyz = 0;
    if constexpr (E::kHasX) {
      const std::int32_t p = between(e.bends[2], t[0].x, t[1].x, t[2].x, t[3].x);
      const std::int32_t sum =
          e.pairSum(kX | kZ, bits::wrapAdd(cz, right_z), bits::wrapAdd(here.x, next.x));
      cxz = e.template code<kShifts>(kX | kZ, odd, ahead.odd[0].odd, e.corrected(p, sum, units),
                                     q[0].odd);
    }
    if constexpr (E::kHasY) {
      const std::int32_t p = between(e.bends[2], t[0].y, t[1].y, t[2].y, t[3].y);
      const std::int32_t sum =
          e.pairSum(kY | kZ, bits::wrapAdd(cz, below_z), bits::wrapAdd(here.y, next.y));
      cyz = e.template code<kShifts>(kY | kZ, odd, ahead.odd[1].even, e.corrected(p, sum, units),
                                     q[1].even);
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
        e.template code<kShifts>(kXyz, odd, last, e.corrected(p, e.cubeSum(sums), units), q[1].odd);
      }
    }
    e.finish(odd);
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

template <std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__global__ void __launch_bounds__(kLevelThreads, 2)
    encodeLevelKernel(const __grid_constant__ LevelJob job) {
  extern __shared__ std::int32_t shared[];
  if (job.is_tiled && !looksAtAll(job)) {
    return;
  }
  const TilePlace tile = tilePlace(job);
  if constexpr (kAxes == kX) {
    const Pair<std::uint32_t> cell = cellOf(job, threadIdx.x);
    const Encoder<kAxes, T, TCode, kIsRegular> e(job, tile.x + cell.even, tile.y + cell.odd,
                                                 cell.odd < job.tile_y);
    const std::int32_t* const base =
        static_cast<const std::int32_t*>(job.base.data) + placeIn(job.base, e.ci, e.cj, 0);
#pragma unroll 2
    for (std::uint32_t k = tile.k_begin; k < tile.k_end; ++k) {
      const PlanePart t = e.partAt(base + min(k, job.cells[2] - 1) * job.base.step[2], 0);
      Pair<std::int32_t> r = {t.b, 0};
      const Pair<T> v[2] = {e.values(k, false, false), {}};
      PlaneWork work = e.work(k, false, tile.k_end, v);
      e.template code<false>(kX, work, v[0].odd, t.x, r.odd);
      e.finish(work);
      e.storeRow(k, false, false, r);
    }
  } else {
    const HaloCell at = haloCellOf<kAxes>(job);
    const Encoder<kAxes, T, TCode, kIsRegular> e(job, tile.x + at.cell.even, tile.y + at.cell.odd,
                                                 at.is_own);
    BaseTile<kAxes> base(job, tile.x, tile.y);
    const Exchange exchange = exchangeOf<kAxes>(job, at, shared + BaseTile<kAxes>::memory(job));
    if (kIsRegular && e.bin.factor == 0) {
      encodeColumn<kIsRegular>(e, exchange, base, shared, base.place(at.cell), tile.k_begin,
                               tile.k_end);
    } else {
      encodeColumn<false>(e, exchange, base, shared, base.place(at.cell), tile.k_begin, tile.k_end);
    }
  }
}

}  // namespace

void launchEncodeLevel(const LevelJob& job, const cuda::Call& call) {
  LevelJob shaped = job;
  const unsigned n_blocks = shapeLevel(shaped);
  shaped.is_tiled = launchEncodeTiles(shaped, call);
  withLevelKind(shaped, shaped.source.type,
                [&]<std::uint32_t kAxes, class T, class TCode, bool kIsRegular>() {
                  const HaloShape shape = haloShape<kAxes>(shaped, 1);
                  call.launch("interp encode level", encodeLevelKernel<kAxes, T, TCode, kIsRegular>,
                              n_blocks, shape.n_threads, shape.shared_bytes, shaped);
                });
}

}  // namespace fz::interp::device
