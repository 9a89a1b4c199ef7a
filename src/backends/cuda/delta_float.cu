// Decoding differences of floats. The format sums from left to right, with rounding. Sums in
// another order are tried first and every single step is checked: when all steps are right, so is
// the whole. If one is not, everything is summed again in order.
#include "backends/cuda/delta_decode.cuh"

namespace fz::delta {

namespace {

constexpr unsigned kRepairBlocks = 1024;

template <class T>
__device__ __forceinline__ std::uint64_t countOf(const CudaValues& values) {
  const std::uint64_t n_bytes = cuda::load(values.size);
  return (n_bytes < values.capacity_bytes ? n_bytes : values.capacity_bytes) / sizeof(T);
}

/// The one step per tile that decodeKernel cannot see.
template <class T>
__global__ __launch_bounds__(kThreads) void checkTileStarts(CudaValues values,
                                                            std::uint64_t tile_values,
                                                            std::uint64_t block_tiles,
                                                            std::uint32_t* mismatch) {
  const std::uint64_t tile = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::uint64_t at = tile * tile_values;
  if ((tile & (block_tiles - 1)) != 0 && at < countOf<T>(values)) {
    const auto* in = static_cast<const T*>(values.in);
    const auto* out = static_cast<const T*>(values.out);
    if (!isRestored(out[at - 1], in[at], out[at])) {
      *mismatch = 1;
    }
  }
}

/// a + b. Of NaNs the result is that of the host: the left one, else the right one, made quiet, and
/// the negative default where infinities cancel. Only damaged streams get here with any.
template <class T>
__device__ __forceinline__ T plusAsOnHost(T a, T b) {
  using Bits = decltype(fp::bits(a));
  constexpr Bits kQuiet = Bits{1} << (sizeof(T) == 4 ? 22 : 51);
  constexpr Bits kDefault = ~Bits{0} << (sizeof(T) == 4 ? 22 : 51);
  const T sum = plus(a, b);
  if (sum == sum) {
    return sum;
  }
  if (a != a) {
    return fp::bitCast<T>(fp::bits(a) | kQuiet);
  }
  return fp::bitCast<T>(b != b ? fp::bits(b) | kQuiet : kDefault);
}

/// One warp per block of values: all lanes do the same sums, each keeps the one of its place.
template <class T>
__global__ __launch_bounds__(kThreads) void sumInOrder(CudaValues values,
                                                       std::uint64_t length,
                                                       const std::uint32_t* mismatch) {
  if (*mismatch == 0) {
    return;
  }
  constexpr unsigned kAhead = 4;
  const auto* in = static_cast<const T*>(values.in);
  auto* out = static_cast<T*>(values.out);
  const std::uint64_t n = countOf<T>(values);
  const std::uint64_t n_blocks = n == 0 ? 0 : (n - 1) / length + 1;
  const unsigned lane = cuda::laneId();
  for (std::uint64_t b = std::uint64_t{blockIdx.x} * kWarps + cuda::warpId(); b < n_blocks;
       b += std::uint64_t{gridDim.x} * kWarps) {
    const std::uint64_t begin = b * length;
    const std::uint64_t end = n - begin < length ? n : begin + length;
    T next[kAhead];
    const auto fetch = [&](std::uint64_t from) {
#pragma unroll
      for (unsigned k = 0; k < kAhead; ++k) {
        const std::uint64_t at = from + k * cuda::kWarp + lane;
        next[k] = at < end ? in[at] : T{0};
      }
    };
    fetch(begin);
    T sum = 0;
    for (std::uint64_t from = begin; from < end; from += kAhead * cuda::kWarp) {
      T codes[kAhead];
#pragma unroll
      for (unsigned k = 0; k < kAhead; ++k) {
        codes[k] = next[k];
      }
      fetch(from + kAhead * cuda::kWarp);
#pragma unroll
      for (unsigned k = 0; k < kAhead; ++k) {
        const std::uint64_t at = from + k * cuda::kWarp;
        T own = 0;
#pragma unroll 8
        for (unsigned i = 0; i < cuda::kWarp; ++i) {
          const T code = __shfl_sync(cuda::kAllLanes, codes[k], static_cast<int>(i));
          sum = at + i == begin ? code : plusAsOnHost(sum, code);
          own = lane == i ? sum : own;
        }
        if (at + lane < end) {
          out[at + lane] = own;
        }
      }
    }
  }
}

}  // namespace

template <class T>
void decodeFloats(const CudaBlocks& run, void* scratch) {
  auto* mismatch = static_cast<std::uint32_t*>(scratch);
  FZ_CUDA_CHECK(cudaMemsetAsync(mismatch, 0, sizeof(*mismatch), run.stream));
  void* states = static_cast<std::uint8_t*>(scratch) + kScratchStates;
  const std::uint64_t tile_values = launchDecode<T, Code::kPlain>(run, states, mismatch);
  const std::uint64_t length = blockLength(run.block);
  const CudaValues values = cudaValues(run);
  if (tile_values != 0) {
    const std::uint64_t n_tiles = run.input.size.n_bytes / sizeof(T) / tile_values + 1;
    checkTileStarts<T><<<cuda::gridFor(n_tiles, kThreads), kThreads, 0, run.stream>>>(
        values, tile_values, length / tile_values, mismatch);
  }
  sumInOrder<T><<<kRepairBlocks, kThreads, 0, run.stream>>>(values, length, mismatch);
  cuda::checkLaunch("delta decode of floats");
}

template void decodeFloats<float>(const CudaBlocks&, void*);
template void decodeFloats<double>(const CudaBlocks&, void*);

}  // namespace fz::delta
