#pragma once

// Rows of a step of walk.cuh between memory and the block.

#include <type_traits>

#include "backends/cuda/async_copy.cuh"
#include "predictors/lorenzo/cuda/walk_queue.cuh"

namespace fz::lorenzo {

/// Calls f(layer, row, is_inside, offset of the row's first value) for the rows of a warp in a
/// step.
template <class T, class F>
__device__ __forceinline__ void forRows(
    const GridArgs& args, const Grid& grid, const WalkPlace& at, std::uint64_t layer0, F f) {
  const std::uint64_t first =
      layer0 * grid.layer_step + at.row0 * grid.row_step + at.strip * T::P::kRowValues;
  const auto forAll = [&](auto is_whole) {
#pragma unroll
    for (unsigned l = 0; l < T::kLayers; ++l) {
#pragma unroll
      for (unsigned r = 0; r < T::kRows; ++r) {
        const bool is_inside =
            is_whole.value || (at.row0 + r < args.n_rows && layer0 + l < args.n_layers);
        f(l, r, is_inside, first + l * grid.layer_step + r * grid.row_step);
      }
    }
  };
  if (at.row0 + T::kRows <= args.n_rows && layer0 + T::kLayers <= args.n_layers) {
    forAll(std::true_type());  // most steps, without the checks
  } else {
    forAll(std::false_type());
  }
}

/// The values of the next step, on their way while this one is worked on: [layer and row][thread].
/// A thread copies what it needs itself; where rows are not aligned, what its warp needs.
template <class T>
struct ReadAhead {
  uint4 lanes[T::kWarpRight][kThreads];

  __device__ __forceinline__ void fetch(const GridArgs& args,
                                        const Grid& grid,
                                        const WalkPlace& at,
                                        std::uint64_t layer0) {
    using Value = typename T::Value;
    const auto* values = static_cast<const Value*>(args.in);
    const std::uint64_t n_left = grid.nx - at.strip * T::P::kRowValues;
    forRows<T>(args, grid, at, layer0, [&](unsigned l, unsigned r, bool is_inside, auto offset) {
      uint4* row = lanes[l * T::kRows + r] + cuda::warpId() * cuda::kWarp;
      if constexpr (T::kIsAligned) {
        const unsigned place = cuda::laneId() * T::P::kLaneValues;
        cuda::copyAsync<sizeof(uint4)>(row + cuda::laneId(), values + offset + place,
                                       is_inside && place < n_left);
      } else {
#pragma unroll
        for (unsigned w = 0; w < T::P::kWords; ++w) {
          const unsigned place = w * cuda::kWarp + cuda::laneId();
          cuda::copyAsync<sizeof(Value)>(reinterpret_cast<Value*>(row) + place,
                                         values + offset + place, is_inside && place < n_left);
        }
      }
    });
  }
  __device__ __forceinline__ void wait() const {
    cuda::waitForCopies();
    if constexpr (!T::kIsAligned) {
      __syncwarp();
    }
  }
  __device__ __forceinline__ void take(unsigned l,
                                       unsigned r,
                                       typename T::Word (&row)[T::P::kWords]) const {
    const uint4 lane = lanes[l * T::kRows + r][threadIdx.x];
    memcpy(row, &lane, sizeof(lane));
  }
};

template <class T>
struct WalkMemory {
  ReadAhead<T> ahead;
  /// Sums of the columns of each warp; in between a warp's part also serves itself.
  typename T::Word columns[T::kLayers][kWarps][T::kColumns];
  WalkLetter<T> above;  ///< column sums over the bands before
  WalkLetter<T> below;  ///< and with this band
};

template <class T>
__device__ __forceinline__ void storeStep(const GridArgs& args,
                                          const Grid& grid,
                                          const WalkPlace& at,
                                          std::uint64_t layer0,
                                          const typename T::Words& words) {
  auto* values = static_cast<typename T::Value*>(args.out);
  const std::uint64_t n_left = grid.nx - at.strip * T::P::kRowValues;
  forRows<T>(args, grid, at, layer0, [&](unsigned l, unsigned r, bool is_inside, auto offset) {
    if (is_inside) {
      T::P::template store<true, true>(values + offset, 0, n_left, words[l][r]);
    }
  });
}

/// The same where rows are not aligned: neighbours must write neighbours, so the values change
/// lanes in the warp's own part of the columns.
template <class T>
__device__ __forceinline__ void storeScattered(const GridArgs& args,
                                               const Grid& grid,
                                               const WalkPlace& at,
                                               std::uint64_t layer0,
                                               WalkMemory<T>& memory,
                                               const typename T::Words& words) {
  auto* values = static_cast<typename T::Value*>(args.out);
  const std::uint64_t n_left = grid.nx - at.strip * T::P::kRowValues;
#pragma unroll
  for (unsigned row = 0; row < T::kRows; ++row) {
#pragma unroll
    for (unsigned l = 0; l < T::kLayers; ++l) {
      uint4 lane;
      memcpy(&lane, words[l][row], sizeof(lane));
      reinterpret_cast<uint4*>(memory.columns[l][cuda::warpId()])[cuda::laneId()] = lane;
    }
    __syncwarp();
    forRows<T>(args, grid, at, layer0, [&](unsigned l, unsigned r, bool is_inside, auto offset) {
#pragma unroll
      for (unsigned w = 0; w < T::P::kWords; ++w) {
        const unsigned place = w * cuda::kWarp + cuda::laneId();
        if (r == row && is_inside && place < n_left) {
          __stcs(values + offset + place, memory.columns[l][cuda::warpId()][place]);
        }
      }
    });
    __syncwarp();
  }
}

}  // namespace fz::lorenzo
