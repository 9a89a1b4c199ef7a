// Lorenzo ends, from codes: sums along one axis after the other.
#include "backends/cuda/launch.h"
#include "fused/interp/cuda/policy.h"
#include "fused/interp/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

/// Sums along an axis, in chunks of lines.
struct SumJob {
  EndJob end;
  unsigned axis;
  std::uint32_t chunk;  ///< values
  std::uint32_t n_chunks;
  std::uint64_t n_lines;
  bool is_first;  ///< codes come in, not sums along another axis
  bool is_last;   ///< results go out
};

__device__ __forceinline__ std::int32_t loadTerm(const SumJob& job, const Points& p) {
  const EndJob& end = job.end;
  if (job.is_first) {
    return loadCode(end.codes, end.code_bytes, codePlace(end.array, p[0], p[1], p[2]));
  }
  return static_cast<const std::int32_t*>(end.bins.data)[placeIn(end.bins, p[0], p[1], p[2])];
}

__device__ __forceinline__ void storeSum(
    const SumJob& job, const Points& p, std::int32_t sum, std::int32_t units, const Scale& scale) {
  const EndJob& end = job.end;
  if (job.is_last) {
    storeAt(end.result, placeIn(end.result, p[0], p[1], p[2]), wrapMul(sum, units), scale);
  } else {
    static_cast<std::int32_t*>(end.bins.data)[placeIn(end.bins, p[0], p[1], p[2])] = sum;
  }
}

/// The first point of a line; lines are counted over the other two axes, the lower one fastest.
__device__ __forceinline__ Points lineStart(const SumJob& job, std::uint64_t line) {
  Points n = job.end.n;
  n[job.axis] = 1;
  return pointOf(line, n);
}

__device__ __forceinline__ std::int32_t sumOfWarp(std::int32_t v) {
  return static_cast<std::int32_t>(cuda::warpSum(static_cast<std::uint32_t>(v)));
}

/// Along x: a warp for each chunk. kStores: sums go out, else only that of the chunk.
template <bool kStores>
__global__ void __launch_bounds__(kThreads) rowSumKernel(const __grid_constant__ SumJob job) {
  const EndJob& end = job.end;
  const Setup& setup = *end.setup;
  if (setup.is_ok == 0) {
    return;
  }
  const Scale scale = setup.scale;
  const std::int32_t units = binOf(setup, end.halvings).units;
  const std::uint64_t n_items = job.n_lines * job.n_chunks;
  for (std::uint64_t item = threadIndex() / cuda::kWarp; item < n_items;
       item += threadCount() / cuda::kWarp) {
    const std::uint64_t line = item / job.n_chunks;
    const auto chunk = static_cast<std::uint32_t>(item - line * job.n_chunks);
    Points p = lineStart(job, line);
    const std::uint32_t begin = chunk * job.chunk;
    const std::uint32_t n = min(job.chunk, end.n[0] - begin);
    std::uint32_t sum =
        kStores && job.n_chunks > 1 ? static_cast<std::uint32_t>(end.sums[item]) : 0u;
    for (std::uint32_t x = 0; x < n; x += cuda::kWarp) {
      const std::uint32_t at = x + cuda::laneId();
      p[0] = begin + min(at, n - 1);
      const auto v = at < n ? static_cast<std::uint32_t>(loadTerm(job, p)) : 0u;
      if constexpr (kStores) {
        const std::uint32_t total = cuda::warpInclusiveSum(v);
        if (at < n) {
          storeSum(job, p, static_cast<std::int32_t>(sum + total), units, scale);
        }
        sum += __shfl_sync(cuda::kAllLanes, total, 31);
      } else {
        sum += v;
      }
    }
    if constexpr (!kStores) {
      const std::int32_t total = sumOfWarp(static_cast<std::int32_t>(sum));
      if (cuda::laneId() == 0) {
        end.sums[item] = total;
      }
    }
  }
}

