// A level along all axes, to codes, where codes stand in blocks of 4 x 4 x 4 and rows can be copied
// in pieces of 16 bytes: rows of the source and planes of the base come by asynchronous copies some
// planes ahead, codes of four planes are gathered in shared memory and leave as whole blocks.
#include "fused/interp/cuda/tile.cuh"

namespace fz::interp::device {

namespace {

// Cells of a tile, and what lies in shared memory, in words. A halo of a cell on the high sides is
// coded too.
constexpr std::uint32_t kTileY = 8;
constexpr unsigned kOwnThreads = kTileX * kTileY;
constexpr unsigned kTileThreads = kOwnThreads + 64;  // the row below, the column on the right
constexpr unsigned kStages = 4;                      // of copies
constexpr std::uint32_t kBaseRows = kTileY + 4;
constexpr std::uint32_t kBaseWords = kBaseRows * kPitch;
constexpr std::uint32_t kRows = 2 * (kTileY + 1);
constexpr std::uint32_t kRowPieces = 17;
constexpr std::uint32_t kRowPitch = 4 * kRowPieces;
constexpr std::uint32_t kStageWords = 2 * kRows * kRowPitch + kBaseWords;
constexpr std::uint32_t kCodeRows = kTileY + 2;
constexpr std::uint32_t kCodeWords = 5 * kCodeRows * kPitch;
constexpr std::uint32_t kBlocksDown = kTileY / 4;
static_assert(kRows * kRowPieces <= kTileThreads && kBaseRows * kBasePieces <= kTileThreads);

/// Of a block of codes that waits to be written; the padding spreads banks.
template <class TCode>
constexpr std::uint32_t kBlockWords = kBlockCodes * sizeof(TCode) / 4 + 4;
template <class TCode>
constexpr std::uint32_t kOutWords = 7 * kBlocksAcross* kBlocksDown* kBlockWords<TCode>;
template <class TCode>
constexpr std::size_t kTileBytes = 4 * (kStages * kStageWords + kCodeWords + kOutWords<TCode>);

enum CodeArray5 : std::uint32_t { kCodesX, kCodesY, kCodesZ, kCodesXz, kCodesYz };

/// The copies of a thread: a piece of a row, in two planes at once, and a piece of the base.
struct TileCopies {
  const LevelJob& job;
  const BaseCopy copyBase;
  const std::int32_t* source;
  std::uint32_t row_to;

  __device__ __forceinline__ TileCopies(const LevelJob& level, std::uint32_t x, std::uint32_t y)
      : job(level), copyBase(level, x, y, kBaseRows) {
    const std::uint32_t row = threadIdx.x / kRowPieces;
    const std::uint32_t piece = threadIdx.x % kRowPieces;
    source = static_cast<const std::int32_t*>(job.source.data) +
             placeIn(job.source, min(2 * x + 4 * piece, (job.n[0] - 1) / 4 * 4),
                     min(2 * y + row, job.n[1] - 1), 0);
    row_to = row * kRowPitch + 4 * piece;
  }
  /// What a step needs: the odd plane of a cell, the even one of the next, the base two cells on.
  __device__ __forceinline__ void copyStage(std::uint32_t k, std::int32_t* stage) const {
    if (threadIdx.x < kRows * kRowPieces) {
      const std::int64_t last = std::int64_t{job.n[2]} - 1;
      const std::int64_t even = min(2 * std::int64_t{k} + 2, last);
      const std::int64_t odd = min(2 * std::int64_t{k} + 1, last);
      cuda::copyAsync<16>(stage + row_to, source + even * job.source.step[2], true);
      cuda::copyAsync<16>(stage + kRows * kRowPitch + row_to, source + odd * job.source.step[2],
                          true);
    }
    copyBase(std::int64_t{k} + 2, stage + 2 * kRows * kRowPitch);
  }
};

/// The values of a cell's points in a plane.
template <class T>
struct PlaneValues {
  Pair<T> rows[2];
};
template <class T>
__device__ __forceinline__ PlaneValues<T> readPlane(const std::int32_t* rows,
                                                    std::uint32_t i,
                                                    std::uint32_t j) {
  const auto read = [&](std::uint32_t row) {
    const int2 pair = *reinterpret_cast<const int2*>(rows + row * kRowPitch + 2 * i);
    if constexpr (std::is_same_v<T, float>) {
      return Pair<T>{__int_as_float(pair.x), __int_as_float(pair.y)};
    } else {
      return Pair<T>{pair.x, pair.y};
    }
  };
  return {{read(2 * j), read(2 * j + 1)}};
}

/// Codes of the even plane of a cell, and sums with those of neighbours.
struct EvenCodes {
  std::int32_t x, y, xy, sx, sy;
};

/// Lists the points of a cell whose codes did not fit: a bit per class.
__device__ __noinline__ void markMisfits(const LevelJob& job, Points cell, std::uint32_t misfits) {
  for (; misfits != 0; misfits &= misfits - 1) {
    const auto odd = static_cast<std::uint32_t>(__ffs(static_cast<int>(misfits)) - 1);
    const std::uint32_t px = 2 * cell[0] + (odd & 1);
    const std::uint32_t py = 2 * cell[1] + (odd >> 1 & 1);
    const std::uint32_t pz = 2 * cell[2] + (odd >> 2);
    if (px < job.n[0] && py < job.n[1] && pz < job.n[2]) {
      markOutlier(job.marks.words, fieldPlace(job.marks.places, px, py, pz));
    }
  }
}

/// What a thread knows of its column of cells.
template <class T, class TCode, bool kShifts>
struct TileColumn {
  const LevelJob& job;
  const Scale scale;
  const Bin bin;
  Bend bends[3];
  std::int32_t* codes;  ///< that neighbours need
  std::int32_t* out;    ///< blocks that are to be written
  std::uint32_t x, y;   ///< of the tile
  std::uint32_t i, j;   ///< of the cell, in the tile
  bool is_own;
  bool may_put;  ///< not a thread that repeats another one
  bool is_stored;
  // All ones where the column has such points.
  std::uint32_t has_even, has_x, has_y, has_xy;

