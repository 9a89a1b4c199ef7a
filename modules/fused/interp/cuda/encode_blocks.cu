// Lorenzo ends without gaps whose codes stand in blocks of 4 x 4 x 4, and those of lines, straight
// from the values.
#include "backends/cuda/launch.h"
#include "fused/interp/cuda/policy.h"
#include "fused/interp/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

constexpr unsigned kWarps = kBlockThreads / cuda::kWarp;
constexpr std::uint32_t kSide = 4;                          // of a block of codes
constexpr std::uint32_t kWarpValues = kSide * cuda::kWarp;  // of a row
constexpr unsigned kRows = kSide + 1;                       // with the one above

template <class T>
struct Four {
  T v[kSide];
};
template <class T>
__device__ __forceinline__ Four<T> loadFour(const T* p) {
  union {
    Four<T> four;
    uint4 raw[sizeof(T) / 4];
  } u;
#pragma unroll
  for (unsigned w = 0; w < sizeof(T) / 4; ++w) {
    u.raw[w] = __ldg(reinterpret_cast<const uint4*>(p) + w);
  }
  return u.four;
}

/// Values of a plane that a thread needs: four rows and the one above; lanes 0 to 4 have the value
/// on the left of a row of the warp each.
template <class T>
struct PlaneValues {
  Four<T> rows[kRows];
  T left;
};

/// Where a thread stands: a column of blocks.
template <class T>
struct BlockColumn {
  const EndJob& job;
  std::uint32_t x, y;
  std::uint32_t offsets[kRows];
  std::uint32_t offset_left;

  __device__ __forceinline__ BlockColumn(const EndJob& end, std::uint32_t x_warp, std::uint32_t y_)
      : job(end), x(x_warp + kSide * cuda::laneId()), y(y_) {
    const std::uint32_t x_loaded = min(x, job.n[0] - kSide);
    const auto rowOf = [&](unsigned r) {
      const std::uint32_t row = min(y + r, job.n[1]);
      return (row == 0 ? 0 : row - 1) * static_cast<std::uint32_t>(job.source.step[1]);
    };
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      offsets[r] = rowOf(r) + x_loaded;
    }
    offset_left = rowOf(min(cuda::laneId(), kSide)) + (x_warp == 0 ? 0 : x_warp - 1);
  }
  __device__ __forceinline__ void load(std::uint32_t z, PlaneValues<T>& values) const {
    const T* const plane =
        static_cast<const T*>(job.source.data) + min(z, job.n[2] - 1) * job.source.step[2];
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      values.rows[r] = loadFour(plane + offsets[r]);
    }
    values.left = __ldg(plane + offset_left);
  }
};

/// Bins of a plane, differenced along x and y where those are axes.
template <class T>
__device__ __forceinline__ void flatten(const PlaneValues<T>& values,
                                        const Scale& scale,
                                        const Bin& bin,
                                        const EndJob& job,
                                        std::uint32_t x,
                                        std::uint32_t y,
                                        std::uint32_t (&flat)[kSide][kSide]) {
  const auto binOfValue = [&](T v) {
    return static_cast<std::uint32_t>(codeOf<true>(fixedOf(v, false, scale), bin));
  };
  const bool has_x = (job.axes & 1) != 0;
  const bool has_up = (job.axes & 2) != 0 && y > 0;
  const std::uint32_t outside = binOfValue(values.left);
  std::uint32_t above[kSide] = {};
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    std::uint32_t row[kSide];
#pragma unroll
    for (unsigned e = 0; e < kSide; ++e) {
      row[e] = binOfValue(values.rows[r].v[e]);
    }
    if (has_x) {
      const std::uint32_t before = __shfl_up_sync(cuda::kAllLanes, row[kSide - 1], 1);
      const std::uint32_t first = __shfl_sync(cuda::kAllLanes, outside, static_cast<int>(r));
      const std::uint32_t left = cuda::laneId() > 0 ? before : x > 0 ? first : 0u;
#pragma unroll
      for (unsigned e = kSide; e-- > 1;) {
        row[e] -= row[e - 1];
      }
      row[0] -= left;
    }
#pragma unroll
    for (unsigned e = 0; e < kSide; ++e) {
      if (r > 0) {
        flat[r - 1][e] = row[e] - above[e];
      }
      above[e] = has_up || ((job.axes & 2) != 0 && r > 0) ? row[e] : 0u;
    }
  }
}