/// Four codes, or sums, that stand together.
struct Four {
  std::int32_t v[4];
};
template <class TCode>
__device__ __forceinline__ Four loadFour(const EndJob& end, std::uint64_t place) {
  const TCode* const from = static_cast<const TCode*>(end.codes) + place;
  if constexpr (sizeof(TCode) == 2) {
    const short4 four = __ldg(reinterpret_cast<const short4*>(from));
    return {{four.x, four.y, four.z, four.w}};
  } else {
    const int4 four = __ldg(reinterpret_cast<const int4*>(from));
    return {{four.x, four.y, four.z, four.w}};
  }
}

/// Along x, from codes that stand in blocks with rows of four or more: a warp for each chunk, four
/// values for each lane. As rowSumKernel.
template <bool kStores, class TCode>
__global__ void __launch_bounds__(kThreads) fourSumKernel(const __grid_constant__ SumJob job) {
  constexpr std::uint32_t kStep = 4 * cuda::kWarp;
  const EndJob& end = job.end;
  const Setup& setup = *end.setup;
  if (setup.is_ok == 0) {
    return;
  }
  const Scale scale = setup.scale;
  const std::int32_t units = binOf(setup, end.halvings).units;
  const std::uint64_t n_items = job.n_lines * job.n_chunks;
  for (std::uint64_t item = threadIndex() / cuda::kWarp; item < n_items;
       item += threadCount() / cuda::kWarp) {
    const std::uint64_t line = item / job.n_chunks;
    Points p = lineStart(job, line);
    const std::uint32_t begin = static_cast<std::uint32_t>(item - line * job.n_chunks) * job.chunk;
    const std::uint32_t n = min(job.chunk, end.n[0] - begin);
    const std::uint64_t row = codePlace(end.array, 0, p[1], p[2]);
    const std::uint32_t mask = (1u << end.array.log2[0]) - 1;
    const auto load = [&](std::uint32_t x) {
      const std::uint32_t at = begin + min(x, n - 1) / 4 * 4;
      return loadFour<TCode>(end, row + std::uint64_t{at >> end.array.log2[0]} * 64 + (at & mask));
    };
    std::uint32_t sum =
        kStores && job.n_chunks > 1 ? static_cast<std::uint32_t>(end.sums[item]) : 0u;
    Four ahead = load(4 * cuda::laneId());
    for (std::uint32_t first = 0; first < n; first += kStep) {
      const std::uint32_t x = first + 4 * cuda::laneId();
      Four four = ahead;
      ahead = load(x + kStep);
      std::uint32_t sums[4];
      std::uint32_t own = 0;
#pragma unroll
      for (unsigned e = 0; e < 4; ++e) {
        own += x + e < n ? static_cast<std::uint32_t>(four.v[e]) : 0u;
        sums[e] = own;
      }
      if constexpr (kStores) {
        const std::uint32_t total = cuda::warpInclusiveSum(own);
        const std::uint32_t before = sum + total - own;
        p[0] = begin + x;
        if (!job.is_last && x + 4 <= n) {
          auto* const out =
              static_cast<std::int32_t*>(end.bins.data) + placeIn(end.bins, p[0], p[1], p[2]);
          *reinterpret_cast<int4*>(out) =
              make_int4(static_cast<int>(before + sums[0]), static_cast<int>(before + sums[1]),
                        static_cast<int>(before + sums[2]), static_cast<int>(before + sums[3]));
        } else {
#pragma unroll
          for (unsigned e = 0; e < 4; ++e) {
            p[0] = begin + x + e;
            if (x + e < n) {
              storeSum(job, p, static_cast<std::int32_t>(before + sums[e]), units, scale);
            }
          }
        }
        sum += __shfl_sync(cuda::kAllLanes, total, 31);
      } else {
        sum += own;
      }
    }
    if constexpr (!kStores) {
      const std::int32_t total = sumOfWarp(static_cast<std::int32_t>(sum));
      if (cuda::laneId() == 0) {
        end.sums[item] = total;
      }
    }
  }
}

