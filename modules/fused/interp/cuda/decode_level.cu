// A level, from codes.
#include "backends/cuda/launch.h"
#include "fused/interp/cuda/level.cuh"
#include "fused/interp/cuda/policy.h"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

/// Of a thread that decodes its column; codes of neighbours come by shared memory.
template <std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
struct Decoder : Column<kAxes> {
  using Base = Column<kAxes>;
  using Base::job;
  using Base::kHasX;
  using Base::kHasY;

  const Scale scale;
  const std::int32_t units;
  const bool is_own;
  const CodeColumns<TCode, kIsRegular> codes;
  T* result;

  __device__ __forceinline__
  Decoder(const LevelJob& level, std::uint32_t x, std::uint32_t y, bool is_own_column)
      : Base(level, x, y),
        scale(level.setup->scale),
        units(binOf(*level.setup, level.halvings).units),
        is_own(is_own_column),
        codes(level, x, y) {
    result = static_cast<T*>(job.result.data) + this->rowPlace(job.result, false);
  }
  /// 0 where there is no such point; `points` has a bit for each class.
  __device__ __forceinline__ std::int32_t code(std::uint32_t odd,
                                               std::uint32_t k,
                                               std::uint32_t points) const {
    return (points >> odd & 1) != 0 ? __ldg(codes.place(odd, k)) : 0;
  }
  __device__ __forceinline__ std::int32_t found(std::int32_t p, std::int32_t code) const {
    return bits::wrapAdd(p, wrapMul(code, units));
  }
  __device__ __forceinline__ void storeRow(std::uint32_t k,
                                           bool is_odd_y,
                                           bool is_odd_z,
                                           const Pair<std::int32_t>& r) const {
    if (is_own) {
      this->store(result, k, is_odd_y, is_odd_z, r, scale);
    }
  }
};

/// Codes of an even plane and the odd plane before it.
struct CellCodes {
  std::int32_t x, y, xy;
  std::int32_t z, xz, yz, xyz;
};

template <std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__device__ __forceinline__ void loadEven(const Decoder<kAxes, T, TCode, kIsRegular>& d,
                                         std::uint32_t k,
                                         CellCodes& codes) {
  using D = Decoder<kAxes, T, TCode, kIsRegular>;
  [[maybe_unused]] const std::uint32_t points = d.pointsIn(k, false);
  if constexpr (D::kHasX) {
    codes.x = d.code(kX, k, points);
  }
  if constexpr (D::kHasY) {
    codes.y = d.code(kY, k, points);
  }
  if constexpr (kAxes == kXyz) {
    codes.xy = d.code(kX | kY, k, points);
  }
}
template <std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__device__ __forceinline__ void loadOdd(const Decoder<kAxes, T, TCode, kIsRegular>& d,
                                        std::uint32_t k,
                                        CellCodes& codes) {
  using D = Decoder<kAxes, T, TCode, kIsRegular>;
  const std::uint32_t points = d.pointsIn(k, true);
  codes.z = d.code(kZ, k, points);
  if constexpr (D::kHasX) {
    codes.xz = d.code(kX | kZ, k, points);
  }
  if constexpr (D::kHasY) {
    codes.yz = d.code(kY | kZ, k, points);
  }
  if constexpr (kAxes == kXyz) {
    codes.xyz = d.code(kXyz, k, points);
  }
}

/// An even plane, whose codes along x and y neighbours have put.
template <std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__device__ __forceinline__ void decodeEven(const Decoder<kAxes, T, TCode, kIsRegular>& d,
                                           const Exchange& exchange,
                                           std::uint32_t k,
                                           const PlanePart& t,
                                           const CellCodes& codes,
                                           std::int32_t& sx,
                                           std::int32_t& sy,
                                           bool is_stored) {
  using D = Decoder<kAxes, T, TCode, kIsRegular>;
  Pair<std::int32_t> r[2] = {};
  r[0] = {t.b, D::kHasX ? d.found(t.x, codes.x) : 0};
  if constexpr (D::kHasY) {
    r[1].even = d.found(t.y, codes.y);
  }
  if constexpr (kAxes == kXyz) {
    sx = bits::wrapAdd(codes.x, exchange.below(0));
    sy = bits::wrapAdd(codes.y, exchange.right(1));
    r[1].odd = d.found(d.corrected(t.xy, d.pairSum(kX | kY, sy, sx), d.units), codes.xy);
  }
  if (is_stored) {
    d.storeRow(k, false, false, r[0]);
    if constexpr (D::kHasY) {
      d.storeRow(k, true, false, r[1]);
    }
  }
}

