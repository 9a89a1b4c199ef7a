// Lorenzo ends, to codes.
#include <algorithm>

#include "backends/cuda/launch.h"
#include "fused/interp/cuda/policy.h"
#include "fused/interp/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

constexpr std::uint32_t kPart = cuda::kWarp;  ///< values of a row that a warp has at a time

__device__ __forceinline__ bool hasAxis(const EndJob& job, unsigned axis) {
  return (job.axes >> axis & 1) != 0;
}

__device__ __forceinline__ std::uint64_t pointCount(const EndJob& job) {
  return std::uint64_t{job.n[0]} * job.n[1] * job.n[2];
}

__device__ __forceinline__ std::int32_t* binAt(const EndJob& job, const Points& p) {
  return static_cast<std::int32_t*>(job.bins.data) + placeIn(job.bins, p[0], p[1], p[2]);
}

/// Nothing but codes is wanted, and all values have bins.
__device__ __forceinline__ bool isDirect(const EndJob& job) {
  return job.setup->has_gaps == 0 && !(job.marks.may_test && job.setup->is_tested != 0);
}

__device__ __forceinline__ void storeFour(const EndJob& job,
                                          std::uint64_t place,
                                          const std::int32_t (&codes)[4]) {
  if (job.code_bytes == 2) {
    const auto low = [&](unsigned e) { return static_cast<short>(codes[e]); };
    *reinterpret_cast<short4*>(static_cast<std::int16_t*>(job.codes) + place) =
        make_short4(low(0), low(1), low(2), low(3));
  } else {
    *reinterpret_cast<int4*>(static_cast<std::int32_t*>(job.codes) + place) =
        make_int4(codes[0], codes[1], codes[2], codes[3]);
  }
}

/// Where nothing is in the way of bins, their differences come straight from the values; the other
/// kernels then have nothing to do.
__device__ __forceinline__ bool isDone(const EndJob& job) {
  return job.may_be_direct && isDirect(job) && job.state->has_misfits == 0;
}

/// Four values of a row, and the one before them, as bins; those outside are 0.
template <class T>
__device__ __forceinline__ void loadBins(const EndJob& job,
                                         const Scale& scale,
                                         const Bin& bin,
                                         bool has_left,
                                         const Points& p,
                                         std::int32_t (&bins)[5]) {
  const T* const in =
      static_cast<const T*>(job.source.data) + placeIn(job.source, p[0], p[1], p[2]);
  const auto binOfValue = [&](T x) { return codeOf(fixedOf(x, false, scale), bin); };
  bins[0] = has_left ? binOfValue(__ldg(in - 1)) : 0;
  if (job.source_has_fours && p[0] + 4 <= job.n[0]) {
    union {
      T v[4];
      uint4 raw[sizeof(T) / 4];
    } four;
#pragma unroll
    for (unsigned w = 0; w < sizeof(T) / 4; ++w) {
      four.raw[w] = __ldg(reinterpret_cast<const uint4*>(in) + w);
    }
#pragma unroll
    for (unsigned e = 0; e < 4; ++e) {
      bins[e + 1] = binOfValue(four.v[e]);
    }
    return;
  }
#pragma unroll
  for (unsigned e = 0; e < 4; ++e) {
    bins[e + 1] = p[0] + e < job.n[0] ? binOfValue(__ldg(in + e)) : 0;
  }
}

