#pragma once

// Lines: how a warp walks over the values of a front, P neighbouring values per lane at a time, in
// rising order and without gaps. A front that looks at the value on the left has a type Line, what
// the warp carries from one step to the next:
//
//   startLine(first) makes it; `first` is the index of the walk's first value, one for the warp.
//   line(state, at, n, x): the P values from index `at` on, of which n exist, for this lane; lane l
//     is at P * l behind lane 0. All lanes call it together.
//   one(at): a single value once more, by any thread.
//
// A front may also have fillLines<N>(first, staging): all 32 * N values at once, in an order of its
// own, where it returns true. kLineValues, kMaxRawBytes and kRollsLines say how much of a walk is
// done at a time.
//
// Fronts of pieces need no state. Device code only; must compile with NVRTC.

#include "backends/cuda/group/front.cuh"

namespace fz::group {

template <class Front>
inline constexpr bool kHasLines = requires {
  typename Front::Line;
};

/// Whether a front, or one inside it, asks for 64 registers per thread where a coder has a choice.
template <class Front>
inline constexpr bool kNeedsRegisters = [] {
  if constexpr (requires { Front::kManyRegisters; }) {
    return Front::kManyRegisters;
  } else {
    return false;
  }
}();

/// Whether the pass that runs is wanted (see GroupRun::pass).
template <class Front>
__device__ __forceinline__ bool isNeeded(const Front& front) {
  if constexpr (requires { front.isNeeded(); }) {
    return front.isNeeded();
  } else {
    return true;
  }
}

/// A warp: n values from `at` on, which all exist, will be read soon and are brought nearer. Fronts
/// that cannot hand it on do without.
template <class T>
__device__ __forceinline__ void prefetch(const Field<T>& field, std::uint64_t at, unsigned n) {
  constexpr unsigned kStep = 64 / sizeof(T);  // what memory hands out at a time
  const T* in = reinterpret_cast<const T*>(field.args.in) + at;
  for (unsigned i = kStep * cuda::laneId(); i < n; i += kStep * cuda::kWarp) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(in + i)));
  }
}
template <class Front>
__device__ __forceinline__ void prefetch(const Front& front, std::uint64_t at, unsigned n) {
  if constexpr (requires { front.prefetch(at, n); }) {
    front.prefetch(at, n);
  }
}

/// A single value of any front, without what its ops would record about it.
template <class Front>
__device__ __forceinline__ typename Front::Value oneOf(const Front& front, std::uint64_t at) {
  if constexpr (requires { front.one(at); }) {
    return front.one(at);
  } else {
    typename Front::Value x[1];
    front.piece(at, 1, x);
    return x[0];
  }
}

/// Pieces that exist as a whole and begin at a multiple of P values.
template <unsigned P, class Front>
__device__ __forceinline__ void wholePiece(const Front& front,
                                           std::uint64_t at,
                                           typename Front::Value (&x)[P]) {
  if constexpr (requires { front.wholePiece(at, x); }) {
    front.wholePiece(at, x);
  } else {
    front.piece(at, P, x);
  }
}
template <unsigned P, class Front>
__device__ __forceinline__ void putWhole(const Front& front,
                                         std::uint64_t at,
                                         const typename Front::Value (&x)[P]) {
  if constexpr (requires { front.putWhole(at, x); }) {
    front.putWhole(at, x);
  } else {
    front.putPiece(at, P, x);
  }
}

/// The same for pieces that are read again as somebody's neighbours, so caches should keep them.
template <unsigned P, class T>
__device__ __forceinline__ void sharedPiece(const Field<T>& field, std::uint64_t at, T (&x)[P]) {
  constexpr unsigned kCount = Vec16<T>::kCount;
  static_assert(P % kCount == 0);
  const auto* in = reinterpret_cast<const uint4*>(reinterpret_cast<const T*>(field.args.in) + at);
#pragma unroll
  for (unsigned i = 0; i < P; i += kCount) {
    Vec16<T> some;
    some.raw = __ldg(in + i / kCount);
#pragma unroll
    for (unsigned k = 0; k < kCount; ++k) {
      x[i + k] = some.v[k];
    }
  }
}
template <unsigned P, class Front>
__device__ __forceinline__ void sharedPiece(const Front& front,
                                            std::uint64_t at,
                                            typename Front::Value (&x)[P]) {
  wholePiece(front, at, x);
}

/// Whether a front's values can be on their way (fetchWhole) before any is made (makeWhole, or
/// lineWhole with the state of a line).
template <class Front, unsigned P>
inline constexpr bool kCanSplit = requires {
  typename Front::template Raw<P>;
};

/// Whether every lane's P values are whole pieces for the front; one that does not say so always
/// has them.
template <unsigned P, class Front>
__device__ __forceinline__ bool hasWholeLines(const Front& front) {
  if constexpr (requires { front.template hasWholeLines<P>(); }) {
    return front.template hasWholeLines<P>();
  } else {
    return true;
  }
}

/// A walk over any front that has pieces or lines.
template <class Front, bool kState = kHasLines<Front>>
struct LineWalk {
  const Front& front;

  __device__ __forceinline__ LineWalk(const Front& f, std::uint64_t /*first*/) : front(f) {}
  template <unsigned P>
  __device__ __forceinline__ void next(std::uint64_t at,
                                       unsigned n,
                                       typename Front::Value (&x)[P]) {
    front.piece(at, n, x);
  }
  template <unsigned P, class Raw>
  __device__ __forceinline__ void make(std::uint64_t at,
                                       const Raw& raw,
                                       typename Front::Value (&x)[P]) {
    front.makeWhole(at, raw, x);
  }
};
template <class Front>
struct LineWalk<Front, true> {
  const Front& front;
  typename Front::Line state;

  __device__ __forceinline__ LineWalk(const Front& f, std::uint64_t first)
      : front(f), state(f.startLine(first)) {}
  template <unsigned P>
  __device__ __forceinline__ void next(std::uint64_t at,
                                       unsigned n,
                                       typename Front::Value (&x)[P]) {
    front.line(state, at, n, x);
  }
  template <unsigned P, class Raw>
  __device__ __forceinline__ void make(std::uint64_t at,
                                       const Raw& raw,
                                       typename Front::Value (&x)[P]) {
    front.lineWhole(state, at, raw, x);
  }
};

}  // namespace fz::group