  __device__ __forceinline__ TileColumn(const LevelJob& level,
                                        std::uint32_t tile_x,
                                        std::uint32_t tile_y,
                                        std::int32_t* shared)
      : job(level),
        scale(level.setup->scale),
        bin(binOf(*level.setup, level.halvings)),
        codes(shared + kStages * kStageWords),
        out(codes + kCodeWords),
        x(tile_x),
        y(tile_y) {
#pragma unroll
    for (unsigned axis = 0; axis < 3; ++axis) {
      bends[axis] = bendOf(job.kernels[axis]);
    }
    const bool is_row = threadIdx.x < kOwnThreads + kTileX;
    is_own = threadIdx.x < kOwnThreads;
    may_put = is_row || threadIdx.x % 32 <= kTileY;
    i = is_row ? threadIdx.x % kTileX : kTileX;
    j = is_row ? threadIdx.x / kTileX : min(threadIdx.x % 32, kTileY);
    is_stored = is_own && job.result.exists && !job.result.is_for_tests;
    const auto mask = [](bool is_there) { return is_there ? ~0u : 0u; };
    const std::uint32_t fine_x = 2 * (x + i);
    const std::uint32_t fine_y = 2 * (y + j);
    has_even = mask(fine_x < job.n[0] && fine_y < job.n[1]);
    has_x = mask(fine_x + 1 < job.n[0] && fine_y < job.n[1]);
    has_y = mask(fine_x < job.n[0] && fine_y + 1 < job.n[1]);
    has_xy = mask(fine_x + 1 < job.n[0] && fine_y + 1 < job.n[1]);
  }

  __device__ __forceinline__ std::int32_t& code(CodeArray5 array,
                                                std::uint32_t down,
                                                std::uint32_t right) const {
    return codes[(array * kCodeRows + j + down) * kPitch + i + right];
  }
  __device__ __forceinline__ void putCode(CodeArray5 array, std::int32_t c) const {
    if (may_put) {
      code(array, 0, 0) = c;
    }
  }