/// Along x and y at once: a thread block for each plane, which goes from row to row, and a thread
/// for four values of each.
template <class TCode>
__global__ void __launch_bounds__(kMaxPlaneThreads)
    planeSumKernel(const __grid_constant__ SumJob job) {
  constexpr unsigned kMaxWarps = kMaxPlaneThreads / cuda::kWarp;
  constexpr std::uint32_t kRows = 4;  // asked for at once; even, for the two sets of totals
  __shared__ std::uint32_t totals[2][kMaxWarps];
  const EndJob& end = job.end;
  const Setup& setup = *end.setup;
  if (setup.is_ok == 0) {
    return;
  }
  const Scale scale = setup.scale;
  const std::int32_t units = binOf(setup, end.halvings).units;
  const std::uint32_t z = blockIdx.x;
  const std::uint32_t x = 4 * threadIdx.x;
  const std::uint32_t x_loaded = min(x, (end.n[0] - 1) / 4 * 4);
  const auto load = [&](std::uint32_t y) {
    return loadFour<TCode>(end, codePlace(end.array, x_loaded, min(y, end.n[1] - 1), z));
  };
  std::uint32_t above[4] = {};
  Four ahead[kRows];
#pragma unroll
  for (std::uint32_t r = 0; r < kRows; ++r) {
    ahead[r] = load(r);
  }
  for (std::uint32_t first = 0; first < end.n[1]; first += kRows) {
    Four rows[kRows];
#pragma unroll
    for (std::uint32_t r = 0; r < kRows; ++r) {
      rows[r] = ahead[r];
      ahead[r] = load(first + kRows + r);
    }
#pragma unroll
    for (std::uint32_t r = 0; r < kRows; ++r) {
      if (first + r >= end.n[1]) {
        break;
      }
      std::uint32_t sums[4];
      std::uint32_t own = 0;
#pragma unroll
      for (unsigned e = 0; e < 4; ++e) {
        own += x + e < end.n[0] ? static_cast<std::uint32_t>(rows[r].v[e]) : 0u;
        sums[e] = own;
      }
      const std::uint32_t total = cuda::warpInclusiveSum(own);
      if (cuda::laneId() == cuda::kWarp - 1) {
        totals[r % 2][cuda::warpId()] = total;
      }
      __syncthreads();
      std::uint32_t before = total - own;
      for (unsigned w = 0; w < cuda::warpId(); ++w) {
        before += totals[r % 2][w];
      }
#pragma unroll
      for (unsigned e = 0; e < 4; ++e) {
        above[e] += before + sums[e];
      }
      if (!job.is_last && x + 4 <= end.n[0]) {
        auto* const out =
            static_cast<std::int32_t*>(end.bins.data) + placeIn(end.bins, x, first + r, z);
        *reinterpret_cast<int4*>(out) =
            make_int4(static_cast<int>(above[0]), static_cast<int>(above[1]),
                      static_cast<int>(above[2]), static_cast<int>(above[3]));
      } else {
#pragma unroll
        for (unsigned e = 0; e < 4; ++e) {
          if (x + e < end.n[0]) {
            storeSum(job, {{x + e, first + r, z}}, static_cast<std::int32_t>(above[e]), units,
                     scale);
          }
        }
      }
    }
  }
}

