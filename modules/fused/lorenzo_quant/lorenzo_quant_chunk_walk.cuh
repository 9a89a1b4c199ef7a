#pragma once

// Down the columns of a chunk whose sums along x stand in shared memory. What the columns have
// summed up to is kept there too from chunk to chunk: in two dimensions the sums above of every
// column, in three the bins behind of every value. Device code only; must compile with NVRTC.

#include "backends/cuda/group/runs.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_chunk_jobs.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_chunk_rows.cuh"

namespace fz::lorenzo_quant::device {

/// Of one chunk.
template <class T, int kDim, RowCut kCut, class Inner>
struct ChunkWalk {
  using Sums = ChunkRows<T, kDim, kCut>;
  using Lane = typename Sums::Lane;
  static constexpr unsigned kEdge = Sums::kEdge;
  static constexpr unsigned kV = Sums::kV;
  /// Strips: columns that a warp walks down in a chunk, in three dimensions those of the rows of
  /// one tile. A block may keep the sums of some of them only, and then takes the chunks once more
  /// for the others.
  static constexpr unsigned kStripColumns = Sums::kStripColumns;
  static constexpr unsigned kStripSums = kDim == 3 ? kEdge * kStripColumns : kStripColumns;

  Inner inner;
  Sums rows;
  ChunkUnit unit;
  std::uint32_t nx;
  T step;
  bool is_first;  ///< chunk of its unit
  bool has_special;

  /// By every warp: strips [first, end), whose sums are in `kept`. Sum is what the sums of a tile
  /// fit, double for those that no integer holds.
  template <class Sum>
  __device__ __forceinline__ void run(unsigned first, unsigned end, void* kept) const {
    if constexpr (kDim == 2 && kCut == RowCut::kWholeTiles && !kIsWideSum<Sum>) {
      if (nx % kChunkCodes == 0 && !has_special) {
        walkLine(first, end, static_cast<Few<Sum>*>(kept) + cuda::laneId());
        return;
      }
    }
    const std::uint32_t first_row = rows.begin / nx;
    const std::uint32_t last_row = (rows.begin + kChunkCodes - 1) / nx;
    for (unsigned strip = first + cuda::warpId(); strip < end; strip += kChunkWarps) {
      auto* own =
          static_cast<Few<Sum>*>(kept) + (strip - first) * (kStripSums / kV) + cuda::laneId();
      if constexpr (kDim == 3) {
        if (kIsWideSum<Sum> || has_special) {
          walkTiles<true>(strip, own);
        } else if constexpr (!kIsWideSum<Sum>) {
          walkTiles<false>(strip, own);
        }
      } else {
        if (kIsWideSum<Sum> || has_special) {
          walkRowsTogether(spanOf(strip, first_row, last_row), own);
        } else if constexpr (!kIsWideSum<Sum>) {
          walkRows(spanOf(strip, first_row, last_row), own);
        }
      }
    }
  }

 private:
  /// The kept sums of a lane.
  template <class Sum>
  struct alignas(sizeof(Sum) * kV < 16 ? sizeof(Sum) * kV : 16) Few {
    Sum v[kV];
  };

  /// Two dimensions: a lane's columns in a chunk.
  struct Span {
    std::uint32_t strip_x;
    std::uint32_t x;
    std::uint32_t row, end;  ///< that the chunk and the unit have of them

    __device__ __forceinline__ unsigned inTile() const { return x % kEdge; }
  };
  /// first and last: rows of the chunk, which may have other columns only.
  __device__ __forceinline__ Span spanOf(unsigned strip,
                                         std::uint32_t first,
                                         std::uint32_t last) const {
    Span span;
    span.strip_x = unit.x + strip * kStripColumns;
    span.x = span.strip_x + cuda::laneId() * kV;
    const std::uint32_t row = first + (first * nx + span.x < rows.begin ? 1u : 0u);
    const std::uint32_t end = last + (last * nx + span.x < rows.begin + kChunkCodes ? 1u : 0u);
    span.row = row > unit.first_row ? row : unit.first_row;
    span.end = span.x < nx ? (end < unit.end_row ? end : unit.end_row) : 0u;
    return span;
  }
  __device__ __forceinline__ int placeOf(const Span& span, std::uint32_t row) const {
    return static_cast<int>(row * nx + span.x - rows.begin);
  }

  /// What the columns have summed up to before a chunk.
  template <class Sum>
  __device__ __forceinline__ Few<Sum> sumsBefore(const Span& span, const Few<Sum>& kept) const {
    Few<Sum> above = kept;
    if (span.row % kEdge == 0) {
      above = {};
    }
    // Wide sums have it already.
    if constexpr (kCut != RowCut::kWholeTiles && !kIsWideSum<Sum>) {
      if (placeOf(span, span.row) < static_cast<int>(span.inTile())) {
        const Sum carried = *rows.template carryAt<Sum>(rows.carry_in);
#pragma unroll
        for (unsigned k = 0; k < kV; ++k) {
          above.v[k] += carried;
        }
      }
    }
    return above;
  }
  /// Leaves the sum of a tile that goes on in the next chunk. last: of the row before span.end.
  template <class Sum>
  __device__ __forceinline__ void carryOver(const Span& span, Sum last) const {
    if constexpr (kCut != RowCut::kWholeTiles) {
      if (placeOf(span, span.end - 1) + static_cast<int>(kV) == static_cast<int>(kChunkCodes)) {
        const bool ends = (span.x + kV) % kEdge == 0 || span.x + kV == nx;
        *rows.template carryAt<Sum>(rows.carry_in ^ 1u) = ends ? Sum{0} : last;
      }
    }
  }

