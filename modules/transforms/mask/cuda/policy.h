#pragma once

#include <cstdint>

/// Work per thread block; none of these numbers is part of the format.
namespace fz::mask {

/// Values that a thread block looks at together, in both directions.
constexpr std::uint32_t kTileValues = 4096;
constexpr unsigned kTileThreads = 256;
/// A block that codes bricks of the first layer, a thread each: its rows in all, and its threads.
/// Most bricks are of one kind, so fewer threads have more to do than others.
constexpr std::uint32_t kGroupRows = 4096;
constexpr unsigned kGroupThreads = 128;
/// Of these blocks on a multiprocessor, so that most fields need no second round.
constexpr unsigned kGroupBlocks = 8;
/// Warps of a block that decodes the layers of a brick that tell patterns apart.
constexpr unsigned kIndexWarps = 8;
/// One block that looks at everything.
constexpr unsigned kPlanThreads = 1024;
/// Blocks for each multiprocessor, of kernels that usually have nothing to do.
constexpr unsigned kRareBlocks = 4;

}  // namespace fz::mask
