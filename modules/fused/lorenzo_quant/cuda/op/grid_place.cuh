#pragma once

// What an encoder of grids needs of the values around a value: their bins, and differences of them
// in y and z. Device code only; must compile with NVRTC.

#include "backends/cuda/group/line_walk.cuh"
#include "fused/lorenzo_quant/cuda/op/lines.cuh"

namespace fz::lorenzo_quant::device {

/// A value of a grid.
struct GridPlace {
  std::uint32_t x, y, z;
};

template <class T, int kDim, class Inner>
struct GridBins {
  using Int = IntOf<T>;
  using Word = typename Number<T>::Word;
  static constexpr std::uint32_t kEdge = kDim == 2 ? 32 : 8;

  Inner inner;
  Step<T> step;
  GridPlaces grid;

  __device__ __forceinline__ GridBins(const EncodePlan<T>& plan, const Inner& i)
      : inner(i), step(plan.step), grid(plan.places) {}

  static __device__ __forceinline__ std::uint32_t divide(std::uint32_t n, std::uint64_t inverse) {
    return inverse == 0 ? n : static_cast<std::uint32_t>(__umul64hi(n, inverse));
  }
  __device__ __forceinline__ GridPlace placeOf(std::uint32_t index) const {
    const std::uint32_t row = divide(index, grid.inverse_nx);
    const std::uint32_t z = kDim == 3 ? divide(row, grid.inverse_ny) : 0;
    return {index - row * grid.nx, row - z * grid.ny, z};
  }

  /// Difference in y and z, as the prediction takes it before that in x; one value.
  __device__ __forceinline__ Int column(const GridPlace& place, std::uint64_t at) const {
    const auto bin = [&](std::uint64_t i) { return quantize(group::oneOf(inner, i), step).value; };
    const bool has_up = place.y % kEdge != 0;
    Int d = bin(at);
    d -= has_up ? bin(at - grid.nx) : Int{0};
    if (kDim == 3 && place.z % kEdge != 0) {
      const std::uint64_t behind = at - std::uint64_t{grid.nx} * grid.ny;
      d -= bin(behind);
      d += has_up ? bin(behind - grid.nx) : Int{0};
    }
    return d;
  }
  /// Returns what their reach is.
  template <unsigned P>
  __device__ __forceinline__ T subtract(const T (&values)[P], Word (&d)[P]) const {
    Word bins[P];
    const T reach = biasedBins<kDim>(values, step, bins).reach;
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      d[k] -= bins[k];
    }
    return reach;
  }

  /// Differences in z of a run, or its bins in two dimensions, and their reach.
  template <unsigned P>
  __device__ __forceinline__ BinsKnown<T> planeDifferences(std::uint64_t at,
                                                           bool has_back,
                                                           Word (&d)[P]) const {
    T own[P];
    T back[P];
    group::sharedPiece(inner, at, own);
    if (has_back) {
      group::sharedPiece(inner, at - std::uint64_t{grid.nx} * grid.ny, back);
    }
    BinsKnown<T> known = biasedBins<kDim>(own, step, d);
    if (has_back) {
      known.reach += subtract(back, d);
    } else {
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        d[k] -= FastBins<T>::kBias;
      }
    }
    return known;
  }

  /// The values of a run and those above and behind it; 0, whose bin is 0, outside of the tile.
  template <unsigned P>
  struct Raw {
    T own[P];
    T up[P];
    T back[kDim == 3 ? P : 1];
    T up_back[kDim == 3 ? P : 1];
    std::uint32_t starts;  ///< bits of the values that begin a tile in x
    bool has_back;
  };
  template <unsigned P>
  __device__ __forceinline__ void fetchRun(bool is_there, std::uint64_t at, T (&v)[P]) const {
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      v[k] = T{0};
    }
    if (is_there) {
      group::sharedPiece(inner, at, v);
    }
  }
  /// A run, and those above and behind it where they are in the tile of `place`.
  template <unsigned P>
  __device__ __forceinline__ void fetchAround(const GridPlace& place,
                                              std::uint64_t at,
                                              Raw<P>& raw) const {
    const bool has_up = place.y % kEdge != 0;
    raw.has_back = kDim == 3 && place.z % kEdge != 0;
    fetchRun(true, at, raw.own);
    fetchRun(has_up, at - grid.nx, raw.up);
    if constexpr (kDim == 3) {
      const std::uint64_t behind = at - std::uint64_t{grid.nx} * grid.ny;
      fetchRun(raw.has_back, behind, raw.back);
      fetchRun(raw.has_back && has_up, behind - grid.nx, raw.up_back);
    }
  }
  /// Runs that go over the end of a row, or of the field.
  template <unsigned P>
  __device__ __forceinline__ void fetchEach(std::uint64_t at, unsigned n, Raw<P>& raw) const {
    GridPlace place = this->placeOf(static_cast<std::uint32_t>(at));
    raw.starts = 0;
    raw.has_back = kDim == 3;
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      const bool is_there = k < n;
      const bool has_up = is_there && place.y % kEdge != 0;
      const auto value = [&](bool has, std::uint64_t i) {
        return has ? group::oneOf(inner, i) : T{0};
      };
      raw.own[k] = value(is_there, at + k);
      raw.up[k] = value(has_up, at + k - grid.nx);
      if constexpr (kDim == 3) {
        const bool has_back = is_there && place.z % kEdge != 0;
        const std::uint64_t behind = at + k - std::uint64_t{grid.nx} * grid.ny;
        raw.back[k] = value(has_back, behind);
        raw.up_back[k] = value(has_back && has_up, behind - grid.nx);
      }
      raw.starts |= (place.x % kEdge == 0 ? 1u : 0u) << k;
      if (++place.x == grid.nx) {
        place.x = 0;
        if (++place.y == grid.ny) {
          place.y = 0;
          ++place.z;
        }
      }
    }
  }

  /// Differences in y and z of a run, and their reach.
  template <unsigned P>
  __device__ __forceinline__ BinsKnown<T> columns(const Raw<P>& raw, Word (&d)[P]) const {
    BinsKnown<T> known = biasedBins<kDim>(raw.own, step, d);
    known.reach += this->subtract(raw.up, d);
    if constexpr (kDim == 3) {
      if (raw.has_back) {
        Word behind[P];
        known.reach += biasedBins<kDim>(raw.back, step, behind).reach;
        known.reach += this->subtract(raw.up_back, behind);
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          d[k] -= behind[k];
        }
      }
    }
    return known;
  }
};

}  // namespace fz::lorenzo_quant::device
