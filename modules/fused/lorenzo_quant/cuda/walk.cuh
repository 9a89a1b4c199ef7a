#pragma once

// How a warp walks over its stripe: in batches of eight rows, whose loads are in flight together.

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "fused/lorenzo_quant/cuda/args.h"
#include "fused/lorenzo_quant/cuda/policy.h"

namespace fz::lorenzo_quant::device {

inline constexpr unsigned kBatchRows = 8;

template <class T, int kDim>
struct Stripe {
  static constexpr unsigned kV = kLaneValues<T>;
  static constexpr unsigned kAll = (1u << kV) - 1;
  /// Lanes that share a tile in x.
  static constexpr unsigned kTileLanes = kDim == 1 ? 32 : (kDim == 2 ? 32 : 8) / kV;

  std::uint64_t at;       ///< this lane's first value in the first row
  std::uint64_t segment;  ///< of the first row
  std::uint64_t row_step;
  std::uint64_t batch_step;
  std::uint64_t segment_row_step;
  std::uint64_t segment_batch_step;
  std::uint64_t end;  ///< in one dimension, of the field
  unsigned n_batches;
  unsigned n_rows;    ///< in three dimensions per batch, else over all batches
  unsigned own_mask;  ///< values of this lane inside the field, a bit each
  bool whole_lanes;   ///< every lane has all of its values or none, and they are 16-byte aligned

  __device__ __forceinline__ Stripe(const Layout& layout, std::uint64_t index) {
    const Grid& grid = layout.grid;
    if constexpr (kDim == 1) {
      constexpr std::uint64_t kTile = 1024;
      const std::uint64_t begin = index * kTile;
      const std::uint64_t left = grid.nx - begin;
      at = begin + cuda::laneId() * kV;
      segment = begin / kSegment<T>;
      row_step = kSegment<T>;
      batch_step = kBatchRows * kSegment<T>;
      segment_row_step = 1;
      segment_batch_step = kBatchRows;
      end = grid.nx;
      n_rows = left < kTile
                   ? bits::ceilDiv(static_cast<unsigned>(left), static_cast<unsigned>(kSegment<T>))
                   : static_cast<unsigned>(kTile / kSegment<T>);
      n_batches = bits::ceilDiv(n_rows, kBatchRows);
      own_mask = kAll;
      whole_lanes = left >= kTile;
    } else {
      constexpr std::uint64_t kEdge = kDim == 2 ? 32 : 8;
      // A field has fewer than 2^32 values, so 32-bit divisions do.
      const auto row_segments = static_cast<std::uint32_t>(layout.row_segments);
      const auto tiles_y = static_cast<std::uint32_t>(layout.tiles_y);
      const std::uint32_t rest = static_cast<std::uint32_t>(index) / row_segments;
      const std::uint64_t column = static_cast<std::uint32_t>(index) - rest * row_segments;
      const std::uint64_t y = (kDim == 2 ? rest : rest % tiles_y) * kEdge;
      const std::uint64_t z = kDim == 2 ? 0 : rest / tiles_y * kEdge;
      const std::uint64_t x = column * kSegment<T> + cuda::laneId() * kV;
      const std::uint64_t row = z * grid.ny + y;
      at = row * grid.nx + x;
      segment = row * layout.row_segments + column;
      row_step = grid.nx;
      batch_step = (kDim == 2 ? kBatchRows : grid.ny) * grid.nx;
      segment_row_step = layout.row_segments;
      segment_batch_step = (kDim == 2 ? kBatchRows : grid.ny) * layout.row_segments;
      end = 0;
      n_rows = clip(grid.ny - y, kEdge);
      n_batches = kDim == 2 ? bits::ceilDiv(n_rows, kBatchRows) : clip(grid.nz - z, kEdge);
      own_mask = (1u << (x < grid.nx ? clip(grid.nx - x, kV) : 0u)) - 1;
      whole_lanes = grid.nx % kV == 0;
    }
  }

  __device__ __forceinline__ unsigned rowsIn(unsigned batch) const {
    if constexpr (kDim == 3) {
      return n_rows;
    } else {
      const unsigned left = n_rows - batch * kBatchRows;
      return left < kBatchRows ? left : kBatchRows;
    }
  }
  /// Values inside the field of the lane's share that begins at `first`.
  __device__ __forceinline__ unsigned maskAt(std::uint64_t first) const {
    if constexpr (kDim == 1) {
      if (!whole_lanes) {
        return (1u << (first < end ? clip(end - first, kV) : 0u)) - 1;
      }
    }
    return own_mask;
  }

 private:
  static __device__ __forceinline__ unsigned clip(std::uint64_t n, std::uint64_t limit) {
    return static_cast<unsigned>(n < limit ? n : limit);
  }
};

/// Brings the lane's share of the rows of a batch into the second-level cache, so that the warp
/// waits less when it comes to them: it has no registers to hold two batches.
template <class T, int kDim, class Element>
__device__ __forceinline__ void prefetchRows(const Stripe<T, kDim>& stripe,
                                             const Element* from,
                                             std::uint64_t at,
                                             unsigned n_rows) {
#pragma unroll
  for (unsigned r = 0; r < kBatchRows; ++r) {
    const std::uint64_t first = at + r * stripe.row_step;
    if (r < n_rows && stripe.maskAt(first) != 0) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(from + first));
    }
  }
}

/// The codes of a lane's share of a row, in one or two words.
template <class TCode, unsigned kV>
struct CodePack {
  static constexpr unsigned kBits = 8 * sizeof(TCode);
  static constexpr unsigned kWords = kV * kBits / 32;
  static_assert(kWords == 1 || kWords == 2);
  std::uint32_t words[kWords];

  template <class F>
  __device__ __forceinline__ void set(F code) {
#pragma unroll
    for (unsigned w = 0; w < kWords; ++w) {
      words[w] = 0;
    }
#pragma unroll
    for (unsigned j = 0; j < kV; ++j) {
      words[j * kBits / 32] |= static_cast<std::uint32_t>(code(j)) << (j * kBits % 32);
    }
  }
  __device__ __forceinline__ TCode get(unsigned j) const {
    return static_cast<TCode>(words[j * kBits / 32] >> (j * kBits % 32));
  }
  /// p is as aligned as the pack is large.
  __device__ __forceinline__ void load(const TCode* p) {
    if constexpr (kWords == 2) {
      const uint2 pair = __ldcs(reinterpret_cast<const uint2*>(p));
      words[0] = pair.x;
      words[1] = pair.y;
    } else {
      words[0] = __ldcs(reinterpret_cast<const std::uint32_t*>(p));
    }
  }
  __device__ __forceinline__ void store(TCode* p) const {
    if constexpr (kWords == 2) {
      __stcs(reinterpret_cast<uint2*>(p), make_uint2(words[0], words[1]));
    } else {
      __stcs(reinterpret_cast<std::uint32_t*>(p), words[0]);
    }
  }
};

}  // namespace fz::lorenzo_quant::device
