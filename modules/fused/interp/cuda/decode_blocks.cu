// Lorenzo ends whose codes stand in blocks of 4 x 4 x 4, from codes: sums along all axes in one
// pass that writes each value once, and before it one that finds out what comes before tiles along
// y and z.
#include "backends/cuda/launch.h"
#include "backends/cuda/shared_memory.h"
#include "fused/interp/cuda/policy.h"
#include "fused/interp/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

constexpr std::uint32_t kSide = 4;       // of a block of codes
constexpr std::uint32_t kTileRows = 16;  // along y; z is what policy says, x whole rows
constexpr unsigned kFaceThreads = 128;
constexpr std::uint32_t kY = 2;
constexpr std::uint32_t kZ = 4;

/// Four numbers that stand together along x.
struct Four {
  std::uint32_t v[kSide];

  __device__ __forceinline__ void add(const Four& other) {
#pragma unroll
    for (unsigned e = 0; e < kSide; ++e) {
      v[e] += other.v[e];
    }
  }
};
__device__ __forceinline__ Four loadFour(const std::uint32_t* p) {
  const uint4 raw = *reinterpret_cast<const uint4*>(p);
  return {{raw.x, raw.y, raw.z, raw.w}};
}
__device__ __forceinline__ void storeFour(std::uint32_t* p, const Four& f) {
  *reinterpret_cast<uint4*>(p) = make_uint4(f.v[0], f.v[1], f.v[2], f.v[3]);
}

/// Sums are kept for whole rows along x: of each plane over the rows of a tile, of each row over
/// its planes, and of both. They become sums over what comes before a tile along y (`rows`, `both`)
/// or z (`planes`).
struct BlockJob {
  EndJob end;
  std::uint32_t n_tiles[2];  ///< along y and z
  std::uint32_t tile_planes;
  std::uint32_t* rows;    ///< by tile along y, z, x
  std::uint32_t* planes;  ///< by tile along z, y, x
  std::uint32_t* both;    ///< by tile along y, tile along z, x

  __device__ __forceinline__ std::uint64_t rowsPlace(std::uint32_t tile,
                                                     std::uint32_t z,
                                                     std::uint32_t x) const {
    return (std::uint64_t{tile} * end.n[2] + min(z, end.n[2] - 1)) * end.n[0] + x;
  }
  __device__ __forceinline__ std::uint64_t planesPlace(std::uint32_t tile,
                                                       std::uint32_t y,
                                                       std::uint32_t x) const {
    return (std::uint64_t{tile} * end.n[1] + min(y, end.n[1] - 1)) * end.n[0] + x;
  }
  __device__ __forceinline__ std::uint64_t bothPlace(std::uint32_t tile_y,
                                                     std::uint32_t tile_z,
                                                     std::uint32_t x) const {
    return (std::uint64_t{tile_y} * n_tiles[1] + tile_z) * end.n[0] + x;
  }
};

/// Two planes of a block of codes.
template <class TCode>
struct HalfBlock {
  static constexpr unsigned kVecs = 2 * kSide * kSide * sizeof(TCode) / sizeof(uint4);
  uint4 raw[kVecs];

  __device__ __forceinline__ void load(const EndJob& end,
                                       std::uint32_t x,
                                       std::uint32_t y,
                                       std::uint32_t z) {
    const auto* const from = reinterpret_cast<const uint4*>(static_cast<const TCode*>(end.codes) +
                                                            codePlace(end.array, x, y, z));
#pragma unroll
    for (unsigned i = 0; i < kVecs; ++i) {
      raw[i] = __ldg(from + i);
    }
  }
  __device__ __forceinline__ Four row(unsigned z, unsigned y) const {
    const unsigned first = (z * kSide + y) * kSide;
    if constexpr (sizeof(TCode) == 4) {
      const uint4& four = raw[first / 4];
      return {{four.x, four.y, four.z, four.w}};
    } else {
      const uint4& eight = raw[first / 8];
      const std::uint32_t a = first % 8 == 0 ? eight.x : eight.z;
      const std::uint32_t b = first % 8 == 0 ? eight.y : eight.w;
      const auto low = [](std::uint32_t w) {
        return static_cast<std::uint32_t>(std::int32_t{static_cast<std::int16_t>(w & 0xffff)});
      };
      const auto high = [](std::uint32_t w) {
        return static_cast<std::uint32_t>(static_cast<std::int32_t>(w) >> 16);
      };
      return {{low(a), high(a), low(b), high(b)}};
    }
  }
};

