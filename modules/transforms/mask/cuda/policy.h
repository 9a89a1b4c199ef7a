#pragma once

#include <cstdint>

/// Work per thread block; none of these numbers is part of the format.
namespace fz::mask {

/// Values that a thread block looks at together, in both directions.
constexpr std::uint32_t kTileValues = 4096;
constexpr unsigned kTileThreads = 256;
/// Threads of a block that codes or decodes bricks of the first layer: enough for the bricks of two
/// groups that are not of one kind, and few enough that most fields need no second round of blocks.
constexpr unsigned kBrickThreads = 64;
/// Of one that looks which of them are to be coded, and the bricks of each thread.
constexpr unsigned kLookThreads = 256;
constexpr unsigned kLookBricks = 4;
/// The fewest bricks that a block codes where there are enough blocks for all.
constexpr unsigned kLeastCoded = 32;
/// Of one that brings groups to their places, and the groups of each warp: each block waits for
/// those before it, so there are few.
constexpr unsigned kPlaceThreads = 1024;
constexpr unsigned kPlaceGroups = 2;
/// A block that codes or places what only some masks have.
constexpr unsigned kOtherThreads = 128;
/// Warps of a block that decodes the layers of a brick that tell patterns apart.
constexpr unsigned kIndexWarps = 8;
/// Blocks for each multiprocessor, of kernels that usually have nothing to do.
constexpr unsigned kRareBlocks = 4;

}  // namespace fz::mask
