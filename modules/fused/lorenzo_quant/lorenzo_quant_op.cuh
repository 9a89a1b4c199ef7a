#pragma once

// LorenzoQuant in one dimension as part of a fused group. Encoding walks along the values; list
// entries leave a flag and a count, as in the stage alone. Decoding sums along the line. More
// dimensions would need the rows before, which no chunk holds. Device code only.

#include "backends/cuda/group/lines.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_op.h"

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
      Int left;  ///< bin of the last value of the step before
    };

    __device__ __forceinline__ Line startLine(std::uint64_t first) const {
      Int left = 0;
      if (cuda::laneId() == 0 && first != 0 && first < count()) {
        left = quantize(group::oneOf(inner, first - 1), step).value;
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
      Int bins[P];
      unsigned exact = findBins(values, bins);  // a bit per value that no bin reproduces
      Int left = __shfl_up_sync(cuda::kAllLanes, bins[P - 1], 1);
      left = cuda::laneId() == 0 ? state.left : left;
      static_assert(kEdge % P == 0);
      if (static_cast<std::uint32_t>(at) % kEdge == 0) {
        left = 0;  // the left end of a tile
      }
      state.left = __shfl_sync(cuda::kAllLanes, bins[P - 1], cuda::kWarp - 1);
      const Int radius = static_cast<Int>(args.encode.radius);
      bool all_coded = true;
      Int deltas[P];
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        deltas[k] = bins[k] - left;
        left = bins[k];
        all_coded = all_coded & hasCode(deltas[k], radius);
      }
      if (n < P) {
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          deltas[k] = k < n ? deltas[k] : Int{0};
        }
        exact &= (1u << n) - 1u;
      }
      if (!all_coded || exact != 0) {
        unsigned range = 0;
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          const bool coded = hasCode(deltas[k], radius);
          range |= coded ? 0u : 1u << k;
          deltas[k] = coded ? deltas[k] : Int{0};
        }
        if ((range | exact) != 0) {
          noteEntries<P>(at, range, exact);
        }
      }
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        x[k] = toCode<TCode>(deltas[k], args.encode.zigzag);
      }
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
      static_assert(cuda::kWarp * N % kEdge == 0, "a warp has whole tiles");
      constexpr unsigned kCount = cuda::Vec16<TCode>::kCount;
      constexpr unsigned kPieces = N / kCount;
      group::stageRows(staging, v);
      const bool is_wide = decodePlan().is_wide != 0;
      const T size = decodePlan().step;
      Word left = 0;
      double wide_left = 0.0;
