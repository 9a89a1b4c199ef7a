#pragma once

// The second half of a fused decoder of grids: a warp walks down its columns of a band, whose sums
// along x stand in shared memory. Device code only; must compile with NVRTC.

#include "backends/cuda/group/runs.cuh"
#include "fused/lorenzo_quant/cuda/op/grid_tile.cuh"

namespace fz::lorenzo_quant::device {

enum class Rows {
  kWhole,    ///< of whole runs
  kInPairs,  ///< begin in runs where they like, but not between values of a lane
  kAny,
};

template <class T, int kDim, class Inner>
struct ColumnWalk {
  using Int = IntOf<T>;
  using Word = typename Number<T>::Word;
  using Shape = BandShape<kDim>;
  using Marks = RowMarks<kDim>;
  using Bits = RowBits<kDim>;
  static constexpr unsigned kEdge = Shape::kEdge;
  static constexpr unsigned kV = Shape::kV;

  const DecodeRun& decode;
  const DecodePlan<T>& plan;
  const Inner& inner;
  RunSums sums;
  Band<kDim> band;

  /// By all warps that have columns; the number of the warp tells which. `long_runs`: a bit for
  /// each thread of the block, set where sums of its run may not fit 16 bits.
  template <Rows kRows>
  __device__ __forceinline__ void run(const std::uint32_t* long_runs) const {
    constexpr unsigned kWarpValues = cuda::kWarp * kV;
    const unsigned first = cuda::warpId() * kWarpValues;                      // in the block's rows
    const unsigned own = kRows != Rows::kWhole ? first : first % kRunValues;  // in the band's
    if (band.x + own >= band.row_values) {
      return;
    }
    Lane lane;
    const unsigned x = band.x + own + cuda::laneId() * kV;
    lane.place = first + cuda::laneId() * kV;
    lane.at = band.at + own + cuda::laneId() * kV;
    lane.n = x < band.row_values ? band.row_values - x : 0;
    const Marks marks = Marks::of(decode, plan, band, own);
    if (plan.is_wide != 0) {
      walkWide<kRows>(*this, lane, marks);
      return;
    }
    const Bits special = marks.rows | Bits::ofRuns(long_runs);
    if (marks.rows.any()) {
      walk<true, kRows, Word>(lane, marks, special);
    } else if (special.any() || (kDim == 3 && band.n_y < kEdge)) {
      walk<true, kRows, std::uint32_t>(lane, marks, special);
    } else {
      walk<false, kRows, std::uint32_t>(lane, marks, special);
    }
  }

 private:
  /// This lane's values in a row.
  struct Lane {
    unsigned place;    ///< of the first one among those of the block's rows, if not shifted
    std::uint32_t at;  ///< its index in the field, in the first row
    unsigned n;        ///< that exist
  };

  /// Sum: what the sums of a tile fit. kChecks: there are special rows, which have entries or need
  /// more than 16 bits, or fewer rows than a tile has. Of most fields the first row of a tile is
  /// the only special one, since its first delta is a bin.
  template <bool kChecks, Rows kRows, class Sum>
  __device__ __forceinline__ void walk(const Lane& lane,
                                       const Marks& marks,
                                       const Bits& special) const {
    const T step = plan.step;
    Sum planes[kDim == 3 ? kEdge : 1][kV] = {};  // 3-D: bins behind
#pragma unroll 1
    for (unsigned z = 0; z < band.n_z; ++z) {
      Sum above[kV] = {};
      std::uint32_t at = lane.at + z * band.plane_values;
      unsigned shift = kRows != Rows::kWhole ? band.shiftOf(z * kEdge) : 0;
      const auto take = [&](unsigned y, bool is_special) {
        const unsigned row = z * kEdge + y;
        Sum own[kV];
        if (is_special) {
          rowSums<kRows>(lane, row, shift, marks, at, own);
        } else {
          fittingSums<kRows>(lane, row, shift, own);
        }
        T x[kV];
#pragma unroll
        for (unsigned k = 0; k < kV; ++k) {
          above[k] += own[k];
          Sum bin = above[k];
          if constexpr (kDim == 3) {
            planes[y][k] += bin;
            bin = planes[y][k];
          }
          x[k] = fp::mul(static_cast<T>(static_cast<std::make_signed_t<Sum>>(bin)), step);
        }
        put<kRows>(lane, at, x);
        at += band.row_values;
        shift = (shift + band.row_values) % kRunValues;
      };
      const std::uint32_t rows = kChecks ? special.ofPlane(z) : 0;
      if constexpr (kDim == 3) {
        if (!kChecks || (rows == 0 && band.n_y == kEdge)) {
#pragma unroll
          for (unsigned y = 0; y < kEdge; ++y) {
            take(y, false);
          }
        } else {
#pragma unroll
          for (unsigned y = 0; y < kEdge; ++y) {
            if (y < band.n_y) {
              take(y, (rows >> y & 1u) != 0);
            }
          }
        }
      } else {
        unsigned y = 0;
#pragma unroll 1
        for (; y < band.n_y && rows >> y != 0; ++y) {  // to the last special one
          take(y, (rows >> y & 1u) != 0);
        }
#pragma unroll 8
        for (; y < band.n_y; ++y) {
          take(y, false);
        }
      }
    }
  }

  template <Rows kRows>
  __device__ __forceinline__ void put(const Lane& lane, std::uint32_t at, const T (&x)[kV]) const {
    if constexpr (kRows == Rows::kAny) {
      inner.putPiece(at, lane.n, x);
    } else if (kRows == Rows::kWhole || lane.n != 0) {
      group::putFew(inner, at, x);
    }
  }

  static __device__ __forceinline__ unsigned placeOf(unsigned row, unsigned i) {
    return RunSums::placeOf<Shape::kRowRuns>(row, i);
  }

