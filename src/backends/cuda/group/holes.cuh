#pragma once

// Places of the field where an op next to it has put other values in their stead. Who comes back to
// single values behind the group's kernel looks here. Device code only; must compile with NVRTC.

#include "backends/cuda/device.cuh"

namespace fz::group {

/// The field itself, and a bit for each value that stands for another one; words may be null.
struct Holes {
  const std::uint8_t* field;
  const std::uint32_t* words;
  std::uint32_t unit_values;  ///< encoding: values that are filled from each other

  __device__ __forceinline__ bool isHole(std::uint64_t at) const {
    return words != nullptr && (words[at / 32] >> (at % 32) & 1u) != 0;
  }
};

/// What a front says of holes; one without has none.
template <class Front>
__device__ __forceinline__ Holes holesOf(const Front& front) {
  if constexpr (requires { front.holes(); }) {
    return front.holes();
  } else {
    return {nullptr, nullptr, 0};
  }
}

/// Value `at` as the op has filled it: the value before in its unit, else the first one that is
/// none, else 0.
template <class T>
__device__ T heldValue(const Holes& holes, std::uint64_t at, std::uint64_t n_values) {
  const auto* values = reinterpret_cast<const T*>(holes.field);
  if (!holes.isHole(at)) {
    return values[at];
  }
  const std::uint64_t begin = at / holes.unit_values * holes.unit_values;
  for (std::uint64_t i = at; i > begin; --i) {
    if (!holes.isHole(i - 1)) {
      return values[i - 1];
    }
  }
  for (std::uint64_t i = at + 1; i < begin + holes.unit_values && i < n_values; ++i) {
    if (!holes.isHole(i)) {
      return values[i];
    }
  }
  return T{0};
}

}  // namespace fz::group