/// A thread has four values of a row, and goes through planes along z. A warp has pieces of 32
/// values in four rows, so that it writes whole sectors.
template <class T>
__global__ void __launch_bounds__(kThreads) directKernel(const __grid_constant__ EndJob job) {
  if (!isDirect(job)) {
    return;
  }
  constexpr std::uint32_t kAcross = 8;  // lanes
  constexpr std::uint32_t kRows = cuda::kWarp / kAcross;
  const Scale scale = job.setup->scale;
  const Bin bin = binOf(*job.setup, job.halvings);
  const Points n_pieces = {{bits::ceilDiv(job.array.n_padded[0], 4 * kAcross),
                            bits::ceilDiv(job.array.n_padded[1], kRows),
                            bits::ceilDiv(job.array.n_padded[2], kDirectPlanes)}};
  const Points at = pointOf(threadIndex() / cuda::kWarp, n_pieces);
  const std::uint32_t x = 4 * (at[0] * kAcross + cuda::laneId() % kAcross);
  const std::uint32_t y = at[1] * kRows + cuda::laneId() / kAcross;
  if (at[2] >= n_pieces[2] || x >= job.array.n_padded[0] || y >= job.array.n_padded[1]) {
    return;
  }
  const bool has_left = hasAxis(job, 0) && x > 0;
  const bool has_up = hasAxis(job, 1) && y > 0;
  const bool has_z = hasAxis(job, 2);
  const bool is_inside = x < job.n[0] && y < job.n[1];
  const std::uint32_t z_begin = at[2] * kDirectPlanes;
  const std::uint32_t z_end = min(z_begin + kDirectPlanes, job.array.n_padded[2]);
  // Differences along x, or bins.
  const auto along = [&](std::uint32_t row, std::uint32_t z, std::int32_t(&out)[4]) {
    std::int32_t bins[5];
    loadBins<T>(job, scale, bin, has_left, {{x, row, z}}, bins);
#pragma unroll
    for (unsigned e = 0; e < 4; ++e) {
      out[e] = hasAxis(job, 0) ? bits::wrapSub(bins[e + 1], bins[e]) : bins[e + 1];
    }
  };
  std::int32_t before[4] = {};
  bool has_misfits = false;
  for (std::uint32_t z = has_z && z_begin > 0 ? z_begin - 1 : z_begin; z < z_end; ++z) {
    std::int32_t here[4] = {};
    std::int32_t up[4] = {};
    const bool is_point = is_inside && z < job.n[2];
    if (is_point) {
      along(y, z, here);
      if (has_up) {
        along(y - 1, z, up);
      }
    }
    std::int32_t codes[4];
#pragma unroll
    for (unsigned e = 0; e < 4; ++e) {
      const std::int32_t flat = bits::wrapSub(here[e], up[e]);
      const std::int32_t code = has_z ? bits::wrapSub(flat, before[e]) : flat;
      before[e] = flat;
      codes[e] = is_point && x + e < job.n[0] ? code : 0;
      has_misfits =
          has_misfits || (z >= z_begin && fittingCode(codes[e], job.code_bytes) != codes[e]);
    }
    if (z >= z_begin) {
      storeFour(job, codePlace(job.array, x, y, z), codes);
    }
  }
  if (has_misfits) {
    atomicOr(&job.state->has_misfits, 1u);
  }
}

__global__ void __launch_bounds__(kThreads) binKernel(const __grid_constant__ EndJob job) {
  if (isDone(job)) {
    return;
  }
  const Setup& setup = *job.setup;
  const Bin bin = binOf(setup, job.halvings);
  const std::uint64_t n = pointCount(job);
  constexpr std::uint32_t kNone = ~0u;  // an index of n at most, which no value has
  std::uint32_t first = kNone;
  for (std::uint64_t i = threadIndex(); i < n; i += threadCount()) {
    const Points p = pointOf(i, job.n);
    const std::int32_t x = fixedAt(job.source, placeIn(job.source, p[0], p[1], p[2]), setup);
    const bool is_gap = x == kNoValue;
    *binAt(job, p) = !is_gap ? codeOf(x, bin) : job.is_nested ? 0 : kNoValue;
    first = is_gap || first < i ? first : static_cast<std::uint32_t>(i);
  }
  if (setup.has_gaps != 0 && !job.is_nested) {
    first = __reduce_min_sync(cuda::kAllLanes, first);
    if (cuda::laneId() == 0 && first != kNone) {
      atomicMax(&job.state->first_value, ~first);
    }
  }
}

