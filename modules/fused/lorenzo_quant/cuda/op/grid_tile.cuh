#pragma once

// Bands: how a fused decoder of grids cuts a field. A band is the rows of one tile in y and z, over
// all of x; a block takes a few runs of codes beside each other in all of its rows, a thread each.
// Device code only; must compile with NVRTC.

#include "backends/cuda/group/runs.cuh"
#include "fused/lorenzo_quant/cuda/args.h"
#include "fused/lorenzo_quant/cuda/op/sums.cuh"

namespace fz::lorenzo_quant::device {

template <int kDim>
struct BandShape {
  static_assert(kDim == 2 || kDim == 3);
  static constexpr unsigned kEdge = kDim == 2 ? 32 : 8;
  static constexpr unsigned kRows = kDim == 2 ? 32 : 64;            ///< over all planes
  static constexpr unsigned kRowRuns = group::kRunThreads / kRows;  ///< beside each other
  /// A lane's values in a row when warps walk down the columns, and the lanes of a tile.
  static constexpr unsigned kV = kDim == 2 ? 2 : 1;
  static constexpr unsigned kTileLanes = kEdge / kV;
  static constexpr unsigned kRunWarps = kRunValues / (cuda::kWarp * kV);
  static_assert(kRowRuns * kRunWarps * cuda::kWarp == group::kRunThreads);
  /// Of kRowRuns runs that begin anywhere.
  static constexpr unsigned kShiftedColumns = (kRowRuns - 1) * kRunValues;
  static_assert(kShiftedColumns % kEdge == 0);
};

/// Bands of tiles, and columns of a width in them.
template <int kDim>
struct BandCut {
  std::uint32_t width;
  std::uint32_t row_columns;
  std::uint32_t bands_y;
  std::uint64_t n_columns;

  __device__ __forceinline__ BandCut(const Layout& layout, unsigned column_values)
      : width(column_values) {
    row_columns = static_cast<std::uint32_t>((layout.grid.nx + width - 1) / width);
    bands_y = static_cast<std::uint32_t>(layout.tiles_y);
    const std::uint64_t bands_z =
        kDim == 3 ? bits::ceilDiv<std::uint64_t>(layout.grid.nz, BandShape<kDim>::kEdge) : 1;
    n_columns = bands_z * bands_y * row_columns;
  }
};

/// The rows of a band, in one column of the cut.
template <int kDim>
struct Band {
  static constexpr unsigned kEdge = BandShape<kDim>::kEdge;

  // A field has fewer than 2^32 values, so 32 bits do.
  std::uint32_t at;          ///< index of the first value
  std::uint32_t row_values;  ///< from row to row
  std::uint32_t plane_values;
  std::uint32_t first_row;  ///< counted over all planes
  std::uint32_t plane_rows;
  std::uint32_t x;
  unsigned n_y, n_z;

  __device__ __forceinline__ Band(const Grid& grid,
                                  const BandCut<kDim>& cut,
                                  std::uint64_t column) {
    const std::uint32_t rest = static_cast<std::uint32_t>(column) / cut.row_columns;
    const std::uint32_t y = (kDim == 2 ? rest : rest % cut.bands_y) * kEdge;
    const std::uint32_t z = kDim == 2 ? 0 : rest / cut.bands_y * kEdge;
    x = (static_cast<std::uint32_t>(column) - rest * cut.row_columns) * cut.width;
    n_y = y < grid.ny ? clip(grid.ny - y) : 0;
    n_z = kDim == 2 ? 1 : z < grid.nz ? clip(grid.nz - z) : 0;
    row_values = static_cast<std::uint32_t>(grid.nx);
    plane_rows = static_cast<std::uint32_t>(grid.ny);
    plane_values = row_values * plane_rows;
    first_row = z * plane_rows + y;
    at = first_row * row_values + x;
  }
  /// Rows are counted kEdge per plane.
  __device__ __forceinline__ bool has(unsigned row) const {
    return row % kEdge < n_y && row / kEdge < n_z;
  }
  __device__ __forceinline__ std::uint32_t offsetOf(unsigned row) const {
    return kDim == 2 ? row * row_values : row / kEdge * plane_values + row % kEdge * row_values;
  }
  /// Values of the first run before those of the column.
  __device__ __forceinline__ unsigned shiftOf(unsigned row) const {
    return (at + offsetOf(row)) % kRunValues;
  }
  __device__ __forceinline__ std::uint64_t rowOf(unsigned row) const {
    return first_row + (kDim == 2 ? row : row / kEdge * plane_rows + row % kEdge);
  }

