// The list entries of a decode, and what only streams of the original system have: deltas that no
// integer holds, and values beyond the extents.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "fused/lorenzo_quant/lorenzo_quant_decode.cuh"

namespace fz::lorenzo_quant::device {

namespace {

constexpr unsigned kThreads = 256;

/// This thread's number and the number of threads, for loops over a grid of any size.
struct Strided {
  std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  __device__ __forceinline__ Strided() {}
};

template <class T>
__global__ void __launch_bounds__(kThreads) clearMarks(const DecodeRun run) {
  const auto& plan = *static_cast<const DecodePlan<T>*>(run.plan);
  if (plan.n_range == 0) {
    return;
  }
  // The last piece may reach past the words that are used; the host has rounded up.
  const std::uint64_t n_pieces =
      bits::ceilDiv<std::uint64_t>(markWords<T>(plan.layout, plan.n_values), 4);
  const Strided all;
  for (std::uint64_t i = all.first; i < n_pieces; i += all.step) {
    reinterpret_cast<uint4*>(run.marks)[i] = make_uint4(0, 0, 0, 0);
  }
}

/// Entries may come in any order; two for one value meet in its mark.
template <class T>
__global__ void __launch_bounds__(kThreads) placeRangeEntries(const DecodeRun run) {
  auto& plan = *static_cast<DecodePlan<T>*>(run.plan);
  const T* values = static_cast<const T*>(run.values);
  constexpr T kIntLimit = sizeof(T) == 4 ? T(0x1p31) : T(0x1p63);
  const Strided all;
  for (std::uint64_t i = all.first; i < plan.n_range; i += all.step) {
    const std::uint32_t index = run.indices[i];
    if (index >= plan.n_values) {
      cuda::noteError(run.record, DeviceError::kCorrupt, i);
      continue;
    }
    const MarkPlace place = markPlace<T>(plan.layout, index);
    const std::uint32_t bit = 1u << place.bit;
    if ((atomicOr(run.marks + place.word, bit) & bit) != 0) {
      cuda::noteError(run.record, DeviceError::kCorrupt, i);
    }
    const T delta = values[i];
    static_cast<T*>(run.out)[index] = delta;
    if (!(fp::abs(delta) < kIntLimit)) {
      plan.is_wide = 1;  // every writer writes the same
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) placeExactEntries(const DecodeRun run) {
  const auto& plan = *static_cast<const DecodePlan<T>*>(run.plan);
  const T* values = static_cast<const T*>(run.values);
  const Strided all;
  for (std::uint64_t i = plan.n_range + all.first; i < plan.n_entries; i += all.step) {
    const std::uint32_t index = run.indices[i];
    const bool ascends = i == plan.n_range || run.indices[i - 1] < index;
    if (index >= plan.n_values || !ascends) {
      cuda::noteError(run.record, DeviceError::kCorrupt, i);
      continue;
    }
    static_cast<T*>(run.out)[index] = values[i];
  }
}

/// One warp per tile, in the order in which the CPU adds, since sums in double are rounded.
template <class T, class TCode>
__device__ void decodeWideTile(const DecodeRun& run,
                               const DecodePlan<T>& plan,
                               const Tile& tile,
                               double* sums) {
  const Grid& grid = plan.layout.grid;
  T* out = static_cast<T*>(run.out);
  for (unsigned i = cuda::laneId(); i < tile.size(); i += cuda::kWarp) {
    const std::uint64_t at = linearIndex(grid, tile, i);
    const TCode code = static_cast<const TCode*>(run.codes)[at];
    sums[i] = static_cast<double>(fromCode<IntOf<T>>(code, run.zigzag));
    const MarkPlace place = markPlace<T>(plan.layout, at);
    if ((run.marks[place.word] >> place.bit & 1u) != 0) {
      sums[i] = fp::add(sums[i], static_cast<double>(out[at]));
    }
  }
  __syncwarp();
  for (unsigned row = cuda::laneId(); row < tile.wy * tile.wz; row += cuda::kWarp) {
    double sum = 0.0;
    for (unsigned x = 0; x < tile.wx; ++x) {
      sum = fp::add(sum, sums[row * tile.wx + x]);
      sums[row * tile.wx + x] = sum;
    }
  }
  __syncwarp();
  const unsigned plane = tile.wx * tile.wy;
  for (unsigned x = cuda::laneId(); x < tile.wx && grid.ndim > 1; x += cuda::kWarp) {
    for (unsigned i = x; i < tile.size(); i += tile.wx) {
      const bool has_up = i / tile.wx % tile.wy != 0;
      const bool has_back = i >= plane;
      const double up = has_up ? sums[i - tile.wx] : 0.0;
      const double back = has_back ? sums[i - plane] : 0.0;
      const double up_back = has_up && has_back ? sums[i - tile.wx - plane] : 0.0;
      sums[i] = fp::add(sums[i], grid.ndim == 2 ? up : fp::sub(fp::add(up, back), up_back));
    }
  }
  __syncwarp();
  for (unsigned i = cuda::laneId(); i < tile.size(); i += cuda::kWarp) {
    out[linearIndex(grid, tile, i)] = reconstructWide(sums[i], plan.step);
  }
  __syncwarp();
}

template <class T, class TCode>
__global__ void __launch_bounds__(cuda::kWarp) decodeOldStream(const DecodeRun run) {
  __shared__ double sums[kMaxTileValues];
  const auto& plan = *static_cast<const DecodePlan<T>*>(run.plan);
  const Strided all;
  for (std::uint64_t i = plan.layout.n_values + all.first; i < plan.n_values; i += all.step) {
    static_cast<T*>(run.out)[i] = T{0};
  }
  if (plan.is_wide == 0 || plan.layout.n_values == 0) {
    return;
  }
  const std::uint64_t n_tiles = tileCount(plan.layout.grid);
  for (std::uint64_t t = blockIdx.x; t < n_tiles; t += gridDim.x) {
    decodeWideTile<T, TCode>(run, plan, tileAt(plan.layout.grid, t), sums);
  }
}

unsigned stridedGrid(std::uint64_t n_items, unsigned items_per_block) {
  return std::min(16 * cuda::multiprocessorCount(), cuda::gridFor(n_items, items_per_block));
}

}  // namespace

template <class T>
void launchRangeEntries(const DecodeRun& run,
                        const Layout& limit,
                        std::uint64_t entry_limit,
                        cudaStream_t stream) {
  clearMarks<T><<<stridedGrid(limit.n_segments, kThreads), kThreads, 0, stream>>>(run);
  cuda::checkLaunch("lorenzo_quant marks");
  placeRangeEntries<T><<<stridedGrid(entry_limit, kThreads), kThreads, 0, stream>>>(run);
  cuda::checkLaunch("lorenzo_quant range entries");
}

template <class T>
void launchExactEntries(const DecodeRun& run, std::uint64_t entry_limit, cudaStream_t stream) {
  placeExactEntries<T><<<stridedGrid(entry_limit, kThreads), kThreads, 0, stream>>>(run);
  cuda::checkLaunch("lorenzo_quant exact entries");
}

template <class T, class TCode>
void launchOldStreams(const DecodeRun& run, cudaStream_t stream) {
  const std::uint64_t n_limit = run.codes_size.n_bytes / sizeof(TCode);
  const unsigned grid = stridedGrid(n_limit, kMaxTileValues / 2);
  decodeOldStream<T, TCode><<<grid, cuda::kWarp, 0, stream>>>(run);
  cuda::checkLaunch("lorenzo_quant old streams");
}

template void launchRangeEntries<float>(const DecodeRun&,
                                        const Layout&,
                                        std::uint64_t,
                                        cudaStream_t);
template void launchRangeEntries<double>(const DecodeRun&,
                                         const Layout&,
                                         std::uint64_t,
                                         cudaStream_t);
template void launchExactEntries<float>(const DecodeRun&, std::uint64_t, cudaStream_t);
template void launchExactEntries<double>(const DecodeRun&, std::uint64_t, cudaStream_t);
template void launchOldStreams<float, std::uint16_t>(const DecodeRun&, cudaStream_t);
template void launchOldStreams<float, std::uint8_t>(const DecodeRun&, cudaStream_t);
template void launchOldStreams<double, std::uint16_t>(const DecodeRun&, cudaStream_t);
template void launchOldStreams<double, std::uint32_t>(const DecodeRun&, cudaStream_t);

}  // namespace fz::lorenzo_quant::device