  /// A chunk without special pieces, every lane for itself.
  template <class Sum>
  __device__ __forceinline__ void walkRows(const Span& span, Few<Sum>* kept) const {
    if (span.row >= span.end) {
      return;
    }
    Few<Sum> above = sumsBefore(span, *kept);
    std::uint32_t at = span.row * nx + span.x;
    Sum own[kV];
    Sum goes_on = 1;  // 0 in the first row of a tile
    std::uint32_t row = span.row;
#pragma unroll 1
    do {
      rows.sumFitting(static_cast<int>(at - rows.begin), span.inTile(), own);
      T values[kV];
#pragma unroll
      for (unsigned k = 0; k < kV; ++k) {
        above.v[k] = above.v[k] * goes_on + own[k];
        values[k] = valueOf(above.v[k]);
      }
      group::putFew(inner, at, values);
      at += nx;
      ++row;
      goes_on = row % kEdge == 0 ? 0 : 1;
    } while (row < span.end);
    *kept = above;
    carryOver(span, own[kV - 1]);
  }

  /// A chunk without special pieces that is all from one row.
  template <class Sum>
  __device__ __forceinline__ void walkLine(unsigned first, unsigned end, Few<Sum>* kept) const {
    const Sum goes_on = is_first ? 0 : 1;
#pragma unroll 4
    for (unsigned strip = first + cuda::warpId(); strip < end; strip += kChunkWarps) {
      const unsigned place = strip * kStripColumns + cuda::laneId() * kV;
      Few<Sum>& above = kept[(strip - first) * cuda::kWarp];
      Few<Sum> through = above;
      Sum own[kV];
      rows.sumFitting(static_cast<int>(place), 0, own);
      T values[kV];
#pragma unroll
      for (unsigned k = 0; k < kV; ++k) {
        through.v[k] = through.v[k] * goes_on + own[k];
        values[k] = valueOf(through.v[k]);
      }
      above = through;
      group::putFew(inner, rows.begin + place, values);
    }
  }

  /// Any chunk, by all lanes row after row.
  template <class Sum>
  __device__ __forceinline__ void walkRowsTogether(const Span& span, Few<Sum>* kept) const {
    const bool is_there = span.row < span.end;
    std::uint32_t row = __reduce_min_sync(cuda::kAllLanes, is_there ? span.row : 0xFFFFFFFFu);
    const std::uint32_t end = __reduce_max_sync(cuda::kAllLanes, is_there ? span.end : 0u);
    Few<Sum> above = sumsBefore(span, *kept);
    Sum own[kV] = {};
#pragma unroll 1
    for (; row < end; ++row) {
      const bool has = row >= span.row && row < span.end;
      const Lane lane{placeOf(span, row), row * nx + span.x, span.inTile(), has};
      Sum sums[kV];
      rows.sumRow(lane, static_cast<int>(row * nx + span.strip_x - rows.begin), sums);
      if (!has) {
        continue;
      }
      T values[kV];
#pragma unroll
      for (unsigned k = 0; k < kV; ++k) {
        own[k] = sums[k];
        const Sum before = row % kEdge == 0 && row != span.row ? Sum{0} : above.v[k];
        if constexpr (kIsWideSum<Sum>) {
          above.v[k] = fp::add(own[k], before);
        } else {
          above.v[k] = own[k] + before;
        }
        values[k] = valueOf(above.v[k]);
      }
      group::putFew(inner, lane.at, values);
    }
    if (is_there) {
      *kept = above;
      carryOver(span, own[kV - 1]);
    }
  }

  /// In three dimensions chunks are whole rows of tiles, and planes whole chunks.
  template <bool kChecks, class Sum>
  __device__ __forceinline__ void walkTiles(unsigned strip, Few<Sum>* kept) const {
    const unsigned row_strips = nx / kStripColumns;
    unsigned strip_place =
        strip / row_strips * kEdge * nx + strip % row_strips * kStripColumns;  // in the chunk
    Sum above[kV] = {};
    [[maybe_unused]] Sum above_behind[kV] = {};
#pragma unroll(kChecks ? 1 : kEdge)
    for (unsigned y = 0; y < kEdge; ++y, strip_place += nx) {
      const unsigned place = strip_place + cuda::laneId() * kV;
      const Lane lane{static_cast<int>(place), rows.begin + place, cuda::laneId() * kV % kEdge,
                      true};
      Few<Sum>& behind = kept[y * cuda::kWarp];
      Few<Sum> bins = {};
      if (!is_first) {
        bins = behind;
      }
      Sum own[kV];
      if constexpr (kChecks) {
        rows.sumRow(lane, static_cast<int>(strip_place), own);
      } else {
        rows.sumFitting(lane.place, lane.in_tile, own);
      }
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
      group::putFew(inner, lane.at, values);
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
};

}  // namespace fz::lorenzo_quant::device