/// The sum of the bins around a place, but for its own row. kIsFresh: other warps have just written
/// them.
template <bool kIsFresh>
__device__ __forceinline__ std::uint32_t sumAround(const EndJob& job,
                                                   const Points& p,
                                                   const std::int32_t* at) {
  const bool has_up = hasAxis(job, 1) && p[1] > 0;
  const bool has_back = hasAxis(job, 2) && p[2] > 0;
  const auto bin = [&](std::int64_t distance) {
    const std::int32_t* const from = at - distance;
    return static_cast<std::uint32_t>(kIsFresh ? __ldcg(from) : *from);
  };
  std::uint32_t sum = 0;
  sum += has_up ? bin(job.bins.step[1]) : 0u;
  sum += has_back ? bin(job.bins.step[2]) : 0u;
  sum -= has_up && has_back ? bin(job.bins.step[1] + job.bins.step[2]) : 0u;
  return sum;
}

__device__ __forceinline__ std::uint32_t loadAcquire(const std::uint32_t* p) {
  std::uint32_t v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

/// f(part, point of this lane, is there one, sum around it) for all parts of all rows, each when
/// the rows before have gone as far. Rows are taken in raster order, so that a row waits only for
/// those that somebody already works on. f leaves the final bins; progress is n_done before.
template <class F>
__device__ __forceinline__ void forRowsInOrder(const EndJob& job,
                                               std::uint32_t* tickets,
                                               std::uint32_t n_done,
                                               F f) {
  std::uint32_t* const progress = job.progress;
  const std::uint64_t n_rows = std::uint64_t{job.n[1]} * job.n[2];
  while (true) {
    std::uint32_t row = 0;
    if (cuda::laneId() == 0) {
      row = atomicAdd(tickets, 1u);  // order-free: rows say what is done with them
    }
    row = __shfl_sync(cuda::kAllLanes, row, 0);
    if (row >= n_rows) {
      return;
    }
    const std::uint32_t y = row % job.n[1];
    const std::uint32_t z = row / job.n[1];
    const std::uint32_t* const up = hasAxis(job, 1) && y > 0 ? progress + row - 1 : nullptr;
    const std::uint32_t* const back =
        hasAxis(job, 2) && z > 0 ? progress + row - job.n[1] : nullptr;
    std::uint32_t carry = 0;
    for (std::uint32_t part = 0; part * kPart < job.n[0]; ++part) {
      while ((up != nullptr && loadAcquire(up) <= n_done + part) ||
             (back != nullptr && loadAcquire(back) <= n_done + part)) {
      }
      __syncwarp();
      const std::uint32_t x = part * kPart + cuda::laneId();
      const bool is_point = x < job.n[0];
      const Points p = {{is_point ? x : job.n[0] - 1, y, z}};
      carry = f(p, is_point, carry);
      __syncwarp();
      if (cuda::laneId() == 0) {
        __threadfence();
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(progress + row),
                     "r"(n_done + part + 1)
                     : "memory");
      }
    }
  }
}

/// Gaps become what the bins before them predict: along x, what is over the sum around stays.
__global__ void __launch_bounds__(kRowThreads) gapKernel(const __grid_constant__ EndJob job) {
  const Setup& setup = *job.setup;
  if (setup.has_gaps == 0) {
    return;
  }
  const bool has_first = job.state->first_value != 0;
  const Points start = pointOf(has_first ? ~job.state->first_value : 0, job.n);
  const bool has_x = hasAxis(job, 0);
  forRowsInOrder(
      job, &job.state->n_gap_rows, 0, [&](const Points& p, bool is_point, std::uint32_t carry) {
        std::int32_t* const at = binAt(job, p);
        const std::uint32_t sum = sumAround<true>(job, p, at);
        std::int32_t v = __ldcg(at);
        bool is_gap = v == kNoValue;
        if (is_gap && p[0] == 0 && p[1] == 0 && p[2] == 0) {  // nothing is before it
          v = has_first ? *binAt(job, start) : 0;
          is_gap = false;
        }
        std::uint32_t over = is_gap ? 0 : static_cast<std::uint32_t>(v) - sum;
        if (has_x) {
          const unsigned known = __ballot_sync(cuda::kAllLanes, !is_gap);
          const unsigned before = known & (0xffffffffu >> (31 - cuda::laneId()));
          const unsigned from = before != 0 ? 31 - __clz(static_cast<int>(before)) : 0;
          const std::uint32_t found = __shfl_sync(cuda::kAllLanes, over, static_cast<int>(from));
          over = before != 0 ? found : carry;
        }
        if (is_gap && is_point) {
          __stcg(at, static_cast<std::int32_t>(over + sum));
        } else if (is_point && p[0] == 0) {
          __stcg(at, v);
        }
        return __shfl_sync(cuda::kAllLanes, over, 31);
      });
}

