#pragma once

// LorenzoQuant in two and three dimensions at the front of a fused group that encodes. A lane has a
// run of neighbouring values along x and reads the runs above and behind it again: they are near,
// and their bins cost less than memory for them would. The decoder is another op
// (grid_decode.cuh). Device code only; must compile with NVRTC.

#include "backends/cuda/group/lines.cuh"
#include "fused/lorenzo_quant/cuda/op/grid_place.cuh"
#include "fused/lorenzo_quant/cuda/op/lines.cuh"

namespace fz::lorenzo_quant {

template <class T, class TCode, int kDim>
struct LorenzoQuantGridOp {
  using Args = LorenzoQuantArgs;

  template <class Inner>
  struct Front : device::GridBins<T, kDim, Inner> {
    using Value = TCode;
    using Int = IntOf<T>;
    using Word = typename Number<T>::Word;
    static constexpr bool kHasRows = true;
    static constexpr bool kBlockWide = false;
    static constexpr bool kCanFetch = false;
    static constexpr std::uint32_t kEdge = device::GridBins<T, kDim, Inner>::kEdge;
    static constexpr unsigned kLineValues = sizeof(T) == 4 ? 8 : kDim == 3 ? 4 : 2;
    static constexpr bool kManyRegisters = sizeof(T) == 4 || kDim == 3;
    static constexpr bool kRollsLines = true;

    using Bins = device::GridBins<T, kDim, Inner>;
    using Place = device::GridPlace;
    using Bins::divide;
    using Bins::grid;
    using Bins::inner;
    using Bins::step;

    const LorenzoQuantArgs& args;

    __device__ __forceinline__ Front(const LorenzoQuantArgs& a, const Inner& i)
        : Bins(*static_cast<const device::EncodePlan<T>*>(a.encode.plan), i), args(a) {}

    __device__ __forceinline__ std::uint64_t count() const { return plan().layout.n_values; }
    __device__ __forceinline__ bool begin(std::uint64_t /*n*/) const { return false; }
    __device__ __forceinline__ bool isNeeded() const { return group::isNeeded(inner); }
    __device__ __forceinline__ void finish() const { inner.finish(); }
    __device__ __forceinline__ void prefetch(std::uint64_t at, unsigned n) const {
      group::prefetch(inner, at, n);
    }

    /// Runs of P values stay in one row, and begin at a multiple of P in it.
    template <unsigned P>
    __device__ __forceinline__ bool hasWholeLines() const {
      return grid.nx % P == 0;
    }

    struct Line {
      Int left;  ///< column() of the last value of the step before
    };
    __device__ __forceinline__ Line startLine(std::uint64_t first) const {
      Int left = 0;
      if (cuda::laneId() == 0 && first != 0 && first < count()) {
        const Place place = this->placeOf(static_cast<std::uint32_t>(first));
        left = place.x % kEdge == 0 ? Int{0} : this->column(place, first - 1);
      }
      return {left};
    }

    template <unsigned P>
    using Raw = typename Bins::template Raw<P>;
    /// Two lines are under way together, of large ones one.
    static constexpr unsigned kMaxRawBytes =
        (sizeof(T) * kDim * kLineValues > 64 ? 1 : 2) * sizeof(Raw<kLineValues>);

    template <unsigned P>
    __device__ __forceinline__ void fetchWhole(std::uint64_t at, Raw<P>& raw) const {
      const Place place = this->placeOf(static_cast<std::uint32_t>(at));
      raw.starts = place.x % kEdge == 0;
      this->fetchAround(place, at, raw);
    }
    template <unsigned P>
    __device__ __forceinline__ void lineWhole(Line& state,
                                              std::uint64_t at,
                                              const Raw<P>& raw,
                                              TCode (&x)[P]) const {
      lineOf<true>(state, at, P, raw, x);
    }

    template <unsigned P>
    __device__ __forceinline__ void line(Line& state,
                                         std::uint64_t at,
                                         unsigned n,
                                         TCode (&x)[P]) const {
      Raw<P> raw;
      if (kEdge % P == 0 && n == P && hasWholeLines<P>()) {
        fetchWhole(at, raw);
      } else {
        this->fetchEach(at, n, raw);
      }
      lineOf<false>(state, at, n, raw, x);
    }

