#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "quantizers/quantizer/quantizer_cpu.h"

/// What the parts of the stage on the CPU share.
namespace fz::quantizer {

inline std::size_t tileCount(std::size_t n) {
  return bits::ceilDiv(n, kTileValues);
}
inline std::size_t tileLength(std::size_t tile, std::size_t n) {
  return std::min(kTileValues, n - tile * kTileValues);
}

/// Calls f(index) for every set bit of the masks of n values, in order.
template <class F>
void forEachRefused(const std::uint64_t* masks, std::size_t n, F f) {
  for (std::size_t at = 0; at < n; at += kMaskValues) {
    for (std::uint64_t mask = masks[at / kMaskValues]; mask != 0; mask &= mask - 1) {
      f(at + static_cast<std::size_t>(__builtin_ctzll(mask)));
    }
  }
}

}  // namespace fz::quantizer
