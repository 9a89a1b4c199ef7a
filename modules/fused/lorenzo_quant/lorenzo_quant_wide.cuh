#pragma once

// Streams of the original system may have deltas that no integer holds. Their sums are in double,
// hence rounded, hence in the order in which the CPU adds.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_decode.cuh"

namespace fz::lorenzo_quant::device {

template <class T, class TCode>
struct WideStream {
  const TCode* codes;
  const std::uint32_t* marks;
  T* out;
  bool zigzag;
};

/// By one warp.
template <class T, class TCode>
__device__ void decodeWideTile(const WideStream<T, TCode>& stream,
                               const DecodePlan<T>& plan,
                               const Tile& tile,
                               double* sums) {
  const Grid& grid = plan.layout.grid;
  for (unsigned i = cuda::laneId(); i < tile.size(); i += cuda::kWarp) {
    const std::uint64_t at = linearIndex(grid, tile, i);
    sums[i] = static_cast<double>(fromCode<IntOf<T>>(stream.codes[at], stream.zigzag));
    const MarkPlace place = markPlace<T>(plan.layout, at);
    if ((stream.marks[place.word] >> place.bit & 1u) != 0) {
      sums[i] = fp::add(sums[i], static_cast<double>(stream.out[at]));
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
    stream.out[linearIndex(grid, tile, i)] = reconstructWide(sums[i], plan.step);
  }
  __syncwarp();
}

/// The tiles of a block, by one warp of it; `sums` is shared memory for kMaxTileValues.
template <class T, class TCode>
__device__ __noinline__ void decodeWideTiles(WideStream<T, TCode> stream,
                                             const DecodePlan<T>* plan,
                                             double* sums) {
  const Grid& grid = plan->layout.grid;
  const std::uint64_t n_tiles = plan->layout.n_values == 0 ? 0 : tileCount(grid);
  for (std::uint64_t t = blockIdx.x; t < n_tiles; t += gridDim.x) {
    decodeWideTile(stream, *plan, tileAt(grid, t), sums);
  }
}

}  // namespace fz::lorenzo_quant::device
