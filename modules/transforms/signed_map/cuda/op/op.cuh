#pragma once

// Signed integers to unsigned ones of the same width, value by value: Zigzag and Negabinary in a
// fused group. Device code only; must compile with NVRTC.

#include <type_traits>

#include "backends/cuda/group/lines.cuh"
#include "backends/cuda/group/no_args.h"
#include "transforms/signed_map/codec.h"

namespace fz::signed_map {

/// Map is one of codec.h.
template <class S, class Map>
struct SignedMapOp {
  using Args = group::NoArgs;
  using U = std::make_unsigned_t<S>;

  template <class From, unsigned N>
  static __device__ __forceinline__ void encodeAll(const From (&x)[N], U (&v)[N]) {
    static_assert(sizeof(From) == sizeof(S));
#pragma unroll
    for (unsigned i = 0; i < N; ++i) {
      v[i] = Map::encode(static_cast<S>(x[i]));
    }
  }
  template <class From, unsigned N>
  static __device__ __forceinline__ void decodeAll(const U (&v)[N], From (&x)[N]) {
#pragma unroll
    for (unsigned i = 0; i < N; ++i) {
      x[i] = static_cast<From>(Map::decode(v[i]));
    }
  }

  /// Around pieces and rows.
  template <class Inner>
  struct RowFront : group::Around<Inner> {
    using Value = U;
    using From = typename Inner::Value;
    static constexpr bool kHasRows = Inner::kHasRows;

    __device__ __forceinline__ RowFront(const Args& /*args*/, const Inner& front)
        : group::Around<Inner>(front) {}

    template <unsigned N, class M>
    __device__ __forceinline__ void take(const M& map, const uint4* staging, U (&v)[N]) const {
      From x[N];
      this->inner.template take<N>(map, staging, x);
      encodeAll(x, v);
    }
    template <unsigned N, class M>
    __device__ __forceinline__ void put(const M& map, uint4* staging, U (&v)[N]) const {
      From x[N];
      decodeAll(v, x);
      this->inner.template put<N>(map, staging, x);
    }
    template <unsigned P>
    __device__ __forceinline__ void piece(std::uint64_t at, unsigned n, U (&v)[P]) const {
      From x[P];
      this->inner.piece(at, n, x);
      encodeAll(x, v);  // 0 stays 0
    }
    template <unsigned P>
    __device__ __forceinline__ void putPiece(std::uint64_t at, unsigned n, const U (&v)[P]) const {
      From x[P];
      decodeAll(v, x);
      this->inner.putPiece(at, n, x);
    }
    template <unsigned N>
    __device__ __forceinline__ void load(std::uint64_t first, uint4* staging, U (&v)[N]) const {
      From x[N];
      this->inner.template load<N>(first, staging, x);
      encodeAll(x, v);
    }
    template <unsigned N>
    __device__ __forceinline__ void store(std::uint64_t first,
                                          std::uint64_t n,
                                          uint4* staging,
                                          U (&v)[N]) const {
      From x[N];
      decodeAll(v, x);
      this->inner.template store<N>(first, n, staging, x);
    }
  };

  /// Around an op that goes along lines.
  template <class Inner>
  struct LineFront {
    using Value = U;
    using From = typename Inner::Value;
    using Line = group::LineWalk<Inner>;
    static constexpr bool kHasRows = true;
    static constexpr bool kBlockWide = Inner::kBlockWide;
    static constexpr bool kCanFetch = false;

    Inner inner;

    __device__ __forceinline__ LineFront(const Args& /*args*/, const Inner& front) : inner(front) {}
    __device__ __forceinline__ std::uint64_t count() const { return inner.count(); }
    __device__ __forceinline__ bool begin(std::uint64_t n) const { return inner.begin(n); }
    __device__ __forceinline__ bool isNeeded() const { return group::isNeeded(inner); }
    __device__ __forceinline__ void finish() const { inner.finish(); }

    __device__ __forceinline__ Line startLine(std::uint64_t first) const { return {inner, first}; }
    template <unsigned P>
    __device__ __forceinline__ void line(Line& state,
                                         std::uint64_t at,
                                         unsigned n,
                                         U (&v)[P]) const {
      From x[P];
      state.next(at, n, x);
      encodeAll(x, v);  // 0 stays 0
    }
    __device__ __forceinline__ U one(std::uint64_t at) const {
      return Map::encode(static_cast<S>(group::oneOf(inner, at)));
    }
    template <unsigned N>
    __device__ __forceinline__ void load(std::uint64_t first, uint4* staging, U (&v)[N]) const {
      group::rowsOfLines<N>(*this, first, staging, v);
    }
    template <unsigned N>
    __device__ __forceinline__ void loadBlock(std::uint64_t first,
                                              uint4* staging,
                                              U (&v)[N]) const {
      From x[N];
      group::rowsOfBlock<N>(inner, first, staging, x);
      encodeAll(x, v);
    }
    template <unsigned N>
    __device__ __forceinline__ void store(std::uint64_t first,
                                          std::uint64_t n,
                                          uint4* staging,
                                          U (&v)[N]) const {
      From x[N];
      decodeAll(v, x);
      inner.template store<N>(first, n, staging, x);
    }
  };

  template <class Inner>
  using Front = std::conditional_t<group::kHasLines<Inner>, LineFront<Inner>, RowFront<Inner>>;
};

}  // namespace fz::signed_map
