#include "trust/exact.h"
#include "trust/gpu/pattern_kernels.h"

namespace fz::trust {

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kBlocks = 4096;

__global__ void fillPatterns(float* values, std::size_t n, std::uint32_t first) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    values[i] = __uint_as_float(first + static_cast<std::uint32_t>(i));
  }
}

__global__ void fillRandom(double* values, std::size_t n, std::uint64_t seed, bool near_one) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    std::uint64_t bits = seed + (i + 1) * 0x9E3779B97F4A7C15u;  // splitmix64
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    bits ^= bits >> 31;
    if (near_one) {
      bits = (bits & 0x807FFFFFFFFFFFFFu) | 0x3F80000000000000u;
    }
    values[i] = __longlong_as_double(static_cast<long long>(bits));
  }
}

__device__ bool keeps(float x, float y, double bound, bool relative) {
  return relative ? keepsRelative(x, y, bound) : keepsAbsolute(x, y, bound);
}
__device__ bool keeps(double x, double y, double bound, bool relative) {
  return relative ? keepsRelative64(x, y, bound) : keepsAbsolute64(x, y, bound);
}
__device__ unsigned long long bitsOf(float x) {
  return __float_as_uint(x);
}
__device__ unsigned long long bitsOf(double x) {
  return static_cast<unsigned long long>(__double_as_longlong(x));
}

template <class T>
__global__ void countMisses(
    const T* values, const T* decoded, std::size_t n, double bound, bool relative, Misses* found) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long n_mine = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    if (!keeps(values[i], decoded[i], bound, relative)) {
      ++n_mine;
      found->example = bitsOf(values[i]);
    }
  }
  if (n_mine > 0) {
    atomicAdd(&found->n, n_mine);  // order-free: a sum of integers
  }
}

}  // namespace

void enqueuePatterns(float* values, std::size_t n, std::uint32_t first, cudaStream_t stream) {
  fillPatterns<<<kBlocks, kThreads, 0, stream>>>(values, n, first);
}

void enqueueMisses(const float* values,
                   const float* decoded,
                   std::size_t n,
                   double bound,
                   bool relative,
                   Misses* found,
                   cudaStream_t stream) {
  countMisses<<<kBlocks, kThreads, 0, stream>>>(values, decoded, n, bound, relative, found);
}
void enqueueMisses(const double* values,
                   const double* decoded,
                   std::size_t n,
                   double bound,
                   bool relative,
                   Misses* found,
                   cudaStream_t stream) {
  countMisses<<<kBlocks, kThreads, 0, stream>>>(values, decoded, n, bound, relative, found);
}

void enqueueRandomDoubles(
    double* values, std::size_t n, std::uint64_t seed, bool near_one, cudaStream_t stream) {
  fillRandom<<<kBlocks, kThreads, 0, stream>>>(values, n, seed, near_one);
}

}  // namespace fz::trust
