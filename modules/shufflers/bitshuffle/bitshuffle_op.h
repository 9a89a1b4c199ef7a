#pragma once

#include <cstdint>

namespace fz::bitshuffle {

/// Bytes that a warp has: 64 per thread.
inline constexpr std::uint32_t kWarpBytes = 32 * 64;

/// Args of BitshuffleOp.
struct BitshuffleArgs {
  std::uint32_t block_bytes;  ///< divides the coder's chunk
};

}  // namespace fz::bitshuffle