/// Along y or z: a thread for each chunk, so that neighbours have neighbouring lines.
template <bool kStores>
__global__ void __launch_bounds__(kThreads) columnSumKernel(const __grid_constant__ SumJob job) {
  const EndJob& end = job.end;
  const Setup& setup = *end.setup;
  if (setup.is_ok == 0) {
    return;
  }
  const Scale scale = setup.scale;
  const std::int32_t units = binOf(setup, end.halvings).units;
  const std::uint64_t n_items = job.n_lines * job.n_chunks;
  for (std::uint64_t item = threadIndex(); item < n_items; item += threadCount()) {
    const std::uint64_t chunk = item / job.n_lines;
    const std::uint64_t line = item - chunk * job.n_lines;
    const std::uint64_t place = line * job.n_chunks + chunk;
    Points p = lineStart(job, line);
    const auto begin = static_cast<std::uint32_t>(chunk * job.chunk);
    const std::uint32_t n = min(job.chunk, end.n[job.axis] - begin);
    std::uint32_t sum =
        kStores && job.n_chunks > 1 ? static_cast<std::uint32_t>(end.sums[place]) : 0u;
    // Loads first: stores might go to the same place, as far as the compiler knows.
    constexpr std::uint32_t kBatch = 8;
    for (std::uint32_t i = 0; i < n; i += kBatch) {
      std::int32_t terms[kBatch];
#pragma unroll
      for (std::uint32_t b = 0; b < kBatch; ++b) {
        p[job.axis] = begin + min(i + b, n - 1);
        terms[b] = loadTerm(job, p);
      }
#pragma unroll
      for (std::uint32_t b = 0; b < kBatch; ++b) {
        if (i + b < n) {
          p[job.axis] = begin + i + b;
          sum += static_cast<std::uint32_t>(terms[b]);
          if constexpr (kStores) {
            storeSum(job, p, static_cast<std::int32_t>(sum), units, scale);
          }
        }
      }
    }
    if constexpr (!kStores) {
      end.sums[place] = static_cast<std::int32_t>(sum);
    }
  }
}

/// Sums of chunks to sums before chunks; a warp for each line.
__global__ void __launch_bounds__(kThreads) chunkSumKernel(const __grid_constant__ SumJob job) {
  if (job.end.setup->is_ok == 0) {
    return;
  }
  for (std::uint64_t line = threadIndex() / cuda::kWarp; line < job.n_lines;
       line += threadCount() / cuda::kWarp) {
    std::int32_t* const sums = job.end.sums + line * job.n_chunks;
    std::uint32_t before = 0;
    for (std::uint32_t c = 0; c < job.n_chunks; c += cuda::kWarp) {
      const std::uint32_t at = c + cuda::laneId();
      const std::uint32_t v = at < job.n_chunks ? static_cast<std::uint32_t>(sums[at]) : 0u;
      const std::uint32_t total = cuda::warpInclusiveSum(v);
      if (at < job.n_chunks) {
        sums[at] = static_cast<std::int32_t>(before + total - v);
      }
      before += __shfl_sync(cuda::kAllLanes, total, 31);
    }
  }
}

/// No axes: codes are bins.
__global__ void __launch_bounds__(kThreads) copyKernel(const __grid_constant__ SumJob job) {
  const Setup& setup = *job.end.setup;
  if (setup.is_ok == 0) {
    return;
  }
  const Scale scale = setup.scale;
  const std::int32_t units = binOf(setup, job.end.halvings).units;
  for (std::uint64_t i = threadIndex(); i < job.n_lines; i += threadCount()) {
    const Points p = pointOf(i, job.end.n);
    storeSum(job, p, loadTerm(job, p), units, scale);
  }
}

SumJob sumJob(const EndJob& end, unsigned axis) {
  SumJob job = {};
  job.end = end;
  job.axis = axis;
  const std::uint64_t n = std::uint64_t{end.n[0]} * end.n[1] * end.n[2];
  job.n_lines = n / end.n[axis];
  job.chunk =
      sumChunk(end.n[axis], job.n_lines, axis == 0 ? 1 : cuda::kWarp, cuda::multiprocessorCount());
  job.n_chunks = bits::ceilDiv(end.n[axis], job.chunk);
  return job;
}

bool hasAlignedRows(const Grid& bins) {
  return reinterpret_cast<std::uintptr_t>(bins.data) % 16 == 0 && bins.step[1] % 4 == 0 &&
         bins.step[2] % 4 == 0;
}