/// Stores the codes of a plane of two blocks, by the lanes that have them: each lane half of
/// either, so that sectors are written whole.
template <class TCode>
__device__ __forceinline__ void storePlane(const std::uint32_t (&codes)[kSide][kSide],
                                           TCode* out,
                                           bool has_even,
                                           bool has_odd) {
  constexpr unsigned kSectors = sizeof(TCode) / 2;
  const bool is_odd = cuda::laneId() % 2 != 0;
  // Of the block of the even lane.
  auto* const even = reinterpret_cast<uint4*>(out - (is_odd ? 64 : 0)) + (is_odd ? 1 : 0);
#pragma unroll
  for (unsigned s = 0; s < kSectors; ++s) {
    std::uint32_t words[8];
#pragma unroll
    for (unsigned w = 0; w < 8; ++w) {
      if constexpr (sizeof(TCode) == 2) {
        words[w] = __byte_perm(codes[w / 2][w % 2 * 2], codes[w / 2][w % 2 * 2 + 1], 0x5410);
      } else {
        words[w] = codes[2 * s + w / 4][w % 4];
      }
    }
    std::uint32_t to_even[4];
    std::uint32_t to_odd[4];
#pragma unroll
    for (unsigned w = 0; w < 4; ++w) {
      const std::uint32_t sent = is_odd ? words[w] : words[w + 4];
      const std::uint32_t got = __shfl_xor_sync(cuda::kAllLanes, sent, 1);
      to_even[w] = is_odd ? got : words[w];
      to_odd[w] = is_odd ? words[w + 4] : got;
    }
    if (has_even) {
      even[2 * s] = make_uint4(to_even[0], to_even[1], to_even[2], to_even[3]);
    }
    if (has_odd) {
      (even + 64 * sizeof(TCode) / sizeof(uint4))[2 * s] =
          make_uint4(to_odd[0], to_odd[1], to_odd[2], to_odd[3]);
    }
  }
}

/// Differences of a plane from the one before it, where z is an axis; 0 where there is no point.
template <class T>
__device__ __forceinline__ void takeDifferences(const EndJob& job,
                                                const BlockColumn<T>& column,
                                                const std::uint32_t (&flat)[kSide][kSide],
                                                std::uint32_t z,
                                                std::uint32_t (&codes)[kSide][kSide],
                                                std::uint32_t (&before)[kSide][kSide]) {
  const bool has_z = (job.axes & 4) != 0;
  const bool is_whole = column.x < job.n[0] && column.y + kSide <= job.n[1] && z < job.n[2];
#pragma unroll
  for (unsigned r = 0; r < kSide; ++r) {
#pragma unroll
    for (unsigned e = 0; e < kSide; ++e) {
      codes[r][e] = flat[r][e] - before[r][e];
      before[r][e] = has_z ? flat[r][e] : 0u;
      if (!is_whole) {
        const bool is_point = column.x < job.n[0] && column.y + r < job.n[1] && z < job.n[2];
        codes[r][e] = is_point ? codes[r][e] : 0u;
      }
    }
  }
}

/// Has the bits that any of the codes needs but for its sign.
__device__ __forceinline__ std::uint32_t widestOf(const std::uint32_t (&codes)[kSide][kSide]) {
  std::uint32_t widest = 0;
#pragma unroll
  for (unsigned i = 0; i < kSide * kSide; ++i) {
    const std::uint32_t code = codes[i / kSide][i % kSide];
    widest |= code ^ (0u - (code >> 31));
  }
  return widest;
}

