#pragma once

// What the kernels of encode.cu and decode.cu share. A row runs along x. The longer
// of the other two axes counts rows, the shorter one layers: differences and sums along the axes
// may be taken in any order.

#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/packed.cuh"
#include "predictors/lorenzo/cuda/kernels.h"

namespace fz::lorenzo {

inline constexpr unsigned kThreads = 256;
inline constexpr unsigned kWarps = kThreads / cuda::kWarp;

struct GridArgs {
  const void* in;
  void* out;
  DeviceSize size;
  std::uint64_t capacity_bytes;
  StageRecord* record;
  std::uint64_t nx;  ///< exact or a limit, see ExtentFrom
  std::uint64_t n_rows;
  std::uint64_t n_layers;
  ExtentFrom extent_from;
  bool rows_are_z;
  bool publishes;  ///< whether the size of the output is the kernel's to write
};

inline GridArgs gridArgs(const CudaGrid& grid) {
  const std::uint64_t ny = grid.dims[1];
  const std::uint64_t nz = grid.dims[2];
  return {grid.input.data,  grid.output.data, grid.input.size,        grid.output.capacity_bytes,
          grid.record,      grid.dims[0],     std::max(ny, nz),       std::min(ny, nz),
          grid.extent_from, nz > ny,          !grid.output.size_known};
}

/// Whether every row begins at a multiple of 16 bytes, for any extent that may come.
template <class U>
bool areRowsAligned(const CudaGrid& grid) {
  return grid.extent_from == ExtentFrom::kHost && grid.dims[0] * sizeof(U) % 16 == 0;
}

/// The grid itself; nx is 0 when there is nothing to do.
struct Grid {
  std::uint64_t nx;
  std::uint64_t row_step;
  std::uint64_t layer_step;
};

/// The first thread of the grid writes down what follows from the size.
template <class U>
__device__ __forceinline__ Grid resolveGrid(const GridArgs& args) {
  const std::uint64_t n_bytes = cuda::load(args.size);
  const std::uint64_t n_lines = args.n_rows * args.n_layers;
  std::uint64_t nx = args.nx;
  if (args.extent_from == ExtentFrom::kSize) {
    nx = n_bytes / sizeof(U) / n_lines;
  } else if (args.extent_from == ExtentFrom::kRecord) {
    nx = args.record->value[kExtentSlot];
  }
  const bool fits = nx <= args.nx && nx * n_lines * sizeof(U) == n_bytes;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (args.publishes) {
      cuda::publishSize(args.record, 0, n_bytes, args.capacity_bytes);
    }
    if (!fits) {
      cuda::recordError(args.record, DeviceError::kCorrupt, n_bytes);
    } else if (args.extent_from != ExtentFrom::kRecord) {
      args.record->value[kExtentSlot] = nx;
    }
  }
  nx = fits && n_bytes <= args.capacity_bytes ? nx : 0;
  const std::uint64_t ny = args.rows_are_z ? args.n_layers : args.n_rows;
  return {nx, args.rows_are_z ? nx * ny : nx, args.rows_are_z ? nx : nx * ny};
}

/// A tile's place: strips are numbered fastest, then bands, then slabs.
struct TilePlace {
  std::uint64_t strip;
  std::uint64_t band;
  std::uint64_t slab;
};
__device__ __forceinline__ TilePlace tilePlace(unsigned tile,
                                               std::uint64_t n_strips,
                                               std::uint64_t n_bands) {
  // Numbers of tiles have 31 bits, and so has what divides them unless there is but one.
  const auto strips = static_cast<unsigned>(n_strips);
  const auto bands = static_cast<unsigned>(n_bands);
  return {tile % strips, tile / strips % bands, tile / strips / bands};
}

}  // namespace fz::lorenzo