/// Differences of bins, and zeros where blocks are not full.
__global__ void __launch_bounds__(kThreads) differenceKernel(const __grid_constant__ EndJob job) {
  if (isDone(job)) {
    return;
  }
  const std::uint64_t n =
      std::uint64_t{job.array.n_padded[0]} * job.array.n_padded[1] * job.array.n_padded[2];
  bool has_misfits = false;
  for (std::uint64_t i = threadIndex(); i < n; i += threadCount()) {
    const Points p = pointOf(i, job.array.n_padded);
    std::int32_t code = 0;
    if (p[0] < job.n[0] && p[1] < job.n[1] && p[2] < job.n[2]) {
      const std::int32_t* const at = binAt(job, p);
      std::uint32_t wanted = static_cast<std::uint32_t>(*at) - sumAround<false>(job, p, at);
      if (hasAxis(job, 0) && p[0] > 0) {
        const Points left = {{p[0] - 1, p[1], p[2]}};
        wanted -= static_cast<std::uint32_t>(at[-1]) - sumAround<false>(job, left, at - 1);
      }
      code = static_cast<std::int32_t>(wanted);
      has_misfits = has_misfits || fittingCode(code, job.code_bytes) != code;
    }
    storeCode(job.codes, job.code_bytes, codePlace(job.array, p[0], p[1], p[2]), code);
  }
  if (has_misfits) {
    atomicOr(&job.state->has_misfits, 1u);
  }
}

/// Closed loop where a difference does not fit its code: what is reconstructed follows as fast as
/// codes allow, and is what the next are predicted from.
__global__ void __launch_bounds__(kRowThreads) repairKernel(const __grid_constant__ EndJob job) {
  if (job.state->has_misfits == 0) {
    return;
  }
  const Setup& setup = *job.setup;
  const bool has_x = hasAxis(job, 0);
  // Where gaps were filled, progress has come as far as that.
  const std::uint32_t n_done =
      setup.has_gaps != 0 && !job.is_nested ? bits::ceilDiv(job.n[0], kPart) : 0;
  forRowsInOrder(
      job, &job.state->n_repair_rows, n_done,
      [&](const Points& p, bool is_point, std::uint32_t carry) {
        std::int32_t* const at = binAt(job, p);
        const std::uint32_t sum = sumAround<true>(job, p, at);
        const std::int32_t v = *at;
        const std::uint32_t over = static_cast<std::uint32_t>(v) - sum;  // that is wanted
        std::int32_t code = 0;
        std::uint32_t reached = 0;
        if (has_x) {
          for (unsigned lane = 0; lane < cuda::kWarp; ++lane) {
            const std::uint32_t wanted = __shfl_sync(cuda::kAllLanes, over, static_cast<int>(lane));
            const std::int32_t step =
                fittingCode(static_cast<std::int32_t>(wanted - carry), job.code_bytes);
            carry += static_cast<std::uint32_t>(step);
            code = lane == cuda::laneId() ? step : code;
            reached = lane == cuda::laneId() ? carry : reached;
          }
        } else {
          code = fittingCode(static_cast<std::int32_t>(over), job.code_bytes);
          reached = static_cast<std::uint32_t>(code);
        }
        const auto found = static_cast<std::int32_t>(reached + sum);
        if (is_point) {
          storeCode(job.codes, job.code_bytes, codePlace(job.array, p[0], p[1], p[2]), code);
          if (found != v) {
            __stcg(at, found);
            if (fixedAt(job.source, placeIn(job.source, p[0], p[1], p[2]), setup) != kNoValue) {
              markOutlier(job.marks.words, fieldPlace(job.marks.places, p[0], p[1], p[2]));
            }
          }
        }
        return carry;
      });
}

