#pragma once

// An op that works value by value, from a map alone. Device code only; must compile with NVRTC.
//
//   struct Map {                      // plain data, what the host sends: GroupArgs::add(Map{...})
//     To encode(From value) const;    // may be static
//     From decode(To code) const;
//   };
//
// From and To have the same size. ValueMap<From, To, Map> stands in a group wherever a MapOp may.

#include <type_traits>

#include "backends/cuda/group/lines.cuh"

namespace fz::group {

/// The same bits as another type: stages may name the type of a value differently.
template <class To, class From>
__device__ __forceinline__ To sameBits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

template <class From, class To, class Map>
struct ValueMap {
  static_assert(sizeof(From) == sizeof(To));
  using Args = Map;

  template <class In, unsigned N>
  static __device__ __forceinline__ void encodeAll(const Map& map, const In (&x)[N], To (&v)[N]) {
#pragma unroll
    for (unsigned i = 0; i < N; ++i) {
      v[i] = map.encode(sameBits<From>(x[i]));
    }
  }
  /// The first n of them; To{} for the others, as a front promises.
  template <class In, unsigned N>
  static __device__ __forceinline__ void encodeFirst(const Map& map,
                                                     const In (&x)[N],
                                                     unsigned n,
                                                     To (&v)[N]) {
#pragma unroll
    for (unsigned i = 0; i < N; ++i) {
      v[i] = i < n ? map.encode(sameBits<From>(x[i])) : To{};
    }
  }
  /// Those of a warp's rows that begin at `first`, of n_values in all.
  template <class In, unsigned N>
  static __device__ __forceinline__ void encodeRow(
      const Map& map, const In (&x)[N], std::uint64_t first, std::uint64_t n_values, To (&v)[N]) {
    if (first + cuda::kWarp * N <= n_values) {
      encodeAll(map, x, v);
    } else {
      encodeFirst(map, x, valuesFrom(first + cuda::laneId() * N, n_values), v);
    }
  }
  template <class In, unsigned N>
  static __device__ __forceinline__ void decodeAll(const Map& map, const To (&v)[N], In (&x)[N]) {
#pragma unroll
    for (unsigned i = 0; i < N; ++i) {
      x[i] = sameBits<In>(map.decode(v[i]));
    }
  }

  /// Around pieces and rows.
  template <class Inner>
  struct RowFront : Around<Inner> {
    using Value = To;
    using In = typename Inner::Value;
    static constexpr bool kHasRows = Inner::kHasRows;

    Map values;

    __device__ __forceinline__ RowFront(const Args& args, const Inner& front)
        : Around<Inner>(front), values(args) {}

    template <unsigned N, class M>
    __device__ __forceinline__ void take(const M& map, const uint4* staging, To (&v)[N]) const {
      In x[N];
      this->inner.template take<N>(map, staging, x);
      encodeAll(values, x, v);
    }
    template <unsigned N, class M>
    __device__ __forceinline__ void put(const M& map, uint4* staging, To (&v)[N]) const {
      In x[N];
      decodeAll(values, v, x);
      this->inner.template put<N>(map, staging, x);
    }
    template <unsigned P>
    __device__ __forceinline__ void piece(std::uint64_t at, unsigned n, To (&v)[P]) const {
      In x[P];
      this->inner.piece(at, n, x);
      encodeFirst(values, x, n, v);
    }
    template <unsigned P>
    __device__ __forceinline__ void putPiece(std::uint64_t at, unsigned n, const To (&v)[P]) const {
      In x[P];
      decodeAll(values, v, x);
      this->inner.putPiece(at, n, x);
    }
    template <unsigned N>
    __device__ __forceinline__ void load(std::uint64_t first, uint4* staging, To (&v)[N]) const {
      In x[N];
      this->inner.template load<N>(first, staging, x);
      encodeRow(values, x, first, this->inner.count(), v);
    }
    template <unsigned N>
    __device__ __forceinline__ void store(std::uint64_t first,
                                          std::uint64_t n,
                                          uint4* staging,
                                          To (&v)[N]) const {
      In x[N];
      decodeAll(values, v, x);
      this->inner.template store<N>(first, n, staging, x);
    }
  };

  /// Around an op that goes along lines.
  template <class Inner>
  struct LineFront {
    using Value = To;
    using In = typename Inner::Value;
    using Line = LineWalk<Inner>;
    static constexpr bool kHasRows = true;
    static constexpr bool kBlockWide = Inner::kBlockWide;
    static constexpr bool kCanFetch = false;

    Inner inner;
    Map values;

    __device__ __forceinline__ LineFront(const Args& args, const Inner& front)
        : inner(front), values(args) {}
    __device__ __forceinline__ std::uint64_t count() const { return inner.count(); }
    __device__ __forceinline__ bool begin(std::uint64_t n) const { return inner.begin(n); }
    __device__ __forceinline__ bool isNeeded() const { return group::isNeeded(inner); }
    __device__ __forceinline__ void finish() const { inner.finish(); }

    __device__ __forceinline__ Line startLine(std::uint64_t first) const { return {inner, first}; }
    template <unsigned P>
    __device__ __forceinline__ void line(Line& state,
                                         std::uint64_t at,
                                         unsigned n,
                                         To (&v)[P]) const {
      In x[P];
      state.next(at, n, x);
      encodeFirst(values, x, n, v);
    }
    __device__ __forceinline__ To one(std::uint64_t at) const {
      return values.encode(sameBits<From>(group::oneOf(inner, at)));
    }
    template <unsigned N>
    __device__ __forceinline__ void load(std::uint64_t first, uint4* staging, To (&v)[N]) const {
      rowsOfLines<N>(*this, first, staging, v);
    }
    template <unsigned N>
    __device__ __forceinline__ void loadBlock(std::uint64_t first,
                                              uint4* staging,
                                              To (&v)[N]) const {
      In x[N];
      rowsOfBlock<N>(inner, first, staging, x);
      encodeRow(values, x, first, inner.count(), v);
    }
    template <unsigned N>
    __device__ __forceinline__ void store(std::uint64_t first,
                                          std::uint64_t n,
                                          uint4* staging,
                                          To (&v)[N]) const {
      In x[N];
      decodeAll(values, v, x);
      inner.template store<N>(first, n, staging, x);
    }
  };

  template <class Inner>
  using Front = std::conditional_t<kHasLines<Inner>, LineFront<Inner>, RowFront<Inner>>;
};

}  // namespace fz::group