#pragma unroll
      for (unsigned j = 0; j < kPieces; ++j) {
        const unsigned i = j * cuda::kWarp + cuda::laneId();
        const std::uint64_t at = first + i * kCount;
        const unsigned n_here = group::valuesFrom(at, n);
        cuda::Vec16<TCode> piece;
        piece.raw = staging[group::lineAt<kPieces>(j)];
        T entries[kCount];
        const unsigned marks = fetchEntries(at, n_here, entries);
        if (j * cuda::kWarp * kCount % kEdge == 0) {
          left = 0;
          wide_left = 0.0;
        }
        T values[kCount];
        if (is_wide) {
          sumWide(piece.v, marks, entries, size, wide_left, values);
        } else {
          sum(piece.v, marks, entries, size, left, values);
        }
        inner.putPiece(at, n_here, values);
      }
      __syncwarp();
    }

   private:
    __device__ __forceinline__ const device::EncodePlan<T>& encodePlan() const {
      return *static_cast<const device::EncodePlan<T>*>(args.encode.plan);
    }
    __device__ __forceinline__ const device::DecodePlan<T>& decodePlan() const {
      return *static_cast<const device::DecodePlan<T>*>(args.decode.plan);
    }

    /// Bins; the bits of those values that are not usable.
    template <unsigned P>
    __device__ __forceinline__ unsigned findBins(const T (&values)[P], Int (&bins)[P]) const {
      bool all_quick = true;
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        all_quick = all_quick & quickBin<1>(values[k], step, bins[k]);
      }
      unsigned exact = 0;
      if (!all_quick) {
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          const Bin<T> bin = quantize(values[k], step);
          bins[k] = bin.value;
          exact |= bin.usable != 0 ? 0u : 1u << k;
        }
      }
      return exact;
    }

    /// Flags and counts of the entries among P values, of which each comes once.
    template <unsigned P>
    __device__ __forceinline__ void noteEntries(std::uint64_t at,
                                                unsigned range,
                                                unsigned exact) const {
      for (unsigned all = range | exact; all != 0; all &= all - 1) {
        const unsigned k = static_cast<unsigned>(__ffs(static_cast<int>(all))) - 1;
        const auto x = static_cast<std::uint32_t>(at + k);  // fewer than 2^32 values
        const std::uint32_t segment = x / device::kSegment<T>;
        atomicOr(args.encode.flags + segment,
                 1u << (x % device::kSegment<T> / device::kLaneValues<T>));
        const std::uint32_t one_each = (range >> k & 1u) | (exact >> k & 1u) << 16;
        std::uint32_t* count = args.encode.counts + segment / device::kChunkSegments;
        atomicAdd(count, one_each);  // order-free: a sum of integers
      }
    }

    /// The range entries of neighbouring values wait where the values will be.
    template <unsigned P>
    __device__ __forceinline__ unsigned fetchEntries(std::uint64_t at,
                                                     unsigned n,
                                                     T (&entries)[P]) const {
      if (decodePlan().n_range == 0 || n == 0) {
        return 0;
      }
      unsigned marks = args.decode.marks[at / 32] >> (at % 32) & ((1u << P) - 1u);
      marks &= n < P ? (1u << n) - 1u : ~0u;
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        entries[k] = (marks >> k & 1u) != 0 ? static_cast<const T*>(args.decode.out)[at + k] : T{0};
      }
      return marks;
    }

    template <unsigned P>
    __device__ __forceinline__ void sum(const TCode (&codes)[P],
                                        unsigned marks,
                                        const T (&entries)[P],
                                        T size,
                                        Word& left,
                                        T (&values)[P]) const {
      Word sums[P];
      Word own = 0;
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        own += static_cast<Word>(fromCode<Int>(codes[k], args.decode.zigzag));
        if (marks != 0 && (marks >> k & 1u) != 0) {
          own += static_cast<Word>(static_cast<Int>(entries[k]));
        }
        sums[k] = own;
      }
      const Word through = cuda::warpInclusiveSum(own);
      const Word before = left + through - own;
      left += __shfl_sync(cuda::kAllLanes, through, cuda::kWarp - 1);
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        values[k] = reconstruct(static_cast<Int>(sums[k] + before), size);
      }
    }

    /// Deltas that no integer holds: from left to right, as the CPU adds.
    template <unsigned P>
    __device__ __forceinline__ void sumWide(const TCode (&codes)[P],
                                            unsigned marks,
                                            const T (&entries)[P],
                                            T size,
                                            double& left,
                                            T (&values)[P]) const {
#pragma unroll 1
      for (unsigned lane = 0; lane < cuda::kWarp; ++lane) {
        if (lane == cuda::laneId()) {
#pragma unroll
          for (unsigned k = 0; k < P; ++k) {
            double delta = static_cast<double>(fromCode<Int>(codes[k], args.decode.zigzag));
            if ((marks >> k & 1u) != 0) {
              delta = fp::add(delta, static_cast<double>(entries[k]));
            }
            left = fp::add(left, delta);
            values[k] = reconstructWide(left, size);
          }
        }
        left = __shfl_sync(cuda::kAllLanes, left, static_cast<int>(lane));
      }
    }
  };
};

}  // namespace fz::lorenzo_quant
