// Differences and sums along some of the axes only, value by value and line by line: right for
// every grid, not tuned for any.

#include <type_traits>

#include "predictors/lorenzo/cuda/grid.cuh"

namespace fz::lorenzo {

namespace {

constexpr unsigned kBlocksEach = 8;  // per multiprocessor

/// Extents as a config has them; all 0 when there is nothing to do.
struct Extent {
  std::uint64_t x;
  std::uint64_t y;
  std::uint64_t z;

  __device__ std::uint64_t count() const { return x * y * z; }
};

template <class U>
__device__ Extent extentOf(const GridArgs& args) {
  const Grid grid = resolveGrid<U>(args);
  return grid.nx == 0 ? Extent{0, 0, 0}
                      : Extent{grid.nx, args.rows_are_z ? args.n_layers : args.n_rows,
                               args.rows_are_z ? args.n_rows : args.n_layers};
}

/// Differences along these axes; without any, a copy. I numbers the values.
template <class U, class I>
__global__ void __launch_bounds__(kThreads) differencesKernel(GridArgs args, AxisSet along) {
  const Extent extent = extentOf<U>(args);
  const auto n = static_cast<I>(extent.count());
  const auto nx = static_cast<I>(extent.x);
  const auto ny = static_cast<I>(extent.y);
  const I steps[3] = {1, nx, nx * ny};
  const bool wanted[3] = {along.x, along.y, along.z};
  const U* const in = static_cast<const U*>(args.in);
  U* const out = static_cast<U*>(args.out);
  const I n_threads = static_cast<I>(gridDim.x) * kThreads;
  for (I i = static_cast<I>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += n_threads) {
    const I line = i / nx;
    const I place[3] = {i % nx, line % ny, line / ny};
    std::uint64_t sum = 0;
    // A difference along several axes is a sum over the corners towards 0, with both signs.
#pragma unroll
    for (unsigned corner = 0; corner < 8; ++corner) {
      I at = i;
      bool is_there = true;
#pragma unroll
      for (unsigned axis = 0; axis < 3; ++axis) {
        if ((corner >> axis & 1u) != 0) {
          is_there = is_there && wanted[axis] && place[axis] != 0;
          at -= steps[axis];
        }
      }
      if (is_there) {
        const bool is_less = (corner ^ corner >> 1 ^ corner >> 2) % 2 != 0;
        sum = is_less ? sum - in[at] : sum + in[at];
      }
    }
    out[i] = static_cast<U>(sum);
    if (n - i <= n_threads) {
      break;  // the next index may not fit
    }
  }
}

/// Sums along x; a block takes line after line.
template <class U>
__global__ void __launch_bounds__(kThreads) sumXKernel(GridArgs args) {
  using Word = std::conditional_t<sizeof(U) == 8, std::uint64_t, std::uint32_t>;
  __shared__ Word warp_sums[kWarps];
  const Extent extent = extentOf<U>(args);
  const U* const in = static_cast<const U*>(args.in);
  U* const out = static_cast<U*>(args.out);
  for (std::uint64_t line = blockIdx.x; line < extent.y * extent.z; line += gridDim.x) {
    Word before = 0;
    for (std::uint64_t x0 = 0; x0 < extent.x; x0 += kThreads) {
      const std::uint64_t x = x0 + threadIdx.x;
      const std::uint64_t at = line * extent.x + x;
      const Word own = x < extent.x ? in[at] : 0;
      Word all = 0;
      const Word sum = cuda::blockExclusiveSum<kThreads>(own, warp_sums, &all);
      if (x < extent.x) {
        out[at] = static_cast<U>(before + sum + own);
      }
      before += all;
      __syncthreads();
    }
  }
}

/// Sums of what stands in the output along y or z; a thread takes column after column.
template <class U>
__global__ void __launch_bounds__(kThreads) sumColumnsKernel(GridArgs args, bool along_z) {
  const Extent extent = extentOf<U>(args);
  U* const out = static_cast<U*>(args.out);
  const std::uint64_t layer = extent.x * extent.y;
  const std::uint64_t step = along_z ? layer : extent.x;
  const std::uint64_t n_each = along_z ? extent.z : extent.y;
  const std::uint64_t n_columns = n_each == 0 ? 0 : extent.count() / n_each;
  const std::uint64_t n_threads = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t c = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; c < n_columns;
       c += n_threads) {
    U* value = out + (along_z ? c : c / extent.x * layer + c % extent.x);
    U sum = 0;
#pragma unroll 4
    for (std::uint64_t i = 0; i < n_each; ++i, value += step) {
      sum = static_cast<U>(sum + *value);
      *value = sum;
    }
  }
}

unsigned blocksFor(std::uint64_t n_items, std::uint64_t n_each) {
  return std::min(cuda::gridFor(n_items, n_each), kBlocksEach * cuda::multiprocessorCount());
}

template <class U>
void launchDifferences(const CudaGrid& grid, const AxisSet& along) {
  const std::uint64_t n = grid.dims[0] * grid.dims[1] * grid.dims[2];
  const unsigned n_blocks = blocksFor(n, kThreads);
  const auto kernel =
      n <= 0xFFFFFFFFu ? differencesKernel<U, std::uint32_t> : differencesKernel<U, std::uint64_t>;
  kernel<<<n_blocks, kThreads, 0, grid.stream>>>(gridArgs(grid), along);
  cuda::checkLaunch("lorenzo::differencesKernel");
}

}  // namespace

template <class U>
void encodeAlong(const CudaGrid& grid, const AxisSet& along) {
  launchDifferences<U>(grid, along);
}

template <class U>
void decodeAlong(const CudaGrid& grid, const AxisSet& along) {
  const GridArgs args = gridArgs(grid);
  if (along.x) {
    const unsigned n_blocks = blocksFor(grid.dims[1] * grid.dims[2], 1);
    sumXKernel<U><<<n_blocks, kThreads, 0, grid.stream>>>(args);
    cuda::checkLaunch("lorenzo::sumXKernel");
  } else {
    launchDifferences<U>(grid, {false, false, false});
  }
  for (const bool is_z : {false, true}) {
    if (is_z ? along.z : along.y) {
      const unsigned n_blocks = blocksFor(grid.dims[0] * grid.dims[is_z ? 1 : 2], kThreads);
      sumColumnsKernel<U><<<n_blocks, kThreads, 0, grid.stream>>>(args, is_z);
      cuda::checkLaunch("lorenzo::sumColumnsKernel");
    }
  }
}

template void encodeAlong<std::uint8_t>(const CudaGrid&, const AxisSet&);
template void encodeAlong<std::uint16_t>(const CudaGrid&, const AxisSet&);
template void encodeAlong<std::uint32_t>(const CudaGrid&, const AxisSet&);
template void encodeAlong<std::uint64_t>(const CudaGrid&, const AxisSet&);
template void decodeAlong<std::uint8_t>(const CudaGrid&, const AxisSet&);
template void decodeAlong<std::uint16_t>(const CudaGrid&, const AxisSet&);
template void decodeAlong<std::uint32_t>(const CudaGrid&, const AxisSet&);
template void decodeAlong<std::uint64_t>(const CudaGrid&, const AxisSet&);

}  // namespace fz::lorenzo