template <bool kStores>
auto sumKernel(const SumJob& job) {
  const bool has_fours = job.end.array.log2[0] >= 2 && job.chunk % 4 == 0;
  const bool is_aligned = job.is_last || hasAlignedRows(job.end.bins);
  if (job.axis != 0) {
    return columnSumKernel<kStores>;
  }
  // A line that is one chunk may be of any length.
  if (!is_aligned || (!has_fours && (job.end.array.log2[0] < 2 || job.n_chunks > 1))) {
    return rowSumKernel<kStores>;
  }
  return job.end.code_bytes == 2 ? fourSumKernel<kStores, std::int16_t>
                                 : fourSumKernel<kStores, std::int32_t>;
}

void launchSums(const SumJob& job, const cuda::Call& call) {
  const unsigned n_processors = cuda::multiprocessorCount();
  const std::uint64_t n_items = job.n_lines * job.n_chunks;
  const unsigned n_blocks =
      strideBlocks(job.axis == 0 ? n_items * cuda::kWarp : n_items, n_processors);
  if (job.n_chunks > 1) {
    call.launch("interp chunk sums", sumKernel<false>(job), n_blocks, kThreads, 0, job);
    call.launch("interp sums of chunks", chunkSumKernel,
                strideBlocks(job.n_lines * cuda::kWarp, n_processors), kThreads, 0, job);
  }
  call.launch("interp sums", sumKernel<true>(job), n_blocks, kThreads, 0, job);
}

/// Sums along x and y at once, where there are planes enough and rows fit into a thread block.
bool launchPlaneSums(const EndJob& end, const cuda::Call& call) {
  SumJob job = {};
  job.end = end;
  job.is_first = true;
  job.is_last = end.axes == 3;
  const bool is_fit = (end.axes & 3) == 3 && end.array.log2[0] >= 2 &&
                      (job.is_last || hasAlignedRows(end.bins)) &&
                      isForPlanes(end.n[0], end.n[2], cuda::multiprocessorCount());
  if (is_fit) {
    const unsigned n_threads = bits::roundUp(bits::ceilDiv(end.n[0], 4u), cuda::kWarp);
    call.launch("interp plane sums",
                end.code_bytes == 2 ? planeSumKernel<std::int16_t> : planeSumKernel<std::int32_t>,
                end.n[2], n_threads, 0, job);
  }
  return is_fit;
}

}  // namespace

std::uint64_t endSums(const Points& n, std::uint32_t axes) {
  std::uint64_t most = 0;
  for (unsigned axis = 0; axis < 3; ++axis) {
    if ((axes >> axis & 1) != 0) {
      EndJob end = {};
      end.n = n;
      const SumJob job = sumJob(end, axis);
      most = std::max(most, job.n_chunks > 1 ? job.n_lines * job.n_chunks : 0);
    }
  }
  return most;
}

void launchDecodeEnd(const EndJob& end, const cuda::Call& call) {
  const std::uint64_t n = std::uint64_t{end.n[0]} * end.n[1] * end.n[2];
  if (n == 0) {
    return;
  }
  if (end.axes == 0) {
    SumJob job = {};
    job.end = end;
    job.n_lines = n;
    job.is_first = true;
    job.is_last = true;
    call.launch("interp bins", copyKernel, strideBlocks(n, cuda::multiprocessorCount()), kThreads,
                0, job);
    return;
  }
  for (unsigned axis = launchPlaneSums(end, call) ? 2 : 0; axis < 3; ++axis) {
    if ((end.axes >> axis & 1) != 0) {
      SumJob job = sumJob(end, axis);
      job.is_first = (end.axes & ((1u << axis) - 1)) == 0;
      job.is_last = end.axes >> (axis + 1) == 0;
      launchSums(job, call);
    }
  }
}

}  // namespace fz::interp::device