// ---- what comes before tiles

/// Of what fills blocks up, which may be anything, only sums that nobody reads take notice: those
/// of the last tiles.
template <class TCode>
__global__ void __launch_bounds__(kFaceThreads) faceKernel(const __grid_constant__ BlockJob job) {
  const EndJob& end = job.end;
  if (end.setup->is_ok == 0) {
    return;
  }
  const Points tile =
      pointOf(blockIdx.x,
              {{bits::ceilDiv(end.n[0], kSide * kFaceThreads), job.n_tiles[0], job.n_tiles[1]}});
  const std::uint32_t x = kSide * (tile[0] * kFaceThreads + threadIdx.x);
  if (x >= end.n[0]) {
    return;
  }
  const std::uint32_t y_begin = tile[1] * kTileRows;
  const std::uint32_t z_begin = tile[2] * job.tile_planes;
  const std::uint32_t z_end = min(z_begin + job.tile_planes, end.n[2]);
  Four of_rows[kTileRows] = {};  // over planes
  Four all = {};
  for (std::uint32_t z = z_begin; z < z_end; z += kSide) {
    Four of_planes[kSide] = {};
#pragma unroll
    for (std::uint32_t block = 0; block < kTileRows / kSide; ++block) {
      const std::uint32_t y = y_begin + block * kSide;
      if (y >= end.n[1]) {
        break;
      }
      HalfBlock<TCode> halves[2];
      halves[0].load(end, x, y, z);
      halves[1].load(end, x, y, z + 2);
#pragma unroll
      for (unsigned i = 0; i < kSide * kSide; ++i) {
        const Four four = halves[i / 8].row(i / 4 % 2, i % 4);
        of_planes[i / 4].add(four);
        of_rows[block * kSide + i % 4].add(four);
      }
    }
#pragma unroll
    for (unsigned p = 0; p < kSide; ++p) {
      all.add(of_planes[p]);
      if ((end.axes & kY) != 0 && z + p < end.n[2]) {
        storeFour(job.rows + job.rowsPlace(tile[1], z + p, x), of_planes[p]);
      }
    }
  }
#pragma unroll
  for (unsigned r = 0; r < kTileRows; ++r) {
    if ((end.axes & kZ) != 0 && y_begin + r < end.n[1]) {
      storeFour(job.planes + job.planesPlace(tile[2], y_begin + r, x), of_rows[r]);
    }
  }
  if ((end.axes & (kY | kZ)) == (kY | kZ)) {
    storeFour(job.both + job.bothPlace(tile[1], tile[2], x), all);
  }
}