    /// Where what the warp has lies in one row: all lines have the same rows above and behind.
    template <unsigned N>
    __device__ __forceinline__ void fillRow(std::uint64_t first, uint4* staging) const {
      constexpr unsigned P = group::lineValues<Front>();
      constexpr unsigned kPieces = N / cuda::Vec16<TCode>::kCount;
      constexpr std::uint32_t kLine = cuda::kWarp * P;
      constexpr unsigned kMaxBatch = kMaxRawBytes / sizeof(Raw<P>);
      constexpr unsigned kBatch = kMaxBatch < N / P ? kMaxBatch : N / P;
      static_assert(kLine % kEdge == 0 && N / P % kBatch == 0);
      const Place place = this->placeOf(static_cast<std::uint32_t>(first));
      std::uint64_t at = first + cuda::laneId() * P;
#pragma unroll 1
      for (unsigned j = 0; j < N / P; j += kBatch) {
        Raw<P> raw[kBatch];
#pragma unroll
        for (unsigned k = 0; k < kBatch; ++k) {
          this->fetchAround(place, at + k * kLine, raw[k]);
        }
#pragma unroll
        for (unsigned k = 0; k < kBatch; ++k) {
          Word d[P];
          const device::BinsKnown<T> known = this->columns(raw[k], d);
          group::LinePart<TCode, P> part;
          codesOfWhole(at + k * kLine, known, d, part.v);
          *group::linePart<P, kPieces, TCode>(staging, j + k) = part;
        }
        at += kBatch * kLine;
      }
    }

    /// The lines of whole rows. Where several of them lie in what the warp has, it walks down the
    /// columns, so that the bins above are those of the step before. False, and nothing done, for
    /// other rows.
    template <unsigned N>
    __device__ __forceinline__ bool fillLines(std::uint64_t first, uint4* staging) const {
      if (grid.nx % (cuda::kWarp * N) == 0) {
        fillRow<N>(first, staging);
        return true;
      }
      constexpr unsigned P = group::lineValues<Front>();
      constexpr unsigned kPieces = N / cuda::Vec16<TCode>::kCount;
      constexpr std::uint32_t kLine = cuda::kWarp * P;
      constexpr std::uint32_t kLines = N / P;
      const std::uint32_t row_lines = grid.nx / kLine;
      if (grid.nx % kLine != 0 || row_lines == 0 || 2 * row_lines > kLines ||
          kLines % row_lines != 0) {
        return false;
      }
      const Place start = this->placeOf(static_cast<std::uint32_t>(first));
#pragma unroll 1
      for (std::uint32_t column_line = 0; column_line < row_lines; ++column_line) {
        Place place = start;
        Word above[P];
        T reach_above = 0;
#pragma unroll 1
        for (std::uint32_t j = column_line; j < kLines; j += row_lines) {
          const std::uint64_t at = first + j * kLine + cuda::laneId() * P;
          const bool has_back = kDim == 3 && place.z % kEdge != 0;
          if (place.y % kEdge == 0) {
#pragma unroll
            for (unsigned k = 0; k < P; ++k) {
              above[k] = 0;
            }
            reach_above = 0;
          } else if (j == column_line) {
            reach_above = this->planeDifferences(at - grid.nx, has_back, above).reach;
          }
          Word d[P];
          device::BinsKnown<T> known = this->planeDifferences(at, has_back, d);
          const T own_reach = known.reach;
          known.reach += reach_above;
          reach_above = own_reach;
#pragma unroll
          for (unsigned k = 0; k < P; ++k) {
            const Word own = d[k];
            d[k] -= above[k];
            above[k] = own;
          }
          group::LinePart<TCode, P> part;
          codesOfWhole(at, known, d, part.v);
          *group::linePart<P, kPieces, TCode>(staging, j) = part;
          if (++place.y == grid.ny) {
            place.y = 0;
            ++place.z;
          }
        }
      }
      return true;
    }