template <std::uint32_t kAxes>
__device__ __forceinline__ void putCodes(const Exchange& exchange, const CellCodes& codes) {
  if constexpr (kAxes == kXyz) {
    exchange.put(0, codes.x);
    exchange.put(1, codes.y);
    exchange.put(3, codes.xz);
    exchange.put(4, codes.yz);
  }
  if constexpr (kAxes != kZ) {
    exchange.put(2, codes.z);
  }
}

/// An odd plane. Codes and sums of the even planes around it: here and next.
template <std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__device__ __forceinline__ void decodeOdd(const Decoder<kAxes, T, TCode, kIsRegular>& d,
                                          const Exchange& exchange,
                                          std::uint32_t k,
                                          const PlanePart (&t)[4],
                                          const CellCodes& here,
                                          const CellCodes& next,
                                          std::int32_t sx,
                                          std::int32_t sy) {
  using bits::wrapAdd;
  using D = Decoder<kAxes, T, TCode, kIsRegular>;
  const std::int32_t right_z = D::kHasX ? exchange.right(2) : 0;
  const std::int32_t below_z = D::kHasY ? exchange.below(2) : 0;
  const std::int32_t z = next.z;
  Pair<std::int32_t> r[2] = {};
  r[0].even = d.found(between(d.bends[2], t[0].b, t[1].b, t[2].b, t[3].b), z);
  if constexpr (D::kHasX) {
    const std::int32_t p = between(d.bends[2], t[0].x, t[1].x, t[2].x, t[3].x);
    const std::int32_t sum = d.pairSum(kX | kZ, wrapAdd(z, right_z), wrapAdd(here.x, next.x));
    r[0].odd = d.found(d.corrected(p, sum, d.units), next.xz);
  }
  if constexpr (D::kHasY) {
    const std::int32_t p = between(d.bends[2], t[0].y, t[1].y, t[2].y, t[3].y);
    const std::int32_t sum = d.pairSum(kY | kZ, wrapAdd(z, below_z), wrapAdd(here.y, next.y));
    r[1].even = d.found(d.corrected(p, sum, d.units), next.yz);
  }
  if constexpr (kAxes == kXyz) {
    const std::int32_t sums[6] = {
        wrapAdd(next.yz, exchange.right(4)),
        wrapAdd(next.xz, exchange.below(3)),
        wrapAdd(here.xy, next.xy),
        sx,
        sy,
        wrapAdd(wrapAdd(z, right_z), wrapAdd(below_z, exchange.diagonal(2)))};
    const std::int32_t p = between(d.bends[2], t[0].xy, t[1].xy, t[2].xy, t[3].xy);
    r[1].odd = d.found(d.corrected(p, d.cubeSum(sums), d.units), next.xyz);
  }
  d.storeRow(k, false, true, r[0]);
  if constexpr (D::kHasY) {
    d.storeRow(k, true, true, r[1]);
  }
}

/// Planes of the base and codes stand in shared memory twice, so that a step has one barrier.
template <std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__device__ __forceinline__ void decodeColumn(const Decoder<kAxes, T, TCode, kIsRegular>& d,
                                             Exchange exchange,
                                             std::uint32_t n_exchange,
                                             BaseTile<kAxes>& tile,
                                             std::int32_t* plane,
                                             std::uint32_t place,
                                             std::uint32_t k_begin,
                                             std::uint32_t k_end) {
  const std::uint32_t n_plane = BaseTile<kAxes>::memory(d.job);
  PlanePart t[4];
#pragma unroll
  for (int n = 0; n < 3; ++n) {
    tile.load(std::int64_t{k_begin} - 1 + n);
    tile.put(plane);
    __syncthreads();
    t[n] = d.partAt(plane + place, tile.pitch);
    __syncthreads();
  }
  CellCodes here = {};
  CellCodes next = {};
  std::int32_t sx = 0;
  std::int32_t sy = 0;
  loadEven(d, k_begin, here);
  putCodes<kAxes>(exchange, here);
  tile.load(std::int64_t{k_begin} + 2);
  loadEven(d, k_begin + 1, next);
  loadOdd(d, k_begin, next);
  __syncthreads();
  decodeEven(d, exchange, k_begin, t[1], here, sx, sy, true);
  for (std::uint32_t k = k_begin; k < k_end; ++k) {
    const std::uint32_t copy = (k - k_begin + 1) & 1;
    std::int32_t* const own_plane = plane + copy * n_plane;
    Exchange own = exchange;
    own.memory += copy * n_exchange;
    putCodes<kAxes>(own, next);
    tile.put(own_plane);
    __syncthreads();
    CellCodes ahead = {};
    if (k + 1 < k_end) {
      tile.load(std::int64_t{k} + 3);
      loadEven(d, k + 2, ahead);
      loadOdd(d, k + 1, ahead);
    }
    t[3] = d.partAt(own_plane + place, tile.pitch);
    std::int32_t sx1 = 0;
    std::int32_t sy1 = 0;
    decodeEven(d, own, k + 1, t[2], next, sx1, sy1, k + 1 < k_end);
    decodeOdd(d, own, k, t, here, next, bits::wrapAdd(sx, sx1), bits::wrapAdd(sy, sy1));
    t[0] = t[1];
    t[1] = t[2];
    t[2] = t[3];
    here = next;
    next = ahead;
    sx = sx1;
    sy = sy1;
  }
}

