#pragma once

// LorenzoQuant in two and three dimensions at the front of a fused group that decodes. A block
// takes the runs of codes that lie above and behind each other in a band of tiles and puts them
// into shared memory; then warps walk down the columns. Where rows are whole runs, lanes sum them
// up along x while they have them in registers; else runs begin anywhere in a tile, and those sums
// are made by the lanes that walk. Device code only; must compile with NVRTC.

#include "backends/cuda/group/runs.cuh"
#include "fused/lorenzo_quant/cuda/args.h"
#include "fused/lorenzo_quant/cuda/op/grid_tile.cuh"
#include "fused/lorenzo_quant/cuda/op/grid_walk.cuh"
#include "fused/lorenzo_quant/cuda/op/sums.cuh"

namespace fz::lorenzo_quant {

template <class T, class TCode, int kDim>
struct LorenzoQuantGridDecodeOp {
  static_assert(sizeof(TCode) == 2);
  using Args = LorenzoQuantArgs;

  template <class Inner>
  struct Front {
    using Value = TCode;
    static constexpr bool kHasRows = true;
    static constexpr bool kBlockWide = true;
    static constexpr bool kCanFetch = false;
    static constexpr bool kTakesRuns = true;

    using Shape = device::BandShape<kDim>;
    using Cut = device::BandCut<kDim>;
    using Band = device::Band<kDim>;
    static constexpr unsigned kEdge = Shape::kEdge;
    static constexpr unsigned kRowRuns = Shape::kRowRuns;

    const LorenzoQuantArgs& args;
    Inner inner;

    __device__ __forceinline__ Front(const LorenzoQuantArgs& a, const Inner& i)
        : args(a), inner(i) {}

    __device__ __forceinline__ bool begin(std::uint64_t n) const {
      return plan().n_values == n && inner.begin(n);
    }

    template <class Reader>
    __device__ __forceinline__ void decodeRuns(const Reader& reader) const {
      static_assert(Reader::kRunBytes == device::kRunWords * 4);
      __shared__ uint4 pieces[group::kRunThreads * device::kRunPieces];
      __shared__ std::uint32_t
          long_runs[group::kRunThreads / cuda::kWarp];  // a bit for each thread
      const device::RunSums sums{pieces};
      const device::Layout& layout = plan().layout;
      const Grid& grid = layout.grid;
      if (layout.n_values < plan().n_values) {
        clearBeyond(reader, inner, layout.n_values, plan().n_values);
      }
      if (layout.n_values == 0) {
        return;
      }
      const bool is_shifted = grid.nx % device::kRunValues != 0;
      const Cut cut(layout, is_shifted ? Shape::kShiftedColumns : device::kRunValues);
      const unsigned n_beside = is_shifted ? 1 : kRowRuns;  // columns of the cut that a block takes
      for (std::uint64_t first = std::uint64_t{blockIdx.x} * n_beside; first < cut.n_columns;
           first += std::uint64_t{gridDim.x} * n_beside) {
        const unsigned row = threadIdx.x / kRowRuns;
        const unsigned beside = threadIdx.x % kRowRuns;
        const std::uint64_t column = first + (is_shifted ? 0 : beside);
        const Band band(grid, cut, column);
        const std::uint32_t at = band.at + band.offsetOf(row);
        const std::uint64_t run = at / device::kRunValues + (is_shifted ? beside : 0);
        const bool exists = column < cut.n_columns && band.has(row) &&
                            run * device::kRunValues < at + (grid.nx - band.x);
        std::uint32_t words[device::kRunWords];
        reader.read(run, exists, words);
        const bool zigzag = args.decode.zigzag;
        const bool fits = device::codesFit<kEdge>(zigzag, words);
        if (is_shifted) {
          device::sumRunOfRow<kRowRuns>(zigzag, words);
        } else {
          device::sumRun<kEdge>(zigzag, words);
        }
        sums.put(threadIdx.x, words);
        const std::uint32_t long_runs_of_warp = __ballot_sync(cuda::kAllLanes, !fits);
        if (cuda::laneId() == 0) {
          long_runs[cuda::warpId()] = long_runs_of_warp;
        }
        __syncthreads();
        const unsigned run_beside = cuda::warpId() / Shape::kRunWarps;
        const std::uint64_t own = first + (is_shifted ? 0 : run_beside);
        if (own < cut.n_columns && (!is_shifted || run_beside + 1 < kRowRuns)) {
          const Band own_band(grid, cut, own);
          const device::ColumnWalk<T, kDim, Inner> walk{args.decode, plan(), inner, sums, own_band};
          if (!is_shifted) {
            walk.template run<device::Rows::kWhole>(long_runs);
          } else if (kDim == 3 || grid.nx % 2 == 0) {
            walk.template run<device::Rows::kInPairs>(long_runs);
          } else {
            walk.template run<device::Rows::kAny>(long_runs);
          }
        }
        __syncthreads();  // the next runs take the place of these
      }
    }

   private:
    __device__ __forceinline__ const device::DecodePlan<T>& plan() const {
      return *static_cast<const device::DecodePlan<T>*>(args.decode.plan);
    }

    /// Values beyond the layout, which only streams of the original system have. Their codes are
    /// read, so that damage is found.
    template <class Reader>
    static __device__ __noinline__ void clearBeyond(Reader reader,
                                                    Inner inner,
                                                    std::uint64_t begin,
                                                    std::uint64_t n) {
      for (std::uint64_t first = begin / device::kRunValues + blockIdx.x * group::kRunThreads;
           first * device::kRunValues < n; first += gridDim.x * group::kRunThreads) {
        const std::uint64_t run = first + threadIdx.x;
        std::uint32_t words[device::kRunWords];
        reader.read(run, run * device::kRunValues < n, words);
        for (unsigned i = 0; i < device::kRunValues; ++i) {
          const std::uint64_t at = run * device::kRunValues + i;
          if (at >= begin && at < n) {
            const T zero[1] = {T{0}};
            inner.putPiece(at, 1, zero);
          }
        }
      }
    }
  };
};

}  // namespace fz::lorenzo_quant