    /// The code of one value, without a record of list entries.
    __device__ __forceinline__ TCode one(std::uint64_t at) const {
      const Place place = this->placeOf(static_cast<std::uint32_t>(at));
      const Int left = place.x % kEdge == 0 ? Int{0} : this->column(place, at - 1);
      return device::codeOf<TCode>(args.encode, bits::wrapSub(this->column(place, at), left));
    }

    template <unsigned N>
    __device__ __forceinline__ void load(std::uint64_t first, uint4* staging, TCode (&v)[N]) const {
      group::rowsOfLines<N>(*this, first, staging, v);
    }

   private:
    __device__ __forceinline__ const device::EncodePlan<T>& plan() const {
      return *static_cast<const device::EncodePlan<T>*>(args.encode.plan);
    }
    template <bool kWhole, unsigned P>
    __device__ __forceinline__ void lineOf(
        Line& state, std::uint64_t at, unsigned n, const Raw<P>& raw, TCode (&x)[P]) const {
      Word d[P];
      const device::BinsKnown<T> known = this->columns(raw, d);
      codesOf<kWhole>(state, at, n, raw.starts, known, d, x);
    }

    /// From differences in y and z to codes. `starts`: bits of the values that begin a tile in x;
    /// kWhole: only the first one of a run can.
    template <bool kWhole, unsigned P>
    __device__ __forceinline__ void codesOf(Line& state,
                                            std::uint64_t at,
                                            unsigned n,
                                            std::uint32_t starts,
                                            const device::BinsKnown<T>& known,
                                            const Word (&d)[P],
                                            TCode (&x)[P]) const {
      static_assert(!kWhole || kEdge % P == 0);
      Int left = 0;
      if constexpr (!kWhole || kEdge != P) {
        const Int last = static_cast<Int>(d[P - 1]);
        left = __shfl_up_sync(cuda::kAllLanes, last, 1);
        left = cuda::laneId() == 0 ? state.left : left;
        left = (starts & 1u) != 0 ? Int{0} : left;
        state.left = __shfl_sync(cuda::kAllLanes, last, cuda::kWarp - 1);
      }
      codesFrom<kWhole>(left, at, n, starts, known, d, x);
    }
    /// The same for a line that begins with a tile in x, as all do in rows of whole lines.
    template <unsigned P>
    __device__ __forceinline__ void codesOfWhole(std::uint64_t at,
                                                 const device::BinsKnown<T>& known,
                                                 const Word (&d)[P],
                                                 TCode (&x)[P]) const {
      Int left = 0;
      if constexpr (kEdge != P) {
        left = __shfl_up_sync(cuda::kAllLanes, static_cast<Int>(d[P - 1]), 1);
        left = cuda::laneId() * P % kEdge == 0 ? Int{0} : left;
      }
      codesFrom<true>(left, at, P, 1u, known, d, x);
    }
    /// `left`: the difference in y and z of the value before.
    template <bool kWhole, unsigned P>
    __device__ __forceinline__ void codesFrom(Int left,
                                              std::uint64_t at,
                                              unsigned n,
                                              std::uint32_t starts,
                                              const device::BinsKnown<T>& known,
                                              const Word (&d)[P],
                                              TCode (&x)[P]) const {
      const bool all_coded = device::surelyCoded<T>(args.encode, known.reach, left);
      Int deltas[P];
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        const Int here = static_cast<Int>(d[k]);
        const bool begins = !kWhole && k != 0 && (starts >> k & 1u) != 0;
        deltas[k] = bits::wrapSub(here, begins ? Int{0} : left);
        left = here;
      }
      device::codeDeltas(
          args.encode, deltas, n, known.exact, all_coded, x, [&](unsigned range, unsigned entries) {
            device::recordEntries<T>(args.encode, range, entries, [&](unsigned k) {
              const auto index = static_cast<std::uint32_t>(at + k);
              const std::uint32_t row = divide(index, grid.inverse_nx);
              const std::uint32_t place = index - row * grid.nx;
              const auto row_segments = static_cast<std::uint32_t>(plan().layout.row_segments);
              return device::EntryAt{row * row_segments + place / device::kSegment<T>, place};
            });
          });
    }
  };
};

}  // namespace fz::lorenzo_quant
