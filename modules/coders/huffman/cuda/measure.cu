// Counting symbols. Every block counts in its own shared memory, in as many copies of the histogram
// as fit, dealt out by lane: with 32 copies no two lanes of a warp meet, whatever the values are.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "coders/huffman/cuda/kernels.h"
#include "coders/huffman/cuda/setup.h"
#include "fz/cuda_part.h"

namespace fz::huffman {

namespace {

constexpr unsigned kThreads = kCountThreads;
constexpr unsigned kLoads = kCountLoads;
constexpr std::uint64_t kNoIndex = ~std::uint64_t{0};

/// One block's histogram, and the first value it met that is not a symbol.
struct Bins {
  std::uint32_t* counters;  ///< shared memory, at this lane's copy
  std::uint32_t first;
  std::uint32_t n_bins;
  std::uint32_t n_symbols;
  std::uint32_t copies_log2;
  std::uint64_t first_bad;

  __device__ __forceinline__ void add(std::uint32_t symbol, std::uint64_t index) {
    const std::uint32_t bin = symbol - first;
    if (bin < n_bins) {
      atomicAdd(counters + (bin << copies_log2), 1u);  // order-free: a count
    } else if (symbol >= n_symbols && first_bad == kNoIndex) {
      first_bad = index;  // a thread's indices rise
    }
  }
};

template <class T>
__device__ __forceinline__ void countAll(const CountArgs& args,
                                         std::uint64_t n_values,
                                         Bins& bins) {
  using Vec = cuda::Vec16<T>;
  const std::uint64_t n_vecs = n_values / Vec::kCount;
  constexpr std::uint64_t kTileVecs = kThreads * kLoads;
  for (std::uint64_t tile = blockIdx.x; tile * kTileVecs < n_vecs; tile += gridDim.x) {
    const std::uint64_t from = tile * kTileVecs + threadIdx.x;
    Vec vecs[kLoads];
#pragma unroll
    for (unsigned j = 0; j < kLoads; ++j) {
      if (from + j * kThreads < n_vecs) {
        vecs[j].raw = cuda::loadStream(args.in + 16 * (from + j * kThreads));
      }
    }
#pragma unroll
    for (unsigned j = 0; j < kLoads; ++j) {
      const std::uint64_t vec = from + j * kThreads;
      if (vec < n_vecs) {
#pragma unroll
        for (unsigned k = 0; k < Vec::kCount; ++k) {
          bins.add(vecs[j].v[k], vec * Vec::kCount + k);
        }
      }
    }
  }
  const std::uint64_t rest = n_vecs * Vec::kCount + threadIdx.x;
  if (blockIdx.x == 0 && rest < n_values) {  // fewer than 16 values
    bins.add(reinterpret_cast<const T*>(args.in)[rest], rest);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 1) countKernel(CountArgs args, CountShape shape) {
  extern __shared__ std::uint32_t counters[];
  const std::uint64_t n_bytes = cuda::load(args.size);
  const std::uint64_t n_values = n_bytes / sizeof(T);
  const std::uint32_t n_copies = 1u << shape.copies_log2;
  const std::uint32_t first = blockIdx.y * shape.n_bins;
  const std::uint32_t n_bins = min(shape.n_bins, args.n_symbols - first);
  for (std::uint32_t i = threadIdx.x; i < n_bins << shape.copies_log2; i += kThreads) {
    counters[i] = 0;
  }
  __syncthreads();
  Bins bins{counters + (cuda::laneId() & (n_copies - 1)),
            first,
            n_bins,
            args.n_symbols,
            shape.copies_log2,
            kNoIndex};
  countAll<T>(args, n_values, bins);
  __syncthreads();
  auto* totals = reinterpret_cast<unsigned long long*>(args.head + 1);
  for (std::uint32_t bin = threadIdx.x; bin < n_bins; bin += kThreads) {
    std::uint32_t sum = 0;
    for (std::uint32_t c = 0; c < n_copies; ++c) {  // each lane begins at another bank
      sum += counters[(bin << shape.copies_log2) | ((c + threadIdx.x) & (n_copies - 1))];
    }
    if (sum != 0) {
      atomicAdd(totals + first + bin, static_cast<unsigned long long>(sum));  // order-free: a count
    }
  }
  if (bins.first_bad != kNoIndex) {
    atomicMin(reinterpret_cast<unsigned long long*>(&args.head->first_bad),
              static_cast<unsigned long long>(bins.first_bad));
  }
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
    args.head->n_bytes = n_bytes;
    args.record->value[kCountSlot] = n_values;
  }
}

template <class T>
__global__ void failureKernel(FailureArgs args, StageRecord* record) {
  cuda::recordError(record, DeviceError::kDoesNotFit, args.index);
  record->value[kReasonSlot] = args.reason;
  record->error_value =
      args.symbols == nullptr ? args.value : reinterpret_cast<const T*>(args.symbols)[args.index];
}

/// The shared memory a block may have on the current device.
std::size_t sharedBytesLimit() {
  int device = 0;
  int n_bytes = 0;
  FZ_CUDA_CHECK(cudaGetDevice(&device));
  FZ_CUDA_CHECK(cudaDeviceGetAttribute(&n_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return static_cast<std::size_t>(n_bytes);
}

template <class T>
void launchCountOf(const CountArgs& args, const cuda::Call& call) {
  const CountShape shape = countShape(args.n_symbols, sharedBytesLimit());
  const unsigned n_rows = (args.n_symbols + shape.n_bins - 1) / shape.n_bins;
  const std::size_t shared_bytes =
      sizeof(std::uint32_t) * (std::size_t{shape.n_bins} << shape.copies_log2);
  const std::lock_guard lock(sharedLimitMutex());
  FZ_CUDA_CHECK(cudaFuncSetAttribute(countKernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared_bytes)));
  const dim3 grid(std::min(cuda::gridFor(args.size.n_bytes, 16 * kThreads * kLoads),
                           cuda::multiprocessorCount()),
                  n_rows);
  countKernel<T><<<grid, kThreads, shared_bytes, call.stream>>>(args, shape);
  cuda::checkLaunch("huffman::countKernel");
}

}  // namespace

void launchCount(const CountArgs& args, std::size_t value_bytes, const cuda::Call& call) {
  cuda::withUnsigned(value_bytes, [&]<class T>(T) { launchCountOf<T>(args, call); });
}

void launchFailure(const FailureArgs& args, std::size_t value_bytes, const cuda::Call& call) {
  cuda::withUnsigned(value_bytes, [&]<class T>(T) {
    failureKernel<T><<<1, 1, 0, call.stream>>>(args, call.record);
  });
  cuda::checkLaunch("huffman::failureKernel");
}

}  // namespace fz::huffman