  /// Codes a value, predicted as p; 0 where the mask is. r becomes what the code gives.
  __device__ __forceinline__ std::int32_t encode(T value,
                                                 std::int32_t p,
                                                 std::uint32_t mask,
                                                 std::uint32_t odd,
                                                 std::uint32_t& misfits,
                                                 std::int32_t& r) const {
    const std::int32_t distance = bits::wrapSub(fixedOf(value, false, scale), p);
    const std::int32_t wanted = kShifts ? codeOf<true>(distance, bin) : codeOf(distance, bin);
    std::int32_t c = clampCode<TCode>(wanted);
    if constexpr (sizeof(TCode) == 2) {
      misfits |= c != wanted ? 1u << odd : 0u;
    }
    c = static_cast<std::int32_t>(static_cast<std::uint32_t>(c) & mask);
    r = bits::wrapAdd(p, wrapMul(c, bin.units));
    return c;
  }
  __device__ __forceinline__ std::int32_t corrected(std::int32_t p,
                                                    std::uint32_t odd,
                                                    std::int32_t second,
                                                    std::int32_t first) const {
    return pairCorrected(job, odd, p, second, first, bin.units);
  }
  __device__ __forceinline__ PlanePart partAt(const std::int32_t* plane) const {
    return partOf(plane, bends, i, j);
  }

  /// A code of class `odd`, to its block.
  __device__ __forceinline__ void gather(std::uint32_t odd, std::uint32_t k, std::int32_t c) const {
    const std::uint32_t block =
        (odd - 1) * (kBlocksAcross * kBlocksDown) + j / 4 * kBlocksAcross + i / 4;
    auto* const to = reinterpret_cast<TCode*>(out + block * kBlockWords<TCode>);
    to[k % 4 * 16 + j % 4 * 4 + i % 4] = static_cast<TCode>(c);
  }
  /// The blocks of four planes from k on: those of a class in a row of blocks lie together.
  __device__ __forceinline__ void writeBlocks(std::uint32_t k) const {
    constexpr unsigned kPieces = kBlockCodes * sizeof(TCode) / 16;
    constexpr unsigned kRowThreads = kBlocksAcross * kPieces;
    constexpr unsigned kAtOnce = kOwnThreads / kRowThreads / kBlocksDown;  // classes
    if (!is_own) {
      return;
    }
    const unsigned in_row = threadIdx.x % kRowThreads;
    const unsigned row = threadIdx.x / kRowThreads;
    const std::uint32_t across = in_row / kPieces;
    const std::uint32_t down = row % kBlocksDown;
    const std::uint32_t block_x = x / 4 + across;
    const std::uint32_t block_y = y / 4 + down;
#pragma unroll
    for (std::uint32_t c = 0; c < 7; c += kAtOnce) {
      const std::uint32_t odd = c + row / kBlocksDown + 1;
      if (odd > kXyz) {
        continue;
      }
      const CodePlaces& array = job.classes[odd];
      const std::uint32_t block = ((odd - 1) * kBlocksDown + down) * kBlocksAcross + across;
      const uint4 piece =
          *reinterpret_cast<const uint4*>(out + block * kBlockWords<TCode> + in_row % kPieces * 4);
      if (4 * block_x < array.n_padded[0] && 4 * block_y < array.n_padded[1] &&
          k < array.n_padded[2]) {
        auto* const to = static_cast<std::uint8_t*>(job.codes) + job.start_bytes[odd] +
                         std::uint64_t{k / 4} * job.plane_bytes[odd] +
                         std::uint64_t{block_y} * job.row_bytes[odd];
        *reinterpret_cast<uint4*>(to + (block_x * kPieces + in_row % kPieces) * 16) = piece;
      }
    }
  }

  /// A row of the fine lattice.
  __device__ __forceinline__ void storeRow(std::uint32_t z,
                                           bool is_odd_y,
                                           const Pair<std::int32_t>& r) const {
    if (!is_stored || z >= job.n[2] || (is_odd_y ? has_y : has_even) == 0) {
      return;
    }
    std::int32_t* const to = static_cast<std::int32_t*>(job.result.data) +
                             placeIn(job.result, 2 * (x + i), 2 * (y + j) + (is_odd_y ? 1 : 0), z);
    if ((is_odd_y ? has_xy : has_x) == 0) {
      *to = r.even;
    } else {
      *reinterpret_cast<int2*>(to) = make_int2(r.even, r.odd);
    }
  }

  __device__ __forceinline__ void mark(std::uint32_t misfits, std::uint32_t k) const {
    if (misfits != 0 && is_own) {
      markMisfits(job, {{x + i, y + j, k}}, misfits);
    }
  }
};

/// Goes through cells along z.
template <class T, class TCode, bool kShifts>
class TileWalk {
 public:
  const TileColumn<T, TCode, kShifts> column;
  const TileCopies copies;
  std::int32_t* const stages;
  const std::uint32_t k_begin;
  const std::uint32_t k_end;
  PlanePart parts[4];  ///< of the base, at cells k - 1 to k + 2: a ring
  EvenCodes here;

