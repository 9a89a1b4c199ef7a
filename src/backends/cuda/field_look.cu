// What a field in device memory says of missing values and of its range.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <cuda_runtime_api.h>

#include "backends/cuda/batch_kernels.h"
#include "backends/cuda/device.cuh"
#include "backends/cuda/device_guard.h"
#include "backends/cuda/field_look.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/unaligned_load.cuh"
#include "cuda_check.h"
#include "fz/error.h"
#include "shared/field_sample.h"

namespace fz::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kPerThread = 16;
using Part = FieldLook::Part;

template <class T>
struct Look {
  const void* data;
  std::uint64_t n_values;
  T fill[FieldLook::kMaxFills];
  unsigned n_fills;
  Part* parts;
};

template <class T>
__device__ __forceinline__ T valueAt(const void* data, std::uint64_t i) {
  if constexpr (sizeof(T) == 4) {
    return __uint_as_float(loadUnaligned<std::uint32_t>(data, i));
  } else {
    return __longlong_as_double(static_cast<long long>(loadUnaligned<std::uint64_t>(data, i)));
  }
}

/// ValueEnds as device code has them. The values are finite; infinities stand for none.
template <class T>
struct Ends {
  T low;
  T next_low;
  T high;
  T next_high;

  __device__ __forceinline__ void reset() {
    low = static_cast<T>(INFINITY);
    next_low = low;
    high = -low;
    next_high = high;
  }
  __device__ __forceinline__ void addLow(T x) {
    if (x < low) {
      next_low = low;
      low = x;
    } else if (x > low && x < next_low) {
      next_low = x;
    }
  }
  __device__ __forceinline__ void addHigh(T x) {
    if (x > high) {
      next_high = high;
      high = x;
    } else if (x < high && x > next_high) {
      next_high = x;
    }
  }
  __device__ __forceinline__ void add(T x) {
    if (x < next_low) {
      addLow(x);
    }
    if (x > next_high) {
      addHigh(x);
    }
  }
  __device__ __forceinline__ void add(const Ends& other) {
    addLow(other.low);
    addLow(other.next_low);
    addHigh(other.high);
    addHigh(other.next_high);
  }
};

template <class T>
struct Found {
  Ends<T> ends;
  unsigned count;

  __device__ __forceinline__ void look(T x, const Look<T>& look) {
    bool missing = !isfinite(x);
    for (unsigned k = 0; k < look.n_fills; ++k) {
      missing = missing || x == look.fill[k];
    }
    count += missing ? 1u : 0u;
    if (!missing) {
      ends.add(x);
    }
  }
};

/// All threads of a block.
template <class T, unsigned kBlock>
__device__ void storePart(Found<T> found, Part* part) {
  __shared__ Ends<T> ends[kBlock];
  __shared__ unsigned count;
  if (threadIdx.x == 0) {
    count = 0;
  }
  ends[threadIdx.x] = found.ends;
  __syncthreads();
  atomicAdd(&count, found.count);  // order-free: a sum
  for (unsigned n = kBlock / 2; n > 0; n /= 2) {
    if (threadIdx.x < n) {
      found.ends.add(ends[threadIdx.x + n]);
      ends[threadIdx.x] = found.ends;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    *part = {static_cast<double>(found.ends.low), static_cast<double>(found.ends.next_low),
             static_cast<double>(found.ends.high), static_cast<double>(found.ends.next_high),
             count};
  }
}

/// A block for each word of the sample.
template <class T>
__global__ void __launch_bounds__(field_sample::kWordValues) sampleKernel(Look<T> look) {
  constexpr std::uint64_t kWordValues = field_sample::kWordValues;
  const std::uint64_t n_words = (look.n_values + kWordValues - 1) / kWordValues;
  const std::uint64_t at = field_sample::word(blockIdx.x, n_words) * kWordValues + threadIdx.x;
  Found<T> found;
  found.ends.reset();
  found.count = 0;
  if (at < look.n_values) {
    found.look(valueAt<T>(look.data, at), look);
  }
  storePart<T, field_sample::kWordValues>(found, look.parts + blockIdx.x);
}

/// A block for each field: the same words, one after the other.
template <class T>
__global__ void __launch_bounds__(kThreads) sampleEachKernel(const FieldEnds* ends, Look<T> look) {
  constexpr std::uint64_t kWordValues = field_sample::kWordValues;
  constexpr unsigned kWordsAtOnce = kThreads / field_sample::kWordValues;
  look.data = reinterpret_cast<const void*>(ends[blockIdx.x].value[0]);
  const std::uint64_t n_words = (look.n_values + kWordValues - 1) / kWordValues;
  const std::uint64_t n_sampled = field_sample::count(n_words);
  Found<T> found;
  found.ends.reset();
  found.count = 0;
#pragma unroll 4
  for (std::uint64_t i = threadIdx.x / kWordValues; i < n_sampled; i += kWordsAtOnce) {
    const std::uint64_t at =
        field_sample::word(i, n_words) * kWordValues + threadIdx.x % kWordValues;
    if (at < look.n_values) {
      found.look(valueAt<T>(look.data, at), look);
    }
  }
  storePart<T, kThreads>(found, look.parts + blockIdx.x);
}

template <class T>
__global__ void __launch_bounds__(kThreads) allKernel(Look<T> look) {
  Found<T> found;
  found.ends.reset();
  found.count = 0;
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads * kPerThread;
  for (std::uint64_t at = std::uint64_t{blockIdx.x} * kThreads * kPerThread; at < look.n_values;
       at += step) {
    T values[kPerThread];
#pragma unroll
    for (unsigned k = 0; k < kPerThread; ++k) {
      const std::uint64_t i = at + k * kThreads + threadIdx.x;
      values[k] = i < look.n_values ? valueAt<T>(look.data, i) : T{0};
    }
#pragma unroll
    for (unsigned k = 0; k < kPerThread; ++k) {
      if (at + k * kThreads + threadIdx.x < look.n_values) {
        found.look(values[k], look);
      }
    }
  }
  storePart<T, kThreads>(found, look.parts + blockIdx.x);
}

template <class T>
__global__ void __launch_bounds__(kThreads) equalKernel(Look<T> look, T wanted) {
  Found<T> found;
  found.ends.reset();
  found.count = 0;
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < look.n_values;
       i += step) {
    found.count += valueAt<T>(look.data, i) == wanted ? 1u : 0u;
  }
  storePart<T, kThreads>(found, look.parts + blockIdx.x);
}

