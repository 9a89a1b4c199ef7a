#pragma once

// Differences to the left neighbour as part of a fused group. Encoding carries the last value from
// step to step; a walk that begins inside a chunk finds the value before it once more. Decoding
// sums over the chunk, which lies in one thread block. Device code only.

#include "backends/cuda/group/lines.cuh"
#include "predictors/diff/codec.h"

namespace fz::diff {

/// U: unsigned integer of the width of the values.
template <class U, delta::Code kCode>
struct DiffOp {
  using Args = DiffArgs;

  template <class Inner>
  struct Front {
    static_assert(sizeof(typename Inner::Value) == sizeof(U));
    using Value = U;
    static constexpr bool kHasRows = true;
    static constexpr bool kBlockWide = true;
    static constexpr bool kCanFetch = false;
    static constexpr bool kManyRegisters = group::kNeedsRegisters<Inner>;

    std::uint64_t chunk_values;
    Inner inner;

    __device__ __forceinline__ Front(const DiffArgs& a, const Inner& i)
        : chunk_values(a.chunk_values), inner(i) {}

    __device__ __forceinline__ std::uint64_t count() const { return inner.count(); }
    __device__ __forceinline__ bool begin(std::uint64_t n) const { return inner.begin(n); }
    __device__ __forceinline__ bool isNeeded() const { return group::isNeeded(inner); }
    __device__ __forceinline__ void finish() const { inner.finish(); }

    __device__ __forceinline__ void prefetch(std::uint64_t at, unsigned n) const {
      group::prefetch(inner, at, n);
    }

    struct Line {
      group::LineWalk<Inner> walk;
      U before;  ///< last value of the step before
    };

    __device__ __forceinline__ Line startLine(std::uint64_t first) const {
      Line state{{inner, first}, U{0}};
      U left = 0;
      if (cuda::laneId() == 0 && !startsChunk(first) && first <= inner.count()) {
        left = static_cast<U>(group::oneOf(inner, first - 1));
      }
      state.before = left;
      return state;
    }

    template <unsigned P>
    __device__ __forceinline__ void line(Line& state,
                                         std::uint64_t at,
                                         unsigned n,
                                         U (&x)[P]) const {
      typename Inner::Value values[P];
      state.walk.next(at, n, values);
      const U last = static_cast<U>(values[P - 1]);
      U left = fromLane(last, cuda::laneId() - 1u);
      left = cuda::laneId() == 0 ? state.before : left;
      state.before = fromLane(last, cuda::kWarp - 1);
      if (startsChunk(at)) {
        left = 0;
      }
      U own[P];
#pragma unroll
      for (unsigned k = 0; k < P; ++k) {
        own[k] = static_cast<U>(values[k]);
      }
      differences(at, n, left, own, x);
    }

    __device__ __forceinline__ U one(std::uint64_t at) const {
      const U own = static_cast<U>(group::oneOf(inner, at));
      const U left = startsChunk(at) ? U{0} : static_cast<U>(group::oneOf(inner, at - 1));
      return delta::toCode<kCode>(delta::minus(own, left));
    }

    template <unsigned N>
    __device__ __forceinline__ void load(std::uint64_t first, uint4* staging, U (&v)[N]) const {
      group::rowsOfLines<N>(*this, first, staging, v);
    }

    /// All threads of a block; the left neighbours of warps come from the warps before.
    template <unsigned N>
    __device__ __forceinline__ void loadBlock(std::uint64_t first,
                                              uint4* staging,
                                              U (&v)[N]) const {
      __shared__ U lasts[32];
      typename Inner::Value values[N];
      group::rowsOfLines<N>(inner, first, staging, values);
      U own[N];
#pragma unroll
      for (unsigned k = 0; k < N; ++k) {
        own[k] = static_cast<U>(values[k]);
      }
      U left = fromLane(own[N - 1], cuda::laneId() - 1u);
      if (cuda::laneId() == cuda::kWarp - 1) {
        lasts[cuda::warpId()] = own[N - 1];
      }
      if (threadIdx.x == 0 && !startsChunk(first)) {
        left = static_cast<U>(group::oneOf(inner, first - 1));
      }
      __syncthreads();
      if (cuda::laneId() == 0 && cuda::warpId() != 0) {
        left = lasts[cuda::warpId() - 1];
      }
      const std::uint64_t at = first + cuda::laneId() * N;
      if (startsChunk(at)) {
        left = 0;
      }
      const std::uint64_t n = inner.count();
      differences(at, at + N <= n ? N : group::valuesFrom(at, n), left, own, v);
    }

