#pragma once

#include <cstdint>

/// Work per thread block; none of these numbers is part of the format.
namespace fz::mask {

/// Values that a thread block looks at together, in both directions.
constexpr std::uint32_t kTileValues = 4096;
constexpr unsigned kTileThreads = 256;
/// Bricks that a warp codes at a time, a thread each; more have more ways to wait for each other.
constexpr unsigned kLaneBricks = 8;
/// Warps of a block that encodes the layers that tell patterns apart, a brick each.
constexpr unsigned kBrickWarps = 2;
/// Warps of a block that decodes the layers of a brick that tell patterns apart.
constexpr unsigned kIndexWarps = 8;
/// One block that looks at everything.
constexpr unsigned kPlanThreads = 1024;
/// Blocks for each multiprocessor, of kernels that usually have nothing to do.
constexpr unsigned kRareBlocks = 4;

}  // namespace fz::mask
