#pragma once

// What an encoder of grids needs of the values around a value: their bins, and differences of them
// in y and z. Device code only; must compile with NVRTC.

#include "backends/cuda/group/line_walk.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_line.cuh"

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
  template <unsigned P>
  __device__ __forceinline__ void subtract(const T (&values)[P], Word (&d)[P]) const {
    Word bins[P];
    biasedBins<kDim>(values, step, bins);
#pragma unroll
    for (unsigned k = 0; k < P; ++k) {
      d[k] -= bins[k];
    }
  }

  /// Differences in z of a run, or its bins in two dimensions.
  template <unsigned P>
  __device__ __forceinline__ unsigned planeDifferences(std::uint64_t at,
                                                       bool has_back,
                                                       Word (&d)[P]) const {
    T own[P];
    T back[P];
    group::sharedPiece(inner, at, own);
    if (has_back) {
      group::sharedPiece(inner, at - std::uint64_t{grid.nx} * grid.ny, back);
    }
    const unsigned exact = biasedBins<kDim>(own, step, d);
    if (has_back) {
      subtract(back, d);
    } else {
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        d[k] -= QuickBins<T>::kBias;
      }
    }
    return exact;
  }
};

}  // namespace fz::lorenzo_quant::device
