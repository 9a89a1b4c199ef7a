// Lists of outliers, in the order of their places.
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "fused/interp/cuda/policy.h"
#include "fused/interp/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

constexpr unsigned kWarps = kThreads / cuda::kWarp;
constexpr unsigned kThreadWords = kListWords / kThreads;

__device__ __forceinline__ std::uint64_t chunkCount(const ListJob& job) {
  return bits::ceilDiv<std::uint64_t>(job.n_values, std::uint64_t{32} * kListWords);
}

/// Marks of the words of a thread, in order; those behind the field are 0.
__device__ __forceinline__ void loadWords(const ListJob& job,
                                          std::uint64_t chunk,
                                          std::uint32_t (&words)[kThreadWords]) {
  const std::uint64_t n_words = bits::ceilDiv<std::uint64_t>(job.n_values, 32);
  const std::uint64_t first = chunk * kListWords + threadIdx.x * kThreadWords;
#pragma unroll
  for (unsigned w = 0; w < kThreadWords; ++w) {
    words[w] = first + w < n_words ? job.words[first + w] : 0;
  }
}

template <class T>
__device__ __forceinline__ T countMarks(const std::uint32_t (&words)[kThreadWords]) {
  T n = 0;
#pragma unroll
  for (unsigned w = 0; w < kThreadWords; ++w) {
    n += static_cast<T>(__popc(words[w]));
  }
  return n;
}

/// Counts of chunks; then what comes before each, and how many there are.
__global__ void __launch_bounds__(kThreads) countMarksKernel(const __grid_constant__ ListJob job) {
  __shared__ std::uint64_t warp_sums[kWarps];
  const std::uint64_t n_chunks = chunkCount(job);
  for (std::uint64_t chunk = blockIdx.x; chunk < n_chunks; chunk += gridDim.x) {
    std::uint32_t words[kThreadWords];
    loadWords(job, chunk, words);
    std::uint64_t total = 0;
    cuda::blockExclusiveSum<kThreads>(countMarks<std::uint64_t>(words), warp_sums, &total);
    if (threadIdx.x == 0) {
      job.counts[chunk] = total;
    }
    __syncthreads();
  }
  if (!cuda::isLastBlock(&job.setup->n_list_blocks)) {
    return;
  }
  std::uint64_t before = 0;
  for (std::uint64_t first = 0; first < n_chunks; first += kThreads) {
    const std::uint64_t chunk = first + threadIdx.x;
    const std::uint64_t count = chunk < n_chunks ? __ldcg(job.counts + chunk) : 0;
    std::uint64_t total = 0;
    const std::uint64_t place =
        before + cuda::blockExclusiveSum<kThreads>(count, warp_sums, &total);
    if (chunk < n_chunks) {
      job.counts[chunk] = place;
    }
    before += total;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    job.setup->n_outliers = before;
    cuda::publishSize(job.record, 1, before * (sizeof(std::uint32_t) + job.value_bytes),
                      job.out.capacity_bytes);
  }
}

/// Values of 4 or 8 bytes; only words of 4 are aligned in a list.
__device__ __forceinline__ void copyValue(const void* from,
                                          std::uint64_t from_index,
                                          void* to,
                                          std::uint64_t to_index,
                                          std::uint32_t value_bytes) {
  const auto* const in = static_cast<const std::uint32_t*>(from);
  auto* const out = static_cast<std::uint32_t*>(to);
  const std::uint32_t n_words = value_bytes / 4;
  for (std::uint32_t w = 0; w < n_words; ++w) {
    out[to_index * n_words + w] = in[from_index * n_words + w];
  }
}

__global__ void __launch_bounds__(kThreads) writeListKernel(const __grid_constant__ ListJob job) {
  __shared__ std::uint64_t warp_sums[kWarps];
  const std::uint64_t n_outliers = job.setup->n_outliers;
  if (n_outliers == 0 ||
      n_outliers * (sizeof(std::uint32_t) + job.value_bytes) > job.out.capacity_bytes) {
    return;
  }
  auto* const indices = reinterpret_cast<std::uint32_t*>(job.out.data);
  const std::uint64_t n_chunks = chunkCount(job);
  for (std::uint64_t chunk = blockIdx.x; chunk < n_chunks; chunk += gridDim.x) {
    std::uint32_t words[kThreadWords];
    loadWords(job, chunk, words);
    std::uint64_t total = 0;
    std::uint64_t place =
        job.counts[chunk] +
        cuda::blockExclusiveSum<kThreads>(countMarks<std::uint64_t>(words), warp_sums, &total);
    const std::uint64_t first = chunk * kListWords + threadIdx.x * kThreadWords;
    for (unsigned w = 0; w < kThreadWords; ++w) {
      for (std::uint32_t word = words[w]; word != 0; word &= word - 1, ++place) {
        const std::uint64_t index = (first + w) * 32 + bits::firstSet(std::uint64_t{word});
        indices[place] = static_cast<std::uint32_t>(index);
        copyValue(job.values, index, indices + n_outliers, place, job.value_bytes);
      }
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads) scatterKernel(const __grid_constant__ ScatterJob job) {
  const Setup& setup = *job.setup;
  if (setup.is_ok == 0) {
    return;
  }
  const std::uint64_t n = setup.n_outliers;
  const auto* const indices = reinterpret_cast<const std::uint32_t*>(job.list);
  for (std::uint64_t i = threadIndex(); i < n; i += threadCount()) {
    const std::uint32_t index = indices[i];
    if (index >= job.n_values || (i > 0 && indices[i - 1] >= index)) {
      cuda::recordError(job.record, DeviceError::kCorrupt, i);
    } else {
      copyValue(indices + n, i, job.out, index, job.value_bytes);
    }
  }
}

}  // namespace

std::uint64_t listChunks(std::uint64_t n_values) {
  return bits::ceilDiv<std::uint64_t>(n_values, std::uint64_t{32} * kListWords);
}

void launchList(const ListJob& job, const cuda::Call& call) {
  const unsigned n_blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(
      listChunks(job.n_values), 1, std::uint64_t{8} * cuda::multiprocessorCount()));
  call.launch("interp count outliers", countMarksKernel, n_blocks, kThreads, 0, job);
  if (job.n_values != 0) {
    call.launch("interp list outliers", writeListKernel, n_blocks, kThreads, 0, job);
  }
}

void launchScatter(const ScatterJob& job, const cuda::Call& call) {
  if (job.n_limit != 0) {
    call.launch("interp outliers", scatterKernel,
                strideBlocks(job.n_limit, cuda::multiprocessorCount()), kThreads, 0, job);
  }
}

}  // namespace fz::interp::device
