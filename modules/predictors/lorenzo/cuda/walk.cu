#include "backends/cuda/shared_memory.h"
#include "predictors/lorenzo/cuda/walk.cuh"

namespace fz::lorenzo {

namespace {

/// Calls f with the type of the tiles.
template <class U, class F>
auto withTile(const CudaGrid& grid, F f) {
  if constexpr (sizeof(U) >= 4) {
    if (!areRowsAligned<U>(grid)) {
      return f(WalkTile<U, false>());
    }
  }
  return f(WalkTile<U, true>());
}

}  // namespace

template <class U>
bool canWalk(const CudaGrid& grid) {
  // Smaller values cannot be fetched one by one.
  return (sizeof(U) >= 4 || areRowsAligned<U>(grid)) &&
         sizeof(WalkMemory<WalkTile<U, true>>) <= cuda::sharedBytesLimit();
}

template <class U>
DecodeWay fasterWay(const CudaGrid& grid) {
  if (!canWalk<U>(grid)) {
    return DecodeWay::kTwoPasses;
  }
  return withTile<U>(grid, [&](auto tile) {
    using T = decltype(tile);
    std::size_t n_clear_bytes = 0;
    std::size_t n_bytes = 0;
    const auto mail = planMail<T>(gridArgs(grid), nullptr, n_clear_bytes, n_bytes);
    // In layers of a tile, as measured: two passes take 2.4 times as long for each, but have work
    // for all multiprocessors from the first moment on; a letter takes half a step.
    const std::uint64_t n_processors = cuda::multiprocessorCount();
    const std::uint64_t n_tiles = mail.n_strips * mail.n_bands;
    const std::uint64_t n_waves = bits::ceilDiv(n_tiles, n_processors);
    const std::uint64_t n_steps = n_waves * mail.n_steps + (mail.n_strips + mail.n_bands) / 2;
    const std::uint64_t walk = n_processors * n_steps * T::kLayers;
    const std::uint64_t two_passes = n_tiles * gridArgs(grid).n_layers * 12 / 5;
    return walk < two_passes ? DecodeWay::kWalk : DecodeWay::kTwoPasses;
  });
}

template <class U>
std::size_t walkScratchBytes(const CudaGrid& grid) {
  return withTile<U>(grid, [&](auto tile) {
    std::size_t n_clear_bytes = 0;
    std::size_t n_bytes = 0;
    planMail<decltype(tile)>(gridArgs(grid), nullptr, n_clear_bytes, n_bytes);
    return n_bytes;
  });
}

template <class U>
void walkGrid(const CudaGrid& grid, void* scratch) {
  withTile<U>(grid, [&](auto tile) {
    using T = decltype(tile);
    const GridArgs args = gridArgs(grid);
    std::size_t n_clear_bytes = 0;
    std::size_t n_bytes = 0;
    const auto mail = planMail<T>(args, scratch, n_clear_bytes, n_bytes);
    if (n_clear_bytes > 0) {
      FZ_CUDA_CHECK(cudaMemsetAsync(scratch, 0, n_clear_bytes, grid.stream));
    }
    const unsigned n_blocks = cuda::gridFor(mail.n_strips * mail.n_bands, 1);
    constexpr std::size_t kSharedBytes = sizeof(WalkMemory<T>);
    cuda::allowSharedBytes(reinterpret_cast<const void*>(&walkKernel<T>), kSharedBytes);
    walkKernel<T><<<n_blocks, kWalkThreads, kSharedBytes, grid.stream>>>(args, mail);
    cuda::checkLaunch("Lorenzo decode");
  });
}

template bool canWalk<std::uint8_t>(const CudaGrid&);
template bool canWalk<std::uint16_t>(const CudaGrid&);
template bool canWalk<std::uint32_t>(const CudaGrid&);
template bool canWalk<std::uint64_t>(const CudaGrid&);
template DecodeWay fasterWay<std::uint8_t>(const CudaGrid&);
template DecodeWay fasterWay<std::uint16_t>(const CudaGrid&);
template DecodeWay fasterWay<std::uint32_t>(const CudaGrid&);
template DecodeWay fasterWay<std::uint64_t>(const CudaGrid&);
template std::size_t walkScratchBytes<std::uint8_t>(const CudaGrid&);
template std::size_t walkScratchBytes<std::uint16_t>(const CudaGrid&);
template std::size_t walkScratchBytes<std::uint32_t>(const CudaGrid&);
template std::size_t walkScratchBytes<std::uint64_t>(const CudaGrid&);
template void walkGrid<std::uint8_t>(const CudaGrid&, void*);
template void walkGrid<std::uint16_t>(const CudaGrid&, void*);
template void walkGrid<std::uint32_t>(const CudaGrid&, void*);
template void walkGrid<std::uint64_t>(const CudaGrid&, void*);

}  // namespace fz::lorenzo
