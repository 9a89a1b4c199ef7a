#pragma once

#include <cstdint>

namespace fz::lorenzo {

/// Differences inside blocks, as part of a fused group.
struct alignas(16) BlockArgs {
  std::uint32_t block_values;  ///< a power of two up to 1024
};

}  // namespace fz::lorenzo