 private:
  static __device__ __forceinline__ unsigned clip(std::uint64_t n) {
    return n < kEdge ? static_cast<unsigned>(n) : kEdge;
  }
};

/// A bit for each row of a band.
template <int kDim>
struct RowBits {
  static constexpr unsigned kParts = BandShape<kDim>::kRows / cuda::kWarp;
  std::uint32_t parts[kParts];

  __device__ __forceinline__ bool any() const {
    std::uint32_t all = 0;
#pragma unroll
    for (const std::uint32_t part : parts) {
      all |= part;
    }
    return all != 0;
  }
  /// Those of plane z, from its first row on.
  __device__ __forceinline__ std::uint32_t ofPlane(unsigned z) const {
    if constexpr (kDim == 2) {
      return parts[0];
    } else {
      return (z < 4 ? parts[0] : parts[1]) >> z % 4 * 8 & 0xFFu;
    }
  }
  __device__ __forceinline__ RowBits operator|(const RowBits& other) const {
    RowBits both;
#pragma unroll
    for (unsigned k = 0; k < kParts; ++k) {
      both.parts[k] = parts[k] | other.parts[k];
    }
    return both;
  }
  /// From the bits of the threads that have the rows' runs, a word for each warp. All lanes.
  static __device__ __forceinline__ RowBits ofRuns(const std::uint32_t* warps) {
    constexpr unsigned kRowRuns = BandShape<kDim>::kRowRuns;
    RowBits rows;
#pragma unroll
    for (unsigned k = 0; k < kParts; ++k) {
      const unsigned thread = (k * cuda::kWarp + cuda::laneId()) * kRowRuns;
      const std::uint32_t runs =
          warps[thread / cuda::kWarp] >> thread % cuda::kWarp & ((1u << kRowRuns) - 1u);
      rows.parts[k] = __ballot_sync(cuda::kAllLanes, runs != 0);
    }
    return rows;
  }
};

/// The range entries of a warp's columns: bits of its rows, a lane having those of row
/// 32 k + lane.
template <int kDim>
struct RowMarks {
  static constexpr unsigned kV = BandShape<kDim>::kV;
  static constexpr unsigned kWords = kV;
  static constexpr unsigned kParts = BandShape<kDim>::kRows / cuda::kWarp;
  std::uint32_t words[kParts][kWords];
  RowBits<kDim> rows;  ///< that have any

  /// This lane's bits of a row. All lanes.
  __device__ __forceinline__ unsigned bitsOf(unsigned row) const {
    std::uint32_t own = words[0][0];
    if constexpr (kParts > 1) {
      own = row >= cuda::kWarp ? words[1][0] : own;
    }
    std::uint32_t word = __shfl_sync(cuda::kAllLanes, own, static_cast<int>(row % cuda::kWarp));
    if constexpr (kWords > 1) {
      const std::uint32_t second = __shfl_sync(cuda::kAllLanes, words[0][1], static_cast<int>(row));
      word = cuda::laneId() * kV >= 32 ? second : word;
    }
    return word >> cuda::laneId() * kV % 32 & ((1u << kV) - 1u);
  }

  /// All lanes. `first`: of the warp's columns, counted in the band.
  template <class T>
  static __device__ __forceinline__ RowMarks
  of(const DecodeRun& run, const DecodePlan<T>& plan, const Band<kDim>& band, unsigned first) {
    RowMarks marks;
#pragma unroll
    for (unsigned k = 0; k < kParts; ++k) {
      const unsigned row = k * cuda::kWarp + cuda::laneId();
      std::uint32_t all = 0;
#pragma unroll
      for (unsigned w = 0; w < kWords; ++w) {
        marks.words[k][w] = 0;
        if (plan.n_range != 0 && band.has(row)) {
          // A row's segments have as many bits as values.
          const std::uint64_t at = band.rowOf(row) * plan.layout.row_segments * kLaneValues<T>;
          marks.words[k][w] = run.marks[at + (band.x + first) / 32 + w];
        }
        all |= marks.words[k][w];
      }
      marks.rows.parts[k] = __ballot_sync(cuda::kAllLanes, all != 0);
    }
    return marks;
  }
};

}  // namespace fz::lorenzo_quant::device
