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

__global__ void countMisses(const float* values,
                            const float* decoded,
                            std::size_t n,
                            double bound,
                            bool relative,
                            unsigned long long* n_misses,
                            unsigned* example) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long n_mine = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    const bool keeps = relative ? keepsRelative(values[i], decoded[i], bound)
                                : keepsAbsolute(values[i], decoded[i], bound);
    if (!keeps) {
      ++n_mine;
      *example = __float_as_uint(values[i]);
    }
  }
  if (n_mine > 0) {
    atomicAdd(n_misses, n_mine);  // order-free: a sum of integers
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
                   unsigned long long* n_misses,
                   unsigned* example,
                   cudaStream_t stream) {
  countMisses<<<kBlocks, kThreads, 0, stream>>>(values, decoded, n, bound, relative, n_misses,
                                                example);
}

}  // namespace fz::trust
