#pragma once

// Down the columns of a chunk whose sums along x stand in shared memory. What the columns have
// summed up to is kept there too from chunk to chunk: in two dimensions the sums above of every
// column, in three the bins behind of every value. Device code only; must compile with NVRTC.

#include "backends/cuda/group/runs.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_chunk_rows.cuh"

namespace fz::lorenzo_quant::device {

/// The chunks that a block takes one after the other, and what of them it decodes.
struct ChunkUnit {
  std::uint32_t first_chunk;
  std::uint32_t stride;
  std::uint32_t n_chunks;
  // Two dimensions:
  std::uint32_t first_row;
  std::uint32_t end_row;
  std::uint32_t x;

  template <int kDim>
  static __device__ __forceinline__ ChunkUnit of(const Grid& grid, std::uint32_t number) {
    const auto nx = static_cast<std::uint32_t>(grid.nx);
    const auto ny = static_cast<std::uint32_t>(grid.ny);
    if constexpr (kDim == 3) {
      const std::uint32_t plane_chunks = nx * ny / kChunkCodes;
      const std::uint32_t z = number / plane_chunks * 8;
      const std::uint64_t n_left = grid.nz - z;
      return {z * plane_chunks + number % plane_chunks,
              plane_chunks,
              n_left < 8 ? static_cast<std::uint32_t>(n_left) : 8u,
              0,
              0,
              0};
    } else {
      const std::uint32_t columns = nx > kMostColumns ? nx / kChunkCodes : 1;
      const auto n_rows = static_cast<std::uint32_t>(unitRows(nx));
      const std::uint32_t first = number / columns * n_rows;
      const std::uint32_t end = ny - first < n_rows ? ny : first + n_rows;
      const std::uint32_t column = number % columns;
      const std::uint32_t first_chunk = first * nx / kChunkCodes;
      const std::uint32_t n_chunks =
          columns > 1 ? end - first : (end * nx - 1) / kChunkCodes - first_chunk + 1;
      return {first_chunk + column, columns, n_chunks, first, end, column * kChunkCodes};
    }
  }
};

/// Strips: columns that a warp walks down in a chunk, in three dimensions those of the rows of one
/// tile. A block may keep the sums of some of them only, and then takes the chunks once more for
/// the others.
template <int kDim>
FZ_HD unsigned stripCount(const Grid& grid) {
  if (kDim == 3) {
    return kChunkCodes / (kStripColumns * 8);
  }
  const std::uint64_t n = grid.nx < kMostColumns ? grid.nx : kMostColumns;
  return static_cast<unsigned>(bits::ceilDiv<std::uint64_t>(n, kStripColumns));
}
template <int kDim>
inline constexpr unsigned kStripSums = kDim == 3 ? 8 * kStripColumns : kStripColumns;

/// Of one chunk.
template <class T, int kDim, class Inner>
struct ChunkWalk {
  using Sums = ChunkRows<T, kDim>;
  using Lane = typename Sums::Lane;
  static constexpr unsigned kEdge = Sums::kEdge;
  static constexpr unsigned kV = Sums::kV;

  Inner inner;
  Sums rows;
  ChunkUnit unit;
  std::uint32_t nx;
  T step;
  bool is_first;  ///< chunk of its unit
  bool has_special;

  /// By every warp: strips [first, end), whose sums are in `kept`. Sum is what the sums of a tile
  /// fit, double for those that no integer holds.
  template <Rows kRows, class Sum>
  __device__ __forceinline__ void run(unsigned first, unsigned end, void* kept) const {
    const std::uint32_t first_row = rows.begin / nx;
    const std::uint32_t last_row = (rows.begin + kChunkCodes - 1) / nx;
    for (unsigned strip = first + cuda::warpId(); strip < end; strip += kChunkWarps) {
      auto* own = static_cast<Pair<Sum>*>(kept) + (strip - first) * (kStripSums<kDim> / kV) +
                  cuda::laneId();
      if constexpr (kDim == 3) {
        if (has_special) {
          walkTiles<true, kRows>(strip, own);
        } else {
          walkTiles<false, kRows>(strip, own);
        }
      } else {
        if (has_special) {
          walkRows<true, kRows>(strip, first_row, last_row, own);
        } else {
          walkRows<false, kRows>(strip, first_row, last_row, own);
        }
      }
    }
  }

 private:
  /// The kept sums of a lane.
  template <class Sum>
  struct alignas(sizeof(Sum) * kV) Pair {
    Sum v[kV];
  };

