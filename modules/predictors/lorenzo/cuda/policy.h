#pragma once

#include <cstdint>

#include "backends/cuda/launch.h"
#include "shared/bits.h"

namespace fz::lorenzo {

/// Layers that a block of the two-pass decoder goes through. Long slabs cost little memory; short
/// ones give 1.5 blocks per multiprocessor where a layer has few tiles.
inline std::uint64_t slabLayers(std::uint64_t n_layers, std::uint64_t tiles_per_layer) {
  const std::uint64_t n_wanted = std::uint64_t{cuda::multiprocessorCount()} * 3 / 2;
  std::uint64_t n = n_layers;
  while (n > 16 && tiles_per_layer * bits::ceilDiv(n_layers, n) < n_wanted) {
    n = bits::ceilDiv<std::uint64_t>(n, 2);
  }
  return n;
}

}  // namespace fz::lorenzo