/// Bins become what they stand for, and every value is tested.
__global__ void __launch_bounds__(kThreads) resultKernel(const __grid_constant__ EndJob job) {
  const Setup& setup = *job.setup;
  const bool is_tested = job.marks.may_test && setup.is_tested != 0;
  if (!job.is_result_wanted && !is_tested) {
    return;
  }
  if (job.bins.is_for_tests && setup.is_tested == 0) {
    return;
  }
  const std::int32_t units = binOf(setup, job.halvings).units;
  const std::uint64_t n = pointCount(job);
  for (std::uint64_t i = threadIndex(); i < n; i += threadCount()) {
    const Points p = pointOf(i, job.n);
    std::int32_t* const at = binAt(job, p);
    const std::int32_t r = wrapMul(*at, units);
    *at = r;
    if (is_tested &&
        fixedAt(job.source, placeIn(job.source, p[0], p[1], p[2]), setup) != kNoValue) {
      const std::uint64_t place = fieldPlace(job.marks.places, p[0], p[1], p[2]);
      if (missesBound(job.marks, place, r, setup)) {
        markOutlier(job.marks.words, place);
      }
    }
  }
}

template <class T>
void launchDirectOf(const EndJob& job, const cuda::Call& call) {
  const std::uint64_t n_warps = std::uint64_t{bits::ceilDiv(job.array.n_padded[0], 32u)} *
                                bits::ceilDiv(job.array.n_padded[1], 4u) *
                                bits::ceilDiv(job.array.n_padded[2], kDirectPlanes);
  call.launch("interp direct differences", directKernel<T>,
              cuda::gridFor(n_warps, kThreads / cuda::kWarp), kThreads, 0, job);
}

void launchDirect(EndJob& job, const cuda::Call& call) {
  job.source_has_fours = reinterpret_cast<std::uintptr_t>(job.source.data) % 16 == 0 &&
                         job.source.step[1] % 4 == 0 && job.source.step[2] % 4 == 0;
  if (launchEncodeBlocks(job, call)) {
    return;
  }
  job.source.type == DataType::FLOAT32   ? launchDirectOf<float>(job, call)
  : job.source.type == DataType::FLOAT64 ? launchDirectOf<double>(job, call)
                                         : launchDirectOf<std::int32_t>(job, call);
}

}  // namespace

void launchEncodeEnd(const EndJob& end, const cuda::Call& call) {
  const std::uint64_t n = std::uint64_t{end.n[0]} * end.n[1] * end.n[2];
  if (n == 0) {
    return;
  }
  const unsigned n_processors = cuda::multiprocessorCount();
  const unsigned n_blocks = strideBlocks(n, n_processors);
  const unsigned n_row_blocks = std::min<unsigned>(
      kRowBlocksPerProcessor * n_processors,
      cuda::gridFor(std::size_t{end.n[1]} * end.n[2], kRowThreads / cuda::kWarp));
  EndJob job = end;
  job.may_be_direct = !end.is_result_wanted && !end.is_nested && end.array.log2[0] >= 2;
  if (job.may_be_direct) {
    launchDirect(job, call);
  }
  call.launch("interp bins", binKernel, n_blocks, kThreads, 0, job);
  if (!job.is_nested) {
    call.launch("interp gaps", gapKernel, n_row_blocks, kRowThreads, 0, job);
  }
  call.launch("interp differences", differenceKernel, n_blocks, kThreads, 0, job);
  if (job.code_bytes == 2) {
    call.launch("interp repair", repairKernel, n_row_blocks, kRowThreads, 0, job);
  }
  call.launch("interp end result", resultKernel, n_blocks, kThreads, 0, job);
}

}  // namespace fz::interp::device
