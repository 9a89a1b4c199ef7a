#pragma once

// Lorenzo in one dimension in a fused group: differences to the left neighbour inside blocks. A
// warp has whole blocks. Device code only; must compile with NVRTC.

#include "backends/cuda/group/front.cuh"
#include "predictors/lorenzo/cuda/kernels.h"
#include "shared/bits.h"

namespace fz::lorenzo {

/// kLanes: blocks are whole rows of 32 values; else 32 is a multiple of them.
template <class S, bool kLanes>
struct BlockOp {
  using Args = BlockArgs;

  template <class Inner>
  struct Front : group::Around<Inner> {
    using Value = S;
    static constexpr bool kHasRows = true;
    static_assert(sizeof(typename Inner::Value) == sizeof(S));

    std::uint32_t block_values;

    __device__ __forceinline__ Front(const Args& args, const Inner& front)
        : group::Around<Inner>(front), block_values(args.block_values) {}

    template <unsigned N, class Map>
    __device__ __forceinline__ void take(const Map& map, const uint4* staging, S (&v)[N]) const {
      typename Inner::Value x[N];
      group::takeShifted<N>(this->inner, map, staging, x);
      constexpr S kNone = static_cast<S>(group::shiftOf<Inner>());
      const S left = before<N>(static_cast<S>(x[N - 1]), kNone);
#pragma unroll
      for (unsigned i = N - 1; i > 0; --i) {
        const S minus = isInside<N>(i) ? static_cast<S>(x[i - 1]) : kNone;
        v[i] = bits::wrapSub(static_cast<S>(x[i]), minus);
      }
      v[0] = bits::wrapSub(static_cast<S>(x[0]), left);
    }

    template <unsigned N, class Map>
    __device__ __forceinline__ void put(const Map& map, uint4* staging, S (&v)[N]) const {
#pragma unroll
      for (unsigned i = 1; i < N; ++i) {
        const S plus = isInside<N>(i) ? v[i - 1] : S{0};
        v[i] = bits::wrapAdd(v[i], plus);
      }
      typename Inner::Value x[N];
      const S left = sumBefore<N>(v[N - 1]);
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        x[i] = static_cast<typename Inner::Value>(bits::wrapAdd(v[i], left));
      }
      this->inner.template put<N>(map, staging, x);
    }

    template <unsigned N>
    __device__ __forceinline__ void load(std::uint64_t first, uint4* staging, S (&v)[N]) const {
      group::fetchAndTake<N>(*this, first, staging, v);
    }
    template <unsigned N>
    __device__ __forceinline__ void store(std::uint64_t first,
                                          std::uint64_t n,
                                          uint4* staging,
                                          S (&v)[N]) const {
      put<N>(group::LinearMap{first, n}, staging, v);
    }

   private:
    // Coders differ in the length N of a lane's row; a block may be shorter or longer than it.
    /// Whether no block begins with value i > 0 of the row.
    template <unsigned N>
    __device__ __forceinline__ bool isInside(unsigned i) const {
      return (kLanes && N <= 32) || (i & (block_values - 1)) != 0;
    }
    /// Lanes that share a block.
    template <unsigned N>
    __device__ __forceinline__ unsigned lanesOfBlock() const {
      if constexpr (kLanes && N <= 32) {
        return block_values / N;  // blocks are whole rows
      }
      return block_values > N ? block_values / N : 1;
    }
    /// The last value of the lane before, `none` where a block begins.
    template <unsigned N>
    __device__ __forceinline__ S before(S last, S none) const {
      if constexpr (!kLanes && N >= 16) {
        return none;
      }
      const auto other = static_cast<S>(__shfl_up_sync(cuda::kAllLanes, static_cast<int>(last), 1));
      return (cuda::laneId() & (lanesOfBlock<N>() - 1)) == 0 ? none : other;
    }
    /// The sum of the lanes before in the lane's block, each of which has `sum`.
    template <unsigned N>
    __device__ __forceinline__ S sumBefore(S sum) const {
      if constexpr (!kLanes && N >= 16) {
        return 0;
      }
      const unsigned n_lanes = lanesOfBlock<N>();
      const unsigned place = cuda::laneId() & (n_lanes - 1);
      S all = sum;
      for (unsigned step = 1; step < n_lanes; step *= 2) {
        const auto other =
            static_cast<S>(__shfl_up_sync(cuda::kAllLanes, static_cast<int>(all), step));
        all = place >= step ? bits::wrapAdd(all, other) : all;
      }
      return bits::wrapSub(all, sum);
    }
  };
};

}  // namespace fz::lorenzo