/// Sums of tiles to sums before tiles, in lines of n_terms that are n_step apart.
__device__ __forceinline__ void sumBefore(std::uint32_t* sums,
                                          std::uint32_t n_terms,
                                          std::uint64_t n_step) {
  constexpr unsigned kBatch = 8;
  Four before = {};
  for (std::uint32_t first = 0; first < n_terms; first += kBatch) {
    Four terms[kBatch];
#pragma unroll
    for (unsigned i = 0; i < kBatch; ++i) {
      terms[i] = loadFour(sums + min(first + i, n_terms - 1) * n_step);
    }
#pragma unroll
    for (unsigned i = 0; i < kBatch; ++i) {
      if (first + i < n_terms) {
        storeFour(sums + (first + i) * n_step, before);
        before.add(terms[i]);
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads) beforeKernel(const __grid_constant__ BlockJob job) {
  const EndJob& end = job.end;
  if (end.setup->is_ok == 0) {
    return;
  }
  const bool has_rows = (end.axes & kY) != 0;
  const bool has_planes = (end.axes & kZ) != 0;
  const std::uint64_t n_rows = has_rows ? std::uint64_t{end.n[2]} * end.n[0] : 0;
  const std::uint64_t n_planes = has_planes ? std::uint64_t{end.n[1]} * end.n[0] : 0;
  const std::uint64_t n_both =
      has_rows && has_planes ? std::uint64_t{job.n_tiles[1]} * end.n[0] : 0;
  const std::uint64_t n_fours = (n_rows + n_planes + n_both) / kSide;
  for (std::uint64_t i = threadIndex(); i < n_fours; i += threadCount()) {
    const std::uint64_t at = i * kSide;
    if (at < n_rows) {
      sumBefore(job.rows + at, job.n_tiles[0], n_rows);
    } else if (at < n_rows + n_planes) {
      sumBefore(job.planes + (at - n_rows), job.n_tiles[1], n_planes);
    } else {
      sumBefore(job.both + (at - n_rows - n_planes), job.n_tiles[0], n_both);
    }
  }
}

// ---- sums

/// Inclusive sum over the lanes of a warp; an instruction less for each step than with a
/// comparison.
__device__ __forceinline__ std::uint32_t sumOfLanes(std::uint32_t v) {
#pragma unroll
  for (unsigned step = 1; step < cuda::kWarp; step *= 2) {
    asm volatile(
        "{ .reg .pred p; .reg .u32 t;\n"
        "  shfl.sync.up.b32 t|p, %0, %1, 0, -1;\n"
        "  @p add.u32 %0, %0, t; }"
        : "+r"(v)
        : "r"(step));
  }
  return v;
}

constexpr unsigned kHalfRows = 2 * kSide;  // rows along x of two planes of a block
struct RowTotals {
  std::uint32_t v[2][kHalfRows][kMaxPlaneThreads / cuda::kWarp];
};

/// Sums along whole rows, a thread block wide. `buffer` is another one from call to call.
__device__ __forceinline__ void sumAlongX(Four (&rows)[kHalfRows],
                                          RowTotals& totals,
                                          unsigned buffer) {
  std::uint32_t before[kHalfRows];
#pragma unroll
  for (unsigned r = 0; r < kHalfRows; ++r) {
#pragma unroll
    for (unsigned e = 1; e < kSide; ++e) {
      rows[r].v[e] += rows[r].v[e - 1];
    }
    const std::uint32_t total = sumOfLanes(rows[r].v[kSide - 1]);
    before[r] = total - rows[r].v[kSide - 1];
    if (cuda::laneId() == cuda::kWarp - 1) {
      totals.v[buffer][r][cuda::warpId()] = total;
    }
  }
  __syncthreads();
  std::uint32_t of_warps = 0;  // of row `lane`
  for (unsigned w = 0; w < cuda::warpId(); ++w) {
    of_warps += totals.v[buffer][cuda::laneId() % kHalfRows][w];
  }
#pragma unroll
  for (unsigned r = 0; r < kHalfRows; ++r) {
    before[r] += __shfl_sync(cuda::kAllLanes, of_warps, static_cast<int>(r));
#pragma unroll
    for (unsigned e = 0; e < kSide; ++e) {
      rows[r].v[e] += before[r];
    }
  }
}

template <class T>
__device__ __forceinline__ void storeResult(T* to,
                                            const Four& sums,
                                            std::int32_t units,
                                            const Scale& scale) {
  union {
    T v[kSide];
    uint4 raw[sizeof(T) / 4];
  } four;
#pragma unroll
  for (unsigned e = 0; e < kSide; ++e) {
    four.v[e] = fromFixed<T>(wrapMul(static_cast<std::int32_t>(sums.v[e]), units), scale);
  }
#pragma unroll
  for (unsigned w = 0; w < sizeof(T) / 4; ++w) {
    __stcs(reinterpret_cast<uint4*>(to) + w, four.raw[w]);
  }
}

/// A tile as a thread block goes through it: four rows of four planes at a time, four values of
/// each in a thread.
template <class T, class TCode, bool kHasY, bool kHasZ>
class TileSums {
 public:
  __device__ __forceinline__ TileSums(const BlockJob& job, uint4* columns)
      : job_(job),
        end_(job.end),
        columns_(columns + threadIdx.x),
        x_(kSide * threadIdx.x),
        x_loaded_(min(x_, job.end.n[0] - kSide)),
        tile_y_(blockIdx.x % job.n_tiles[0]),
        tile_z_(blockIdx.x / job.n_tiles[0]),
        scale_(end_.setup->scale),
        units_(binOf(*end_.setup, end_.halvings).units) {}

  __device__ __forceinline__ void run(RowTotals& totals) {
    const std::uint32_t y_begin = tile_y_ * kTileRows;
    const std::uint32_t y_end = min(y_begin + kTileRows, end_.n[1]);
    const std::uint32_t z_begin = tile_z_ * job_.tile_planes;
    const std::uint32_t z_end = min(z_begin + job_.tile_planes, end_.n[2]);
    halves_[0].load(end_, x_loaded_, y_begin, z_begin);
    halves_[1].load(end_, x_loaded_, y_begin, z_begin + 2);
    begin(y_begin);
    for (std::uint32_t z = z_begin; z < z_end; z += kSide) {
      beginPlanes(z);
      for (std::uint32_t y = y_begin; y < y_end; y += kSide) {
        const bool is_last_row = y + kSide >= y_end;
        const std::uint32_t next_y = is_last_row ? y_begin : y + kSide;
        const std::uint32_t next_z = is_last_row && z + kSide < z_end ? z + kSide : z;
        takeRows(y - y_begin);
        sumHalf<0>(y, z, next_y, next_z, totals);
        sumHalf<1>(y, z, next_y, next_z, totals);
        leaveRows(y - y_begin);
      }
    }
  }

 private:
  /// Sums of all planes before the tile, by row; and of all rows and planes before it.
  __device__ __forceinline__ void begin(std::uint32_t y_begin) {
    if constexpr (kHasZ) {
#pragma unroll 4
      for (unsigned r = 0; r < kTileRows; ++r) {
        columns_[r * blockDim.x] = *reinterpret_cast<const uint4*>(
            job_.planes + job_.planesPlace(tile_z_, y_begin + r, x_loaded_));
      }
    }
    if constexpr (kHasY && kHasZ) {
#pragma unroll 8
      for (std::uint32_t t = 0; t < tile_z_; ++t) {
        before_.add(loadFour(job_.both + job_.bothPlace(tile_y_, t, x_loaded_)));
      }
    }
  }
  /// Sums of all rows before the tile, in four planes.
  __device__ __forceinline__ void beginPlanes(std::uint32_t z) {
#pragma unroll
    for (unsigned p = 0; p < kSide; ++p) {
      if constexpr (kHasY) {
        const Four rows = loadFour(job_.rows + job_.rowsPlace(tile_y_, z + p, x_loaded_));
        if constexpr (kHasZ) {
          before_.add(rows);
          above_[p] = before_;
        } else {
          above_[p] = rows;
        }
      }
    }
  }
  __device__ __forceinline__ void takeRows(std::uint32_t row) {
#pragma unroll
    for (unsigned r = 0; r < kSide && kHasZ; ++r) {
      const uint4 raw = columns_[(row + r) * blockDim.x];
      behind_[r] = {{raw.x, raw.y, raw.z, raw.w}};
    }
  }
  __device__ __forceinline__ void leaveRows(std::uint32_t row) {
#pragma unroll
    for (unsigned r = 0; r < kSide && kHasZ; ++r) {
      const Four& f = behind_[r];
      columns_[(row + r) * blockDim.x] = make_uint4(f.v[0], f.v[1], f.v[2], f.v[3]);
    }
  }

  template <unsigned kHalf>
  __device__ __forceinline__ void sumHalf(std::uint32_t y,
                                          std::uint32_t z,
                                          std::uint32_t next_y,
                                          std::uint32_t next_z,
                                          RowTotals& totals) {
    Four rows[kHalfRows];
#pragma unroll
    for (unsigned i = 0; i < kHalfRows; ++i) {
      const unsigned p = i / kSide;
      const unsigned r = i % kSide;
      Four sum = halves_[kHalf].row(p, r);
      if constexpr (kHasZ) {
        behind_[r].add(sum);
        sum = behind_[r];
      }
      if constexpr (kHasY) {
        above_[2 * kHalf + p].add(sum);
        sum = above_[2 * kHalf + p];
      }
      rows[i] = sum;
    }
    halves_[kHalf].load(end_, x_loaded_, next_y, next_z + 2 * kHalf);
    if ((end_.axes & 1) != 0) {
      sumAlongX(rows, totals, kHalf);
    }
    T* const out = static_cast<T*>(end_.result.data);
#pragma unroll
    for (unsigned i = 0; i < kHalfRows; ++i) {
      const std::uint32_t at_y = y + i % kSide;
      const std::uint32_t at_z = z + 2 * kHalf + i / kSide;
      if (x_ < end_.n[0] && at_y < end_.n[1] && at_z < end_.n[2]) {
        storeResult(out + placeIn(end_.result, x_, at_y, at_z), rows[i], units_, scale_);
      }
    }
  }

  const BlockJob& job_;
  const EndJob& end_;
  uint4* columns_;  ///< of a thread, by row of the tile: sums of all planes before
  std::uint32_t x_;
  std::uint32_t x_loaded_;
  std::uint32_t tile_y_;
  std::uint32_t tile_z_;
  Scale scale_;
  std::int32_t units_;
  HalfBlock<TCode> halves_[2];
  Four before_ = {};        ///< of rows before the tile, in all planes so far
  Four behind_[kSide];      ///< of planes so far, by row
  Four above_[kSide] = {};  ///< of rows so far, by plane
};

template <class T, class TCode, bool kHasY, bool kHasZ>
__global__ void __launch_bounds__(kMaxPlaneThreads)
    blockSumKernel(const __grid_constant__ BlockJob job) {
  extern __shared__ uint4 block_columns[];
  __shared__ RowTotals totals;
  if (job.end.setup->is_ok == 0) {
    return;
  }
  TileSums<T, TCode, kHasY, kHasZ>(job, block_columns).run(totals);
}

template <class T, class TCode>
auto sumKernelOf(std::uint32_t axes) {
  return (axes & (kY | kZ)) == (kY | kZ) ? blockSumKernel<T, TCode, true, true>
         : (axes & kY) != 0              ? blockSumKernel<T, TCode, true, false>
                                         : blockSumKernel<T, TCode, false, true>;
}

BlockJob blockJob(const EndJob& end) {
  BlockJob job = {};
  job.end = end;
  job.n_tiles[0] = bits::ceilDiv(end.n[1], kTileRows);
  job.tile_planes = sumPlanes(job.n_tiles[0], end.n[2], cuda::multiprocessorCount());
  job.n_tiles[1] = bits::ceilDiv(end.n[2], job.tile_planes);
  return job;
}

std::uint64_t rowSums(const BlockJob& job) {
  return (job.end.axes & kY) != 0 ? std::uint64_t{job.n_tiles[0]} * job.end.n[2] * job.end.n[0] : 0;
}
std::uint64_t planeSums(const BlockJob& job) {
  return (job.end.axes & kZ) != 0 ? std::uint64_t{job.n_tiles[1]} * job.end.n[1] * job.end.n[0] : 0;
}

}  // namespace

bool decodesByBlocks(const EndJob& end) {
  const bool has_cubes = end.array.log2[0] == 2 && end.array.log2[1] == 2 && end.array.log2[2] == 2;
  return has_cubes && (end.axes & (kY | kZ)) != 0 && !end.is_nested &&
         end.result.type != DataType::INT32 && end.n[0] % kSide == 0 && end.n[0] >= 64 &&
         end.n[0] <= kSide * kMaxPlaneThreads &&
         reinterpret_cast<std::uintptr_t>(end.result.data) % 16 == 0;
}

std::uint64_t blockSums(const EndJob& end) {
  const BlockJob job = blockJob(end);
  return rowSums(job) + planeSums(job) + std::uint64_t{job.n_tiles[0]} * job.n_tiles[1] * end.n[0];
}

void launchDecodeBlocks(const EndJob& end, const cuda::Call& call) {
  BlockJob job = blockJob(end);
  job.rows = reinterpret_cast<std::uint32_t*>(end.sums);
  job.planes = job.rows + rowSums(job);
  job.both = job.planes + planeSums(job);
  const unsigned n_tiles = job.n_tiles[0] * job.n_tiles[1];
  call.launch("interp sums of tiles",
              end.code_bytes == 2 ? faceKernel<std::int16_t> : faceKernel<std::int32_t>,
              n_tiles * bits::ceilDiv(end.n[0], kSide * kFaceThreads), kFaceThreads, 0, job);
  const std::uint64_t n_fours =
      std::uint64_t{end.n[0]} * (end.n[1] + end.n[2] + job.n_tiles[1]) / kSide;
  call.launch("interp sums before tiles", beforeKernel,
              strideBlocks(n_fours, cuda::multiprocessorCount()), kThreads, 0, job);
  const unsigned n_threads = bits::roundUp(end.n[0] / kSide, cuda::kWarp);
  const std::size_t n_bytes = (end.axes & kZ) != 0 ? kTileRows * n_threads * sizeof(uint4) : 0;
  const auto launch = [&](auto* kernel) {
    cuda::allowSharedBytes(reinterpret_cast<const void*>(kernel), n_bytes);
    call.launch("interp block sums", kernel, n_tiles, n_threads, n_bytes, job);
  };
  if (end.result.type == DataType::FLOAT32) {
    launch(end.code_bytes == 2 ? sumKernelOf<float, std::int16_t>(end.axes)
                               : sumKernelOf<float, std::int32_t>(end.axes));
  } else {
    launch(end.code_bytes == 2 ? sumKernelOf<double, std::int16_t>(end.axes)
                               : sumKernelOf<double, std::int32_t>(end.axes));
  }
}

}  // namespace fz::interp::device
