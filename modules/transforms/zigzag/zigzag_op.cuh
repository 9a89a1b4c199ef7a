#pragma once

// Zigzag in a fused group. Device code only; must compile with NVRTC.

#include "backends/cuda/group/signed_map_op.cuh"
#include "shared/bits.h"

namespace fz::zigzag {

struct Map {
  template <class S>
  static __device__ __forceinline__ auto encode(S value) {
    return bits::zigzag(value);
  }
  template <class U>
  static __device__ __forceinline__ auto decode(U code) {
    return bits::unzigzag(code);
  }
};

template <class S>
using MapOp = group::SignedMapOp<S, Map>;

}  // namespace fz::zigzag
