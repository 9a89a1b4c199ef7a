#pragma once

// LorenzoQuant as part of a fused group. Encoding walks along the values; what lies above and
// behind is read and rounded once more. List entries leave a flag and a count, as in the stage
// alone. Decoding, in one dimension, sums along x; more dimensions would need the rows before.
// Device code only.

#include "backends/cuda/group/lines.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_op.h"

namespace fz::lorenzo_quant {

template <class T, class TCode, int kDim>
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
    static constexpr std::uint32_t kEdge = kDim == 1 ? 1024 : (kDim == 2 ? 32 : 8);

    const LorenzoQuantArgs& args;
    Inner inner;
    Step<T> step;          ///< encoding
    std::uint32_t nx, ny;  ///< encoding, two and three dimensions

    __device__ __forceinline__ Front(const LorenzoQuantArgs& a, const Inner& i)
        : args(a), inner(i), step{}, nx(0), ny(0) {
      if (args.encode.plan != nullptr) {
        step = encodePlan().step;
        nx = static_cast<std::uint32_t>(encodePlan().layout.grid.nx);
        ny = static_cast<std::uint32_t>(encodePlan().layout.grid.ny);
      }
    }

    __device__ __forceinline__ std::uint64_t count() const { return encodePlan().layout.n_values; }
    __device__ __forceinline__ bool begin(std::uint64_t n) const {
      return decodePlan().n_values == n && inner.begin(n);
    }
    __device__ __forceinline__ bool isNeeded() const { return group::isNeeded(inner); }
    __device__ __forceinline__ void finish() const { inner.finish(); }

    // Encoding.

    struct Line {
      Int left;  ///< bin of the last value of the step before, less what is above and behind
    };

    __device__ __forceinline__ Line startLine(std::uint64_t first) const {
      Int left = 0;
      if (cuda::laneId() == 0 && first != 0 && first < count()) {
        left = columnAt(Place(first - 1, nx, ny), first - 1);
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
      Int columns[P];
      unsigned starts = 0;                         // a bit per value at the left end of its tile
      unsigned exact = findBins(values, columns);  // a bit per value that no bin reproduces
      if constexpr (kDim == 1) {
        starts = (static_cast<std::uint32_t>(at) % kEdge) == 0 ? 1u : 0u;
      } else if (nx % P == 0) {  // uniform: the values are of one row
        const Place place(at, nx, ny);
        starts = startsIn<P>(place.x);
        subtractRows(place, at, n, columns);
      } else {
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          const Place place(at + k, nx, ny);
          starts |= (place.x % kEdge == 0 ? 1u : 0u) << k;
          if (k < n) {
            columns[k] -= besides(place, at + k);
          }
        }
      }
      Int left = __shfl_up_sync(cuda::kAllLanes, columns[P - 1], 1);
      left = cuda::laneId() == 0 ? state.left : left;
      state.left = __shfl_sync(cuda::kAllLanes, columns[P - 1], cuda::kWarp - 1);
      const Int radius = static_cast<Int>(args.encode.radius);
      bool all_coded = true;
      Int deltas[P];
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        deltas[k] = columns[k] - ((starts >> k & 1u) != 0 ? Int{0} : left);
        left = columns[k];
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

    // Decoding, one dimension.

    template <unsigned N>
    __device__ __forceinline__ void store(std::uint64_t first,
                                          std::uint64_t n,
                                          uint4* staging,
                                          TCode (&v)[N]) const {
      static_assert(kDim > 1 || cuda::kWarp * N % kEdge == 0, "a warp has whole tiles");
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

    /// Where a value stands. A field has fewer than 2^32 values, so 32 bits do.
    struct Place {
      std::uint32_t x;
      bool has_up, has_back;

      __device__ __forceinline__ Place(std::uint64_t at, std::uint32_t nx, std::uint32_t ny)
          : x(static_cast<std::uint32_t>(at)), has_up(false), has_back(false) {
        if constexpr (kDim > 1) {
          const std::uint32_t row = x / nx;
          x -= row * nx;
          const std::uint32_t z = kDim == 3 ? row / ny : 0;
          has_up = (row - z * ny) % kEdge != 0;
          has_back = kDim == 3 && z % kEdge != 0;
        }
      }
    };

    template <unsigned P>
    static __device__ __forceinline__ unsigned startsIn(std::uint32_t x) {
      if constexpr (P <= kEdge) {
        return x % kEdge == 0 ? 1u : 0u;
      } else {
        unsigned starts = 0;
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          starts |= ((x + k) % kEdge == 0 ? 1u : 0u) << k;
        }
        return starts;
      }
    }

    /// Bins; the bits of those values that are not usable.
    template <unsigned P>
    __device__ __forceinline__ unsigned findBins(const T (&values)[P], Int (&bins)[P]) const {
      bool all_quick = true;
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        all_quick = all_quick & quickBin<kDim>(values[k], step, bins[k]);
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

    __device__ __forceinline__ Int binAt(std::uint64_t at) const {
      return quantize(group::oneOf(inner, at), step).value;
    }
    /// What the differences along y and z take off the bin of a value.
    __device__ __forceinline__ Int besides(const Place& place, std::uint64_t at) const {
      const std::uint64_t plane = std::uint64_t{nx} * ny;
      Int sum = 0;
      if (place.has_up) {
        sum += binAt(at - nx);
      }
      if (place.has_back) {
        sum += binAt(at - plane);
      }
      if (place.has_up && place.has_back) {
        sum -= binAt(at - plane - nx);
      }
      return sum;
    }
    __device__ __forceinline__ Int columnAt(const Place& place, std::uint64_t at) const {
      return binAt(at) - besides(place, at);
    }
    /// The same for the values of one row.
    template <unsigned P>
    __device__ __forceinline__ void subtractRows(const Place& place,
                                                 std::uint64_t at,
                                                 unsigned n,
                                                 Int (&columns)[P]) const {
      const std::uint64_t plane = std::uint64_t{nx} * ny;
      T values[P];
      Int bins[P];
      if (place.has_up && n != 0) {
        inner.piece(at - nx, n, values);
        static_cast<void>(findBins(values, bins));
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          columns[k] -= bins[k];
        }
      }
      if constexpr (kDim == 3) {
        if (place.has_back && n != 0) {
          inner.piece(at - plane, n, values);
          static_cast<void>(findBins(values, bins));
#pragma unroll
          for (unsigned k = 0; k < P; ++k) {
            columns[k] -= bins[k];
          }
        }
        if (place.has_up && place.has_back && n != 0) {
          inner.piece(at - plane - nx, n, values);
          static_cast<void>(findBins(values, bins));
#pragma unroll
          for (unsigned k = 0; k < P; ++k) {
            columns[k] += bins[k];
          }
        }
      }
    }

    /// Flags and counts of the entries among P values, of which each comes once.
    template <unsigned P>
    __device__ __forceinline__ void noteEntries(std::uint64_t at,
                                                unsigned range,
                                                unsigned exact) const {
      for (unsigned all = range | exact; all != 0; all &= all - 1) {
        const unsigned k = static_cast<unsigned>(__ffs(static_cast<int>(all))) - 1;
        const Place place(at + k, nx, ny);
        const auto row = (static_cast<std::uint32_t>(at + k) - place.x) / (kDim == 1 ? 1u : nx);
        const std::uint64_t segment = (kDim == 1 ? 0 : row * encodePlan().layout.row_segments) +
                                      place.x / device::kSegment<T>;
        atomicOr(args.encode.flags + segment,
                 1u << (place.x % device::kSegment<T> / device::kLaneValues<T>));
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
