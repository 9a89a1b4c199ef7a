#pragma once

#include <cstdint>

/// Work per thread block; none of these numbers is part of the format.
namespace fz::mask {

/// Values that a thread block looks at together, in both directions.
constexpr std::uint32_t kTileValues = 4096;
constexpr unsigned kTileThreads = 256;
/// Threads of a block that codes bricks of the first layer: enough for the bricks of two groups
/// that are not of one kind, and few enough that most fields need no second round of blocks.
constexpr unsigned kBrickThreads = 64;
/// Rows of a block that takes samples, a thread each.
constexpr unsigned kSampleThreads = 128;
/// A block that codes or places what only some masks have.
constexpr unsigned kOtherThreads = 128;
/// Warps of a block that decodes the layers of a brick that tell patterns apart.
constexpr unsigned kIndexWarps = 8;
/// Blocks for each multiprocessor, of kernels that usually have nothing to do.
constexpr unsigned kRareBlocks = 4;

}  // namespace fz::mask