    /// Has a barrier, and needs another one before it is called again.
    template <unsigned N>
    __device__ __forceinline__ void store(std::uint64_t first,
                                          std::uint64_t n,
                                          uint4* staging,
                                          U (&v)[N]) const {
      __shared__ U warp_sums[32];
      const unsigned lane = cuda::laneId();
      const std::uint64_t own_first = first + lane * N;
      const bool is_fine = chunk_values < N;
      U sum = 0;
#pragma unroll
      for (unsigned k = 0; k < N; ++k) {
        if (is_fine && startsChunk(own_first + k)) {
          sum = 0;
        }
        sum = delta::plus(sum, delta::fromCode<kCode>(v[k]));
        v[k] = sum;
      }
      U before = 0;
      if (!is_fine) {  // uniform: chunks hold whole rows of a lane
        const auto place =
            static_cast<unsigned>((own_first & (chunk_values - 1)) / N);  // lanes before, in chunk
        const unsigned reach = place < lane ? place : lane;
        U through = sum;
#pragma unroll
        for (unsigned step = 1; step < cuda::kWarp; step *= 2) {
          const U other = fromLane(through, lane - step);
          through = reach >= step ? delta::plus(through, other) : through;
        }
        before = delta::minus(through, sum);
        if (lane == cuda::kWarp - 1) {
          warp_sums[cuda::warpId()] = through;
        }
        __syncthreads();
        const unsigned n_warps = (place - reach) / cuda::kWarp;
        for (unsigned w = cuda::warpId() - n_warps; w < cuda::warpId(); ++w) {
          before = delta::plus(before, warp_sums[w]);
        }
      }
      typename Inner::Value values[N];
#pragma unroll
      for (unsigned k = 0; k < N; ++k) {
        values[k] = static_cast<typename Inner::Value>(delta::plus(v[k], before));
      }
      group::putRows<N>(inner, first, n, staging, values);
    }

   private:
    /// Codes of neighbouring values, the first n of which exist; `left` stands before them.
    template <unsigned P>
    __device__ __forceinline__ void differences(
        std::uint64_t at, unsigned n, U left, const U (&own)[P], U (&x)[P]) const {
      if (chunk_values - 1 >= P - 1) {  // also for 0: one chunk
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          x[k] = delta::toCode<kCode>(delta::minus(own[k], k == 0 ? left : own[k - 1]));
        }
      } else {  // chunks begin inside too
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          const U before = k == 0 ? left : startsChunk(at + k) ? U{0} : own[k - 1];
          x[k] = delta::toCode<kCode>(delta::minus(own[k], before));
        }
      }
      if (n < P) {
#pragma unroll
        for (unsigned k = 0; k < P; ++k) {
          x[k] = k < n ? x[k] : U{0};
        }
      }
    }
    /// A chunk of 0 is one chunk: only index 0 starts it.
    __device__ __forceinline__ bool startsChunk(std::uint64_t at) const {
      return (at & (chunk_values - 1)) == 0;
    }
    static __device__ __forceinline__ U fromLane(U value, unsigned lane) {
      if constexpr (sizeof(U) == 8) {
        return __shfl_sync(cuda::kAllLanes, value, static_cast<int>(lane));
      } else {
        return static_cast<U>(__shfl_sync(cuda::kAllLanes, static_cast<std::uint32_t>(value),
                                          static_cast<int>(lane)));
      }
    }
  };
};

}  // namespace fz::diff
