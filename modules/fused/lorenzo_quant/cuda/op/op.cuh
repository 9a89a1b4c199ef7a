#pragma once

// LorenzoQuant in one dimension as part of a fused group. Encoding walks along the values; list
// entries leave a flag and a count, as in the stage alone. Decoding sums along the line. The ops
// for more dimensions are in grid_encode.cuh and grid_decode.cuh. Device code only.

#include "backends/cuda/group/lines.cuh"
#include "fused/lorenzo_quant/cuda/op/lines.cuh"
#include "fused/lorenzo_quant/cuda/op/lines_decode.cuh"

namespace fz::lorenzo_quant {

template <class T, class TCode>
struct LorenzoQuantOp {
  using Args = LorenzoQuantArgs;

  template <class Inner>
  struct Front {
    using Value = TCode;
    using Int = IntOf<T>;
    using Word = typename Number<T>::Word;
    static constexpr bool kHasRows = true;
    static constexpr bool kBlockWide = false;
    static constexpr bool kCanFetch = false;
    static constexpr bool kRollsLines = true;
    static constexpr bool kManyRegisters = true;
    static constexpr unsigned kLineValues = sizeof(T) == 4 ? 8 : 4;
    static constexpr std::uint32_t kEdge = 1024;

    const LorenzoQuantArgs& args;
    Inner inner;
    Step<T> step;  ///< encoding

    __device__ __forceinline__ Front(const LorenzoQuantArgs& a, const Inner& i)
        : args(a), inner(i), step{} {
      if (args.encode.plan != nullptr) {
        step = encodePlan().step;
      }
    }

    __device__ __forceinline__ std::uint64_t count() const { return encodePlan().layout.n_values; }
    __device__ __forceinline__ bool begin(std::uint64_t n) const {
      return decodePlan().n_values == n && inner.begin(n);
    }
    __device__ __forceinline__ bool isNeeded() const { return group::isNeeded(inner); }
    __device__ __forceinline__ void finish() const { inner.finish(); }

    __device__ __forceinline__ void prefetch(std::uint64_t at, unsigned n) const {
      group::prefetch(inner, at, n);
    }

    // Encoding.

    struct Line {
      Word left;  ///< bin of the last value of the step before, plus kBias
    };

    __device__ __forceinline__ Line startLine(std::uint64_t first) const {
      Word left = FastBins<T>::kBias;
      if (cuda::laneId() == 0 && first % kEdge != 0 && first < count()) {
        left += static_cast<Word>(quantize(group::oneOf(inner, first - 1), step).value);
      }
      return {left};
    }

    template <unsigned P>
    struct Raw {
      T v[P];
    };
    template <unsigned P>
    __device__ __forceinline__ void fetchWhole(std::uint64_t at, Raw<P>& raw) const {
      group::wholePiece(inner, at, raw.v);
    }
    template <unsigned P>
    __device__ __forceinline__ void lineWhole(Line& state,
                                              std::uint64_t at,
                                              const Raw<P>& raw,
                                              TCode (&x)[P]) const {
      lineOf(state, at, P, raw.v, x);
    }
    template <unsigned P>
    __device__ __forceinline__ void line(Line& state,
                                         std::uint64_t at,
                                         unsigned n,
                                         TCode (&x)[P]) const {
      T values[P];
      inner.piece(at, n, values);
      lineOf(state, at, n, values, x);
    }

    template <unsigned P>
    __device__ __forceinline__ void lineOf(
        Line& state, std::uint64_t at, unsigned n, const T (&values)[P], TCode (&x)[P]) const {
      Word bins[P];  // plus kBias
      const device::BinsKnown<T> known = device::biasedBins<1>(values, step, bins);
      Word left = __shfl_up_sync(cuda::kAllLanes, bins[P - 1], 1);
      left = cuda::laneId() == 0 ? state.left : left;
      static_assert(kEdge % P == 0);
      if (static_cast<std::uint32_t>(at) % kEdge == 0) {
        left = FastBins<T>::kBias;  // the left end of a tile
      }
      state.left = __shfl_sync(cuda::kAllLanes, bins[P - 1], cuda::kWarp - 1);
      const bool all_coded = device::surelyCoded<T>(args.encode, known.reach,
                                                    static_cast<Int>(left - FastBins<T>::kBias));
      Int deltas[P];
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        deltas[k] = static_cast<Int>(bins[k] - left);
        left = bins[k];
      }
      device::codeDeltas(
          args.encode, deltas, n, known.exact, all_coded, x, [&](unsigned range, unsigned entries) {
            device::recordEntries<T>(args.encode, range, entries, [&](unsigned k) {
              const auto index = static_cast<std::uint32_t>(at + k);  // fewer than 2^32 values
              return device::EntryAt{index / device::kSegment<T>, index};
            });
          });
    }

    /// The code of one value, without a record of list entries.
    __device__ __forceinline__ TCode one(std::uint64_t at) const {
      const auto bin = [&](std::uint64_t i) {
        return quantize(group::oneOf(inner, i), step).value;
      };
      const Int left = at % kEdge == 0 ? Int{0} : bin(at - 1);
      return device::codeOf<TCode>(args.encode, bits::wrapSub(bin(at), left));
    }

    template <unsigned N>
    __device__ __forceinline__ void load(std::uint64_t first, uint4* staging, TCode (&v)[N]) const {
      group::rowsOfLines<N>(*this, first, staging, v);
    }

    // Decoding.

    template <unsigned N>
    __device__ __forceinline__ void store(std::uint64_t first,
                                          std::uint64_t n,
                                          uint4* staging,
                                          TCode (&v)[N]) const {
      device::LineDecoder<T, TCode, Inner>{args.decode, decodePlan(), inner}.store(first, n,
                                                                                   staging, v);
    }

   private:
    __device__ __forceinline__ const device::EncodePlan<T>& encodePlan() const {
      return *static_cast<const device::EncodePlan<T>*>(args.encode.plan);
    }
    __device__ __forceinline__ const device::DecodePlan<T>& decodePlan() const {
      return *static_cast<const device::DecodePlan<T>*>(args.decode.plan);
    }
  };
};

}  // namespace fz::lorenzo_quant
