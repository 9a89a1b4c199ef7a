#pragma once

// Signed integers to unsigned ones of the same width, value by value: Zigzag and Negabinary in a
// fused group. Device code only; must compile with NVRTC.

#include <type_traits>

#include "backends/cuda/group/value_map.cuh"
#include "transforms/signed_map/codec.h"

namespace fz::signed_map {

/// Map is one of codec.h.
template <class S, class Map>
using SignedMapOp = group::ValueMap<S, std::make_unsigned_t<S>, Map>;

}  // namespace fz::signed_map
