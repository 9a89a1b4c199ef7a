#pragma once

#include <cstdint>

namespace fz::bitshuffle {

/// Args of BitshuffleOp.
struct BitshuffleArgs {
  std::uint32_t block_bytes;  ///< divides the coder's chunk
};

}  // namespace fz::bitshuffle