/// A thread has a column of blocks and goes through it along z, a warp 32 that lie together. Planes
/// are asked for two steps before they are needed.
template <class T, class TCode>
__global__ void __launch_bounds__(kBlockThreads) blockKernel(const __grid_constant__ EndJob job) {
  const Setup& setup = *job.setup;
  if (setup.has_gaps != 0 || (job.marks.may_test && setup.is_tested != 0)) {
    return;
  }
  const Points at = pointOf(
      blockIdx.x, {{bits::ceilDiv(job.n[0], kWarpValues), bits::ceilDiv(job.n[1], kSide * kWarps),
                    bits::ceilDiv(job.n[2], kDirectPlanes)}});
  const std::uint32_t y = (at[1] * kWarps + cuda::warpId()) * kSide;
  if (y >= job.n[1]) {
    return;
  }
  const Scale scale = setup.scale;
  const Bin bin = binOf(setup, 0);
  const BlockColumn<T> column(job, at[0] * kWarpValues, y);
  const bool has_z = (job.axes & 4) != 0;
  const std::uint32_t z_begin = at[2] * kDirectPlanes;
  const std::uint32_t z_end = min(z_begin + kDirectPlanes, job.array.n_padded[2]);
  const std::uint32_t x_even = column.x & ~kSide;
  const bool has_even = x_even < job.n[0];
  const bool has_odd = x_even + kSide < job.n[0];
  TCode* const out = static_cast<TCode*>(job.codes) + codePlace(job.array, column.x, y, 0);
  std::uint32_t before[kSide][kSide] = {};
  std::uint32_t widest = 0;
  std::uint32_t z = has_z && z_begin > 0 ? z_begin - 1 : z_begin;
  PlaneValues<T> values;
  PlaneValues<T> ahead;
  column.load(z, values);
  constexpr bool kIsAhead = sizeof(T) == 4;  // else registers are short
  if constexpr (kIsAhead) {
    column.load(z + 1, ahead);
  }
  for (; z < z_end; ++z) {
    std::uint32_t flat[kSide][kSide];
    flatten(values, scale, bin, job, column.x, y, flat);
    if constexpr (kIsAhead) {
      values = ahead;
      column.load(z + 2, ahead);
    } else {
      column.load(z + 1, values);
    }
    std::uint32_t codes[kSide][kSide];
    takeDifferences(job, column, flat, z, codes, before);
    if (z < z_begin) {
      continue;
    }
    widest |= sizeof(TCode) == 2 ? widestOf(codes) : 0u;
    const std::uint64_t block = std::uint64_t{z / kSide} * job.array.block_step[2];
    storePlane(codes, out + block * 64 + z % kSide * (kSide * kSide), has_even, has_odd);
  }
  if (widest >> 15 != 0) {
    atomicOr(&job.state->has_misfits, 1u);
  }
}

// ---- lines

constexpr std::uint32_t kLineValues = 8;  // of a thread, twice