template <std::uint32_t kAxes, class T, class TCode, bool kIsRegular>
__global__ void __launch_bounds__(kLevelThreads, 2)
    decodeLevelKernel(const __grid_constant__ LevelJob job) {
  extern __shared__ std::int32_t shared[];
  if (job.setup->is_ok == 0) {
    return;
  }
  const TilePlace tile = tilePlace(job);
  const std::uint32_t k_end = min(tile.k_end, job.cells[2]);
  if (tile.k_begin >= k_end) {
    return;  // nothing but what fills up blocks
  }
  if constexpr (kAxes == kX) {
    const Pair<std::uint32_t> cell = cellOf(job, threadIdx.x);
    const Decoder<kAxes, T, TCode, kIsRegular> d(job, tile.x + cell.even, tile.y + cell.odd,
                                                 cell.odd < job.tile_y);
    const std::int32_t* const base =
        static_cast<const std::int32_t*>(job.base.data) + placeIn(job.base, d.ci, d.cj, 0);
#pragma unroll 2
    for (std::uint32_t k = tile.k_begin; k < k_end; ++k) {
      const PlanePart t = d.partAt(base + k * job.base.step[2], 0);
      d.storeRow(k, false, false, {t.b, d.found(t.x, d.code(kX, k, d.exists))});
    }
  } else {
    const HaloCell at = haloCellOf<kAxes>(job);
    const Decoder<kAxes, T, TCode, kIsRegular> d(job, tile.x + at.cell.even, tile.y + at.cell.odd,
                                                 at.is_own);
    BaseTile<kAxes> base(job, tile.x, tile.y);
    const std::uint32_t n_exchange = Exchange::kArrays * Exchange::arrayValues(job);
    decodeColumn(d, exchangeOf<kAxes>(job, at, shared + 2 * BaseTile<kAxes>::memory(job)),
                 n_exchange, base, shared, base.place(at.cell), tile.k_begin, k_end);
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
  job.is_regular = true;
  for (std::uint32_t odd = 1; odd < job.axes; ++odd) {
    if ((odd & ~job.axes) == 0) {
      for (unsigned axis = 0; axis < 3; ++axis) {
        job.is_regular =
            job.is_regular && job.classes[odd].log2[axis] == job.classes[job.axes].log2[axis];
      }
    }
  }
  constexpr std::uint64_t kFits = 0xffffffffu;
  for (std::uint32_t odd = 1; odd <= job.axes; ++odd) {
    const CodePlaces& array = job.classes[odd];
    const std::uint64_t block_bytes = 64 * std::uint64_t{job.code_bytes};
    job.is_regular = job.is_regular && array.block_step[0] <= 1 &&
                     array.block_step[1] * block_bytes <= kFits &&
                     array.block_step[2] * block_bytes <= kFits;
    job.start_bytes[odd] = array.start * job.code_bytes;
    job.row_bytes[odd] = static_cast<std::uint32_t>(array.block_step[1] * block_bytes);
    job.plane_bytes[odd] = static_cast<std::uint32_t>(array.block_step[2] * block_bytes);
  }
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
  if (launchDecodeTiles(shaped, call)) {
    return;
  }
  withLevelKind(shaped, shaped.result.type,
                [&]<std::uint32_t kAxes, class T, class TCode, bool kIsRegular>() {
                  const HaloShape shape = haloShape<kAxes>(shaped, 2);
                  call.launch("interp decode level", decodeLevelKernel<kAxes, T, TCode, kIsRegular>,
                              n_blocks, shape.n_threads, shape.shared_bytes, shaped);
                });
}

}  // namespace fz::interp::device