  /// Of a row without entries, whose sums fit 16 bits.
  template <Rows kRows, class Sum>
  __device__ __forceinline__ void fittingSums(const Lane& lane,
                                              unsigned row,
                                              unsigned shift,
                                              Sum (&own)[kV]) const {
    using Signed = std::make_signed_t<Sum>;
    const unsigned first = lane.place + shift;
    std::int32_t before = 0;  // the tile
    if (kRows != Rows::kWhole) {
      const unsigned begin = first - lane.place % kEdge;
      before = begin == 0 ? 0 : sums.at(placeOf(row, begin - 1));
    }
    std::int32_t through[kV];
    if (kV == 2 && kRows != Rows::kAny) {
      const std::uint32_t two = sums.pairAt(placeOf(row, first));
      through[0] = static_cast<std::int16_t>(two);
      through[kV - 1] = static_cast<std::int32_t>(two) >> 16;
    } else {
#pragma unroll
      for (unsigned k = 0; k < kV; ++k) {
        through[k] = sums.at(placeOf(row, first + k));
      }
    }
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      own[k] = static_cast<Sum>(Signed{
          kRows == Rows::kWhole ? through[k] : static_cast<std::int16_t>(through[k] - before)});
    }
  }

  /// The delta that the 16-bit sums were made of, of the value that stands k after the lane's
  /// first, or before it.
  template <Rows kRows>
  __device__ __forceinline__ std::int32_t deltaAt(const Lane& lane,
                                                  unsigned row,
                                                  unsigned shift,
                                                  int k) const {
    const unsigned i = lane.place + shift + static_cast<unsigned>(k);
    const bool begins = kRows == Rows::kWhole ? i % kEdge == 0 : i == 0;
    const std::int32_t left = begins ? 0 : sums.at(placeOf(row, i - 1));
    return static_cast<std::int16_t>(sums.at(placeOf(row, i)) - left);
  }

  /// Of any row. All lanes.
  template <Rows kRows, class Sum>
  __device__ __forceinline__ void rowSums(const Lane& lane,
                                          unsigned row,
                                          unsigned shift,
                                          const Marks& marks,
                                          std::uint32_t at,
                                          Sum (&own)[kV]) const {
    const unsigned bits = marks.bitsOf(row);
    Sum sum = 0;
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      const std::int32_t delta = deltaAt<kRows>(lane, row, shift, static_cast<int>(k));
      sum += static_cast<Sum>(std::make_signed_t<Sum>{delta});
      if ((bits >> k & 1u) != 0) {  // waits where the value will be
        sum += static_cast<Sum>(static_cast<Int>(static_cast<const T*>(decode.out)[at + k]));
      }
      own[k] = sum;
    }
    const Sum before = sumOfLanes<Shape::kTileLanes>(sum) - sum;
#pragma unroll
    for (unsigned k = 0; k < kV; ++k) {
      own[k] += before;
    }
  }

  /// Deltas that no integer holds: in double, in the order in which the CPU adds. Lanes add up
  /// what is on their left for themselves, which is slow and enough for such streams. All by value:
  /// nothing that the other ways use should need an address.
  template <Rows kRows>
  static __device__ __noinline__ void walkWide(ColumnWalk self, Lane lane, Marks marks) {
    const Band<kDim>& band = self.band;
    double planes[kEdge][kV] = {};  // 3-D: sums behind
#pragma unroll 1
    for (unsigned z = 0; z < band.n_z; ++z) {
      double above[kV] = {};
      double above_behind[kV] = {};
#pragma unroll 1
      for (unsigned y = 0; y < band.n_y; ++y) {
        const unsigned row = z * kEdge + y;
        const std::uint32_t at = lane.at + band.offsetOf(row);
        const unsigned bits = marks.bitsOf(row);
        double own[kV];
        for (unsigned k = 0; k < kV; ++k) {
          own[k] = self.template wideRowSum<kRows>(lane, row, band.shiftOf(row), bits, at, k);
        }
        __syncwarp();  // everybody has read the entries
        T x[kV];
        for (unsigned k = 0; k < kV; ++k) {
          const double behind = kDim == 3 ? planes[y % kEdge][k] : 0.0;
          own[k] = fp::add(
              own[k], kDim == 2 ? above[k] : fp::sub(fp::add(above[k], behind), above_behind[k]));
          above[k] = own[k];
          above_behind[k] = behind;
          planes[y % kEdge][k] = own[k];
          x[k] = reconstructWide(own[k], self.plan.step);
        }
        self.template put<kRows>(lane, at, x);
      }
    }
  }
  /// From the left end of the tile to value k of this lane. All lanes.
  template <Rows kRows>
  __device__ __forceinline__ double wideRowSum(const Lane& lane,
                                               unsigned row,
                                               unsigned shift,
                                               unsigned bits,
                                               std::uint32_t at,
                                               unsigned k) const {
    const unsigned before = lane.place % kEdge;
    double sum = 0.0;
    for (unsigned j = 0; j < kEdge; ++j) {
      const unsigned others =
          __shfl_sync(cuda::kAllLanes, bits, static_cast<int>(j / kV), Shape::kTileLanes);
      if (j <= before + k) {
        const int from = static_cast<int>(j) - static_cast<int>(before);
        double delta = static_cast<double>(deltaAt<kRows>(lane, row, shift, from));
        if ((others >> j % kV & 1u) != 0) {
          delta = fp::add(delta,
                          static_cast<double>(static_cast<const T*>(decode.out)[at - before + j]));
        }
        sum = fp::add(sum, delta);
      }
    }
    return sum;
  }
};

}  // namespace fz::lorenzo_quant::device
