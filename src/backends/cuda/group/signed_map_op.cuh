#pragma once

// Signed integers to unsigned ones of the same width, value by value: Zigzag and Negabinary in a
// fused group. Device code only; must compile with NVRTC.

#include <type_traits>

#include "backends/cuda/group/front.cuh"
#include "backends/cuda/group/no_args.h"

namespace fz::group {

/// Map has the functions encode (signed to unsigned) and decode.
template <class S, class Map>
struct SignedMapOp {
  using Args = NoArgs;
  using U = std::make_unsigned_t<S>;

  template <class Inner>
  struct Front : Around<Inner> {
    using Value = U;
    using From = typename Inner::Value;
    static constexpr bool kHasRows = Inner::kHasRows;
    static_assert(sizeof(From) == sizeof(S));

    __device__ __forceinline__ Front(const Args& /*args*/, const Inner& front)
        : Around<Inner>(front) {}

    template <unsigned N, class M>
    __device__ __forceinline__ void take(const M& map, const uint4* staging, U (&v)[N]) const {
      From x[N];
      this->inner.template take<N>(map, staging, x);
      encode(x, v);
    }
    template <unsigned N, class M>
    __device__ __forceinline__ void put(const M& map, uint4* staging, U (&v)[N]) const {
      From x[N];
      decode(v, x);
      this->inner.template put<N>(map, staging, x);
    }
    template <unsigned P>
    __device__ __forceinline__ void piece(std::uint64_t at, unsigned n, U (&v)[P]) const {
      From x[P];
      this->inner.piece(at, n, x);
      encode(x, v);  // 0 stays 0
    }
    template <unsigned P>
    __device__ __forceinline__ void putPiece(std::uint64_t at, unsigned n, const U (&v)[P]) const {
      From x[P];
      decode(v, x);
      this->inner.putPiece(at, n, x);
    }
    template <unsigned N>
    __device__ __forceinline__ void load(std::uint64_t first, uint4* staging, U (&v)[N]) const {
      From x[N];
      this->inner.template load<N>(first, staging, x);
      encode(x, v);
    }
    template <unsigned N>
    __device__ __forceinline__ void store(std::uint64_t first,
                                          std::uint64_t n,
                                          uint4* staging,
                                          U (&v)[N]) const {
      From x[N];
      decode(v, x);
      this->inner.template store<N>(first, n, staging, x);
    }

   private:
    template <unsigned N>
    static __device__ __forceinline__ void encode(const From (&x)[N], U (&v)[N]) {
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        v[i] = Map::encode(static_cast<S>(x[i]));
      }
    }
    template <unsigned N>
    static __device__ __forceinline__ void decode(const U (&v)[N], From (&x)[N]) {
#pragma unroll
      for (unsigned i = 0; i < N; ++i) {
        x[i] = static_cast<From>(Map::decode(v[i]));
      }
    }
  };
};

}  // namespace fz::group