template <class T>
Look<T> lookOf(const FieldValues& field, Part* parts) {
  Look<T> look{field.data, field.n_bytes / sizeof(T), {}, 0, parts};
  for (const double value : field.fill) {
    // NaN and infinities are missing anyway, and what no T can be is not in the field.
    const bool is_one = std::fabs(value) <= static_cast<double>(std::numeric_limits<T>::max());
    if (is_one && look.n_fills < FieldLook::kMaxFills) {
      look.fill[look.n_fills++] = static_cast<T>(value);
    }
  }
  return look;
}

template <class F>
void withType(DataType type, F f) {
  type == DataType::FLOAT32 ? f(float{}) : f(double{});
}

}  // namespace

FieldLook::FieldLook() {
  const cudaError_t status = cudaHostAlloc(reinterpret_cast<void**>(&parts_),
                                           kMaxParts * sizeof(Part), cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    detail::throwOutOfMemory();
  }
  FZ_CUDA_CHECK(status);
}

FieldLook::~FieldLook() {
  cudaFreeHost(parts_);
}

FieldFindings FieldLook::merge(unsigned n_parts) const {
  FieldFindings findings;
  for (unsigned i = 0; i < n_parts; ++i) {
    const Part& part = parts_[i];
    findings.has_missing = findings.has_missing || part.count != 0;
    for (const double x : {part.low, part.next_low, part.high, part.next_high}) {
      findings.ends.add(x);
    }
  }
  return findings;
}

FieldFindings FieldLook::sample(const FieldValues& field, cudaStream_t stream) {
  const DeviceGuard guard(field.device);
  unsigned n_parts = 0;
  withType(field.type, [&]<class T>(T /*type*/) {
    const Look<T> look = lookOf<T>(field, parts_);
    const std::uint64_t n_words =
        (look.n_values + field_sample::kWordValues - 1) / field_sample::kWordValues;
    n_parts = static_cast<unsigned>(field_sample::count(n_words));
    if (n_parts > 0) {
      sampleKernel<T><<<n_parts, field_sample::kWordValues, 0, stream>>>(look);
      checkLaunch("sample of a field");
      FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
    }
  });
  return merge(n_parts);
}

FieldFindings FieldLook::all(const FieldValues& field, cudaStream_t stream) {
  const DeviceGuard guard(field.device);
  unsigned n_parts = 0;
  withType(field.type, [&]<class T>(T /*type*/) {
    const Look<T> look = lookOf<T>(field, parts_);
    n_parts = std::min(kMaxParts, gridFor(look.n_values, std::size_t{kThreads} * kPerThread));
    allKernel<T><<<n_parts, kThreads, 0, stream>>>(look);
    checkLaunch("look at a field");
  });
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  return merge(n_parts);
}

void enqueueSamples(const FieldEnds* ends,
                    DataType type,
                    std::uint64_t n_bytes,
                    FieldLook::Part* samples,
                    unsigned n_fields,
                    cudaStream_t stream) {
  withType(type, [&]<class T>(T /*type*/) {
    const Look<T> look = lookOf<T>({type, nullptr, n_bytes, {}, 0}, samples);
    sampleEachKernel<T><<<n_fields, kThreads, 0, stream>>>(ends, look);
  });
  checkLaunch("samples of a batch");
}

std::uint64_t FieldLook::countEqual(const FieldValues& field, double value, cudaStream_t stream) {
  const DeviceGuard guard(field.device);
  unsigned n_parts = 0;
  withType(field.type, [&]<class T>(T /*type*/) {
    const Look<T> look = lookOf<T>(field, parts_);
    n_parts = std::min(kMaxParts, gridFor(look.n_values, std::size_t{kThreads} * kPerThread));
    equalKernel<T><<<n_parts, kThreads, 0, stream>>>(look, static_cast<T>(value));
    checkLaunch("count in a field");
  });
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  std::uint64_t n_found = 0;
  for (unsigned i = 0; i < n_parts; ++i) {
    n_found += parts_[i].count;
  }
  return n_found;
}

}  // namespace fz::cuda
