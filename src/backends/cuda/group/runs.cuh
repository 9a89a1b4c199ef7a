#pragma once

// Runs: values that a decoder's front takes in an order of its own, wherever in the stream they
// are.
//
// A front with kTakesRuns has decodeRuns(reader) instead of store, called by all threads of a block
// of kRunThreads after begin(). The coder's reader has
//
//   kRunBytes: what a lane reads at a time; the coder's tiles are multiples of it;
//   read(run, exists, words): the bytes from run * kRunBytes on as little-endian words, zeros where
//     `exists` is false. All lanes of a warp call it together, each with a run of its own; runs
//     that neighbour each other are read fastest. What is wrong with the stream there is recorded,
//     and the run is zeros.
//
// Device code only; must compile with NVRTC.

#include "backends/cuda/group/front.cuh"

namespace fz::group {

inline constexpr unsigned kRunThreads = 256;

template <class Front>
inline constexpr bool kTakesRuns = requires {
  Front::kTakesRuns;
};

/// One value, or two or four neighbours from a multiple of that on, which exist.
template <class T, unsigned P>
__device__ __forceinline__ void putFew(const Field<T>& field, std::uint64_t at, const T (&x)[P]) {
  T* out = reinterpret_cast<T*>(field.args.out) + at;
  if constexpr (P == 1) {
    __stcs(out, x[0]);
  } else if constexpr (P == Vec16<T>::kCount) {
    field.putWhole(at, x);
  } else {
    static_assert(P == 2 && sizeof(T) == 4);
    Vec16<T> pair;
    pair.v[0] = x[0];
    pair.v[1] = x[1];
    __stcs(reinterpret_cast<uint2*>(out), make_uint2(pair.raw.x, pair.raw.y));
  }
}
template <class Front, unsigned P>
__device__ __forceinline__ void putFew(const Front& front,
                                       std::uint64_t at,
                                       const typename Front::Value (&x)[P]) {
  front.putPiece(at, P, x);
}

}  // namespace fz::group