  __device__ __forceinline__ void begin();
  template <unsigned kStep>
  __device__ __forceinline__ void step(std::uint32_t k);

 private:
  /// What a step has of the cell.
  struct Work {
    PlaneValues<T> even, odd;
    std::uint32_t is_even, is_odd;  ///< all ones where there are such planes
    std::uint32_t misfits = 0;      ///< of the odd plane
    std::uint32_t misfits_next = 0;
    EvenCodes next;
    std::int32_t z, xz, yz;
    std::int32_t z_right, z_down, z_four;  ///< sums of z at the cell and its neighbours
    Pair<std::int32_t> even_rows[2] = {};
    Pair<std::int32_t> odd_rows[2] = {};
  };
  /// The base between the planes of a cell.
  template <unsigned kStep>
  __device__ __forceinline__ std::int32_t alongZ(std::int32_t PlanePart::*part) const {
    return between(column.bends[2], parts[(kStep + 3) % 4].*part, parts[kStep].*part,
                   parts[(kStep + 1) % 4].*part, parts[(kStep + 2) % 4].*part);
  }
  /// Classes of one axis, of two, and of three; a barrier lies between each.
  template <unsigned kStep>
  __device__ __forceinline__ void encodeSingles(Work& w);
  template <unsigned kStep>
  __device__ __forceinline__ void encodePairs(Work& w);
  template <unsigned kStep>
  __device__ __forceinline__ void encodeCube(Work& w) const;
};

template <class T, class TCode, bool kShifts>
__device__ __forceinline__ void TileWalk<T, TCode, kShifts>::begin() {
  std::int32_t* const planes = column.out;  // which is free yet
  static_assert(kOutWords<TCode> >= 3 * kBaseWords);
#pragma unroll
  for (unsigned p = 0; p < 3; ++p) {
    copies.copyBase(std::int64_t{k_begin} - 1 + p, planes + p * kBaseWords);
  }
  commitCopies();
#pragma unroll
  for (unsigned s = 0; s < kStages; ++s) {
    copies.copyStage(k_begin + s, stages + s * kStageWords);
    commitCopies();
  }
  const LevelJob& job = column.job;
  const auto value = [&](std::uint32_t odd_x, std::uint32_t odd_y) {
    return __ldg(static_cast<const T*>(job.source.data) +
                 placeIn(job.source, min(2 * (column.x + column.i) + odd_x, job.n[0] - 1),
                         min(2 * (column.y + column.j) + odd_y, job.n[1] - 1),
                         min(2 * k_begin, job.n[2] - 1)));
  };
  const T values[3] = {value(1, 0), value(0, 1), value(1, 1)};
  waitForAllBut<kStages>();
  __syncthreads();
#pragma unroll
  for (unsigned p = 0; p < 3; ++p) {
    parts[(p + 3) % 4] = column.partAt(planes + p * kBaseWords);
  }
  std::uint32_t misfits = 0;
  Pair<std::int32_t> r[2] = {{parts[0].b, 0}, {}};
  here.x = column.encode(values[0], parts[0].x, column.has_x, kX, misfits, r[0].odd);
  here.y = column.encode(values[1], parts[0].y, column.has_y, kY, misfits, r[1].even);
  column.putCode(kCodesX, here.x);
  column.putCode(kCodesY, here.y);
  __syncthreads();
  here.sx = bits::wrapAdd(here.x, column.code(kCodesX, 1, 0));
  here.sy = bits::wrapAdd(here.y, column.code(kCodesY, 0, 1));
  here.xy = column.encode(values[2], column.corrected(parts[0].xy, kX | kY, here.sy, here.sx),
                          column.has_xy, kX | kY, misfits, r[1].odd);
  column.mark(misfits, k_begin);
  column.storeRow(2 * k_begin, false, r[0]);
  column.storeRow(2 * k_begin, true, r[1]);
  waitForAllBut<kStages - 1>();
  __syncthreads();
}

template <class T, class TCode, bool kShifts>
template <unsigned kStep>
__device__ __forceinline__ void TileWalk<T, TCode, kShifts>::encodeSingles(Work& w) {
  const PlanePart& t = parts[(kStep + 1) % 4];
  w.even_rows[0].even = t.b;
  w.next.x = column.encode(w.even.rows[0].odd, t.x, column.has_x & w.is_even, kX, w.misfits_next,
                           w.even_rows[0].odd);
  w.next.y = column.encode(w.even.rows[1].even, t.y, column.has_y & w.is_even, kY, w.misfits_next,
                           w.even_rows[1].even);
  w.z = column.encode(w.odd.rows[0].even, alongZ<kStep>(&PlanePart::b), column.has_even & w.is_odd,
                      kZ, w.misfits, w.odd_rows[0].even);
  column.putCode(kCodesX, w.next.x);
  column.putCode(kCodesY, w.next.y);
  column.putCode(kCodesZ, w.z);
}

template <class T, class TCode, bool kShifts>
template <unsigned kStep>
__device__ __forceinline__ void TileWalk<T, TCode, kShifts>::encodePairs(Work& w) {
  using bits::wrapAdd;
  w.next.sx = wrapAdd(w.next.x, column.code(kCodesX, 1, 0));
  w.next.sy = wrapAdd(w.next.y, column.code(kCodesY, 0, 1));
  w.z_right = wrapAdd(w.z, column.code(kCodesZ, 0, 1));
  w.z_down = column.code(kCodesZ, 1, 0);
  w.z_four = wrapAdd(w.z_right, wrapAdd(w.z_down, column.code(kCodesZ, 1, 1)));
  w.z_down = wrapAdd(w.z, w.z_down);
  w.next.xy =
      column.encode(w.even.rows[1].odd,
                    column.corrected(parts[(kStep + 1) % 4].xy, kX | kY, w.next.sy, w.next.sx),
                    column.has_xy & w.is_even, kX | kY, w.misfits_next, w.even_rows[1].odd);
  w.xz = column.encode(
      w.odd.rows[0].odd,
      column.corrected(alongZ<kStep>(&PlanePart::x), kX | kZ, w.z_right, wrapAdd(here.x, w.next.x)),
      column.has_x & w.is_odd, kX | kZ, w.misfits, w.odd_rows[0].odd);
  w.yz = column.encode(
      w.odd.rows[1].even,
      column.corrected(alongZ<kStep>(&PlanePart::y), kY | kZ, w.z_down, wrapAdd(here.y, w.next.y)),
      column.has_y & w.is_odd, kY | kZ, w.misfits, w.odd_rows[1].even);
  column.putCode(kCodesXz, w.xz);
  column.putCode(kCodesYz, w.yz);
}

template <class T, class TCode, bool kShifts>
template <unsigned kStep>
__device__ __forceinline__ void TileWalk<T, TCode, kShifts>::encodeCube(Work& w) const {
  using bits::wrapAdd;
  const std::int32_t sums[6] = {wrapAdd(w.yz, column.code(kCodesYz, 0, 1)),
                                wrapAdd(w.xz, column.code(kCodesXz, 1, 0)),
                                wrapAdd(here.xy, w.next.xy),
                                wrapAdd(here.sx, w.next.sx),
                                wrapAdd(here.sy, w.next.sy),
                                w.z_four};
  const std::int32_t p =
      cubeCorrected(column.job, alongZ<kStep>(&PlanePart::xy), sums, column.bin.units);
  const std::int32_t xyz = column.encode(w.odd.rows[1].odd, p, column.has_xy & w.is_odd, kXyz,
                                         w.misfits, w.odd_rows[1].odd);
  const std::int32_t all[7] = {here.x, here.y, here.xy, w.z, w.xz, w.yz, xyz};
#pragma unroll
  for (std::uint32_t c = 0; c < 7; ++c) {
    column.gather(c + 1, kStep, all[c]);
  }
}

/// The odd plane of cell k, and the even one of the next. kStep: k modulo 4.
template <class T, class TCode, bool kShifts>
template <unsigned kStep>
__device__ __forceinline__ void TileWalk<T, TCode, kShifts>::step(std::uint32_t k) {
  const LevelJob& job = column.job;
  std::int32_t* const stage = stages + kStep % kStages * kStageWords;
  Work w;
  w.is_even = 2 * (k + 1) < job.n[2] ? ~0u : 0u;
  w.is_odd = 2 * k + 1 < job.n[2] ? ~0u : 0u;
  w.even = readPlane<T>(stage, column.i, column.j);
  w.odd = readPlane<T>(stage + kRows * kRowPitch, column.i, column.j);
  parts[(kStep + 2) % 4] = column.partAt(stage + 2 * kRows * kRowPitch);
  encodeSingles<kStep>(w);
  __syncthreads();
  if (kStep == 0 && k != k_begin) {
    column.writeBlocks(k - 4);
  }
  encodePairs<kStep>(w);
  waitForAllBut<kStages - 2>();
  __syncthreads();
  if (k + kStages < k_end) {
    copies.copyStage(k + kStages, stage);
  }
  commitCopies();
  if (column.is_own) {
    encodeCube<kStep>(w);
  }
  column.mark(w.misfits, k);
  if (k + 1 < k_end) {
    column.mark(w.misfits_next, k + 1);
    column.storeRow(2 * (k + 1), false, w.even_rows[0]);
    column.storeRow(2 * (k + 1), true, w.even_rows[1]);
  }
  column.storeRow(2 * k + 1, false, w.odd_rows[0]);
  column.storeRow(2 * k + 1, true, w.odd_rows[1]);
  here = w.next;
}

template <class T, class TCode, bool kShifts>
__device__ __forceinline__ void encodeTile(const LevelJob& job, std::int32_t* shared) {
  const Points tile = pointOf(blockIdx.x, job.n_tiles);
  const std::uint32_t x = tile[0] * kTileX;
  const std::uint32_t y = tile[1] * kTileY;
  const std::uint32_t k_begin = tile[2] * job.chunk;
  const std::uint32_t k_end = min(k_begin + job.chunk, bits::roundUp(job.cells[2], 4u));
  TileWalk<T, TCode, kShifts> walk = {TileColumn<T, TCode, kShifts>(job, x, y, shared),
                                      TileCopies(job, x, y), shared, k_begin, k_end};
  walk.begin();
  for (std::uint32_t k = k_begin; k < k_end; k += 4) {
    walk.template step<0>(k);
    walk.template step<1>(k + 1);
    walk.template step<2>(k + 2);
    walk.template step<3>(k + 3);
  }
  __syncthreads();
  walk.column.writeBlocks(k_end - 4);
}

template <class T, class TCode>
__global__ void __launch_bounds__(kTileThreads, 2)
    encodeTileKernel(const __grid_constant__ LevelJob job) {
  extern __shared__ int4 tile_memory[];
  if (looksAtAll(job)) {
    return;
  }
  auto* const shared = reinterpret_cast<std::int32_t*>(tile_memory);
  if (std::is_same_v<T, float> || binOf(*job.setup, job.halvings).factor == 0) {
    encodeTile<T, TCode, true>(job, shared);
  } else {
    encodeTile<T, TCode, false>(job, shared);
  }
}

bool isFit(const LevelJob& job) {
  const bool has_kind = job.source.type == DataType::INT32 ||
                        (job.source.type == DataType::FLOAT32 && !job.result.exists &&
                         job.halvings == 0 && job.n[0] % 4 == 0);
  return isForTiles(job) && has_kind && hasAlignedRows(job.source) &&
         (!job.result.exists || hasAlignedRows(job.result));
}

}  // namespace

bool launchEncodeTiles(const LevelJob& level, const cuda::Call& call) {
  if (!isFit(level)) {
    return false;
  }
  LevelJob job = level;
  const unsigned n_blocks = cutIntoTiles(job, kTileY);
  const auto launch = [&](auto* kernel, std::size_t n_bytes) {
    cuda::allowSharedBytes(reinterpret_cast<const void*>(kernel), n_bytes);
    call.launch("interp encode tiles", kernel, n_blocks, kTileThreads, n_bytes, job);
  };
  const auto launchFor = [&]<class TCode>() {
    launch(job.source.type == DataType::FLOAT32 ? encodeTileKernel<float, TCode>
                                                : encodeTileKernel<std::int32_t, TCode>,
           kTileBytes<TCode>);
  };
  job.code_bytes == 2 ? launchFor.template operator()<std::int16_t>()
                      : launchFor.template operator()<std::int32_t>();
  return true;
}

}  // namespace fz::interp::device