  /// kChecks: the chunk has special pieces. first and last: rows of the chunk.
  template <bool kChecks, Rows kRows, class Sum>
  __device__ __forceinline__ void walkRows(unsigned strip,
                                           std::uint32_t first,
                                           std::uint32_t last,
                                           Pair<Sum>* kept) const {
    const std::uint32_t begin = rows.begin;
    const std::uint32_t strip_x = unit.x + strip * kStripColumns;
    const std::uint32_t x = strip_x + cuda::laneId() * kV;
    // The rows that the chunk has of these columns; the first and the last may have others only.
    std::uint32_t row = first + (first * nx + strip_x + kStripColumns <= begin ? 1u : 0u);
    std::uint32_t end = last + (last * nx + strip_x >= begin + kChunkCodes ? 0u : 1u);
    row = row > unit.first_row ? row : unit.first_row;
    end = end < unit.end_row ? end : unit.end_row;
    Pair<Sum> above = *kept;
#pragma unroll(kChecks ? 1 : 4)
    for (; row < end; ++row) {
      const int strip_place = static_cast<int>(row * nx + strip_x - begin);
      Lane lane;
      lane.place = strip_place + static_cast<int>(cuda::laneId() * kV);
      lane.at = row * nx + x;
#pragma unroll
      for (unsigned k = 0; k < kV; ++k) {
        const int place = lane.place + static_cast<int>(k);
        lane.has[k] = x + k < nx && place >= 0 && place < static_cast<int>(kChunkCodes);
        if (row % kEdge == 0 && place >= 0) {  // else the chunk before had this row
          above.v[k] = Sum{0};
        }
      }
      Sum own[kV];
      rows.template sumRow<kChecks, kRows>(lane, strip_place, own);
      T values[kV];
#pragma unroll
      for (unsigned k = 0; k < kV; ++k) {
        if (kRows != Rows::kWhole && lane.has[k] &&
            lane.place + static_cast<int>(k) == static_cast<int>(kChunkCodes) - 1) {
          const bool ends = (x + k) % kEdge == kEdge - 1 || x + k + 1 == nx;
          *rows.template carryAt<Sum>(rows.carry_in ^ 1u) = ends ? Sum{0} : own[k];
        }
        if (lane.has[k]) {
          if constexpr (kIsWideSum<Sum>) {
            above.v[k] = fp::add(own[k], above.v[k]);
          } else {
            above.v[k] += own[k];
          }
        }
        values[k] = valueOf(above.v[k]);
      }
      put<kRows>(lane, values);
    }
    *kept = above;
  }

  /// In three dimensions chunks are whole rows of tiles, and planes whole chunks.
  template <bool kChecks, Rows kRows, class Sum>
  __device__ __forceinline__ void walkTiles(unsigned strip, Pair<Sum>* kept) const {
    const unsigned row_strips = nx / kStripColumns;
    unsigned strip_place =
        strip / row_strips * kEdge * nx + strip % row_strips * kStripColumns;  // in the chunk
    Sum above[kV] = {};
    [[maybe_unused]] Sum above_behind[kV] = {};
#pragma unroll(kChecks ? 1 : kEdge)
    for (unsigned y = 0; y < kEdge; ++y, strip_place += nx) {
      const unsigned place = strip_place + cuda::laneId() * kV;
      const Lane lane{static_cast<int>(place), rows.begin + place, {true, true}};
      Pair<Sum>& behind = kept[y * cuda::kWarp];
      Pair<Sum> bins = {};
      if (!is_first) {
        bins = behind;
      }
      Sum own[kV];
      rows.template sumRow<kChecks, kRows>(lane, static_cast<int>(strip_place), own);
      T values[kV];
#pragma unroll
      for (unsigned k = 0; k < kV; ++k) {
        if constexpr (kIsWideSum<Sum>) {
          const double bin_behind = bins.v[k];
          bins.v[k] = fp::add(own[k], fp::sub(fp::add(above[k], bin_behind), above_behind[k]));
          above[k] = bins.v[k];
          above_behind[k] = bin_behind;
        } else {
          above[k] += own[k];
          bins.v[k] += above[k];
        }
        values[k] = valueOf(bins.v[k]);
      }
      behind = bins;
      put<kRows>(lane, values);
    }
  }

  template <class Sum>
  __device__ __forceinline__ T valueOf(Sum bin) const {
    if constexpr (kIsWideSum<Sum>) {
      return reconstructWide(bin, step);
    } else {
      return fp::mul(static_cast<T>(static_cast<std::make_signed_t<Sum>>(bin)), step);
    }
  }

  template <Rows kRows>
  __device__ __forceinline__ void put(const Lane& lane, const T (&values)[kV]) const {
    if constexpr (kRows == Rows::kAny) {
#pragma unroll
      for (unsigned k = 0; k < kV; ++k) {
        if (lane.has[k]) {
          const T one[1] = {values[k]};
          group::putFew(inner, lane.at + k, one);
        }
      }
    } else if (lane.has[0]) {
      group::putFew(inner, lane.at, values);
    }
  }
};

}  // namespace fz::lorenzo_quant::device