/// A line, whose codes stand in the order of the values; `first` is a multiple of eight.
template <class T, class TCode>
__device__ __forceinline__ std::uint32_t encodeEight(const EndJob& job,
                                                     const Scale& scale,
                                                     const Bin& bin,
                                                     std::uint64_t first) {
  const T* const values = static_cast<const T*>(job.source.data);
  const auto binAt = [&](T v) {
    return static_cast<std::uint32_t>(codeOf<true>(fixedOf(v, false, scale), bin));
  };
  const std::uint64_t n = job.n[0];
  std::uint32_t codes[kLineValues];
  if (first + kLineValues <= n) {
    const Four<T> fours[2] = {loadFour(values + first), loadFour(values + first + kSide)};
#pragma unroll
    for (unsigned e = 0; e < kLineValues; ++e) {
      codes[e] = binAt(fours[e / kSide].v[e % kSide]);
    }
  } else {
#pragma unroll
    for (unsigned e = 0; e < kLineValues; ++e) {
      codes[e] = binAt(__ldg(values + min(first + e, n - 1)));
    }
  }
  std::uint32_t left = __shfl_up_sync(cuda::kAllLanes, codes[kLineValues - 1], 1);
  if (cuda::laneId() == 0) {
    left = first > 0 ? binAt(__ldg(values + min(first, n) - 1)) : 0u;
  }
  std::uint32_t widest = 0;
#pragma unroll
  for (unsigned e = kLineValues; e-- > 0;) {
    codes[e] -= (job.axes & 1) == 0 ? 0u : e > 0 ? codes[e - 1] : left;
    codes[e] = first + e < n ? codes[e] : 0u;
    widest |= codes[e] ^ (0u - (codes[e] >> 31));
  }
  if (first >= job.array.n_padded[0]) {
    return 0;
  }
  auto* const out =
      reinterpret_cast<uint4*>(static_cast<TCode*>(job.codes) + job.array.start + first);
  if constexpr (sizeof(TCode) == 2) {
    const auto pair = [&](unsigned e) { return __byte_perm(codes[e], codes[e + 1], 0x5410); };
    *out = make_uint4(pair(0), pair(2), pair(4), pair(6));
    return widest >> 15;
  } else {
    out[0] = make_uint4(codes[0], codes[1], codes[2], codes[3]);
    out[1] = make_uint4(codes[4], codes[5], codes[6], codes[7]);
    return 0;
  }
}

template <class T, class TCode>
__global__ void __launch_bounds__(kThreads) lineKernel(const __grid_constant__ EndJob job) {
  const Setup& setup = *job.setup;
  if (setup.has_gaps != 0 || (job.marks.may_test && setup.is_tested != 0)) {
    return;
  }
  const Scale scale = setup.scale;
  const Bin bin = binOf(setup, 0);
  const std::uint64_t warp = threadIndex() / cuda::kWarp;
  const std::uint64_t first = (2 * warp * cuda::kWarp + cuda::laneId()) * kLineValues;
  const std::uint32_t misfits =
      encodeEight<T, TCode>(job, scale, bin, first) |
      encodeEight<T, TCode>(job, scale, bin, first + cuda::kWarp * kLineValues);
  if (misfits != 0) {
    atomicOr(&job.state->has_misfits, 1u);
  }
}

template <class T>
auto lineKernelFor(const EndJob& job) {
  return job.code_bytes == 2 ? lineKernel<T, std::int16_t> : lineKernel<T, std::int32_t>;
}

template <class T>
auto kernelFor(const EndJob& job) {
  return job.code_bytes == 2 ? blockKernel<T, std::int16_t> : blockKernel<T, std::int32_t>;
}

}  // namespace

bool launchEncodeBlocks(const EndJob& job, const cuda::Call& call) {
  const bool is_field = job.halvings == 0 && job.source.type != DataType::INT32;
  const bool is_single = job.source.type == DataType::FLOAT32;
  const bool is_line =
      job.n[1] == 1 && job.n[2] == 1 && reinterpret_cast<std::uintptr_t>(job.source.data) % 16 == 0;
  const bool has_cubes = job.array.log2[0] == 2 && job.array.log2[1] == 2 && job.array.log2[2] == 2;
  if (is_field && is_line) {
    call.launch("interp line differences",
                is_single ? lineKernelFor<float>(job) : lineKernelFor<double>(job),
                cuda::gridFor(job.array.n_padded[0], 2 * kLineValues * kThreads), kThreads, 0, job);
    return true;
  }
  if (is_field && has_cubes && job.n[0] % kSide == 0 && job.source_has_fours) {
    const std::uint64_t n_blocks = std::uint64_t{bits::ceilDiv(job.n[0], kWarpValues)} *
                                   bits::ceilDiv(job.n[1], kSide * kWarps) *
                                   bits::ceilDiv(job.n[2], kDirectPlanes);
    call.launch("interp block differences",
                is_single ? kernelFor<float>(job) : kernelFor<double>(job),
                static_cast<unsigned>(n_blocks), kBlockThreads, 0, job);
    return true;
  }
  return false;
}

}  // namespace fz::interp::device
