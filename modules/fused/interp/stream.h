#pragma once

#include <array>
#include <cstdint>

#include "fused/interp/plan.h"

/// Where codes stand in the port "codes". SPEC: order of codes.
namespace fz::interp {

/// Classes of new points of a level: the axes along which they are odd, in the order of the stream.
inline constexpr std::array<Axes, 7> kClasses = {kX, kY, kZ, kX | kY, kX | kZ, kY | kZ, kXyz};

/// An array of codes, in blocks of 64.
struct CodeArray {
  Extents n = {};                          ///< points
  std::array<std::uint32_t, 3> log2 = {};  ///< extents of a block
  std::array<std::uint32_t, 3> n_blocks = {};

  std::uint64_t codes() const {
    return std::uint64_t{kBlockCodes} * n_blocks[0] * n_blocks[1] * n_blocks[2];
  }
  /// Place of the first code of a row; the next blocks of the row are kBlockCodes further on each.
  FZ_HD std::uint64_t rowStart(std::uint32_t y, std::uint32_t z) const {
    const std::uint64_t block =
        (std::uint64_t{z >> log2[2]} * n_blocks[1] + (y >> log2[1])) * n_blocks[0];
    const std::uint32_t row =
        ((z & ((1u << log2[2]) - 1)) << log2[1]) + (y & ((1u << log2[1]) - 1));
    return block * kBlockCodes + (row << log2[0]);
  }
};
CodeArray makeCodeArray(const Extents& n);

/// Codes of a level's classes (no nested one), and of all steps, on a lattice of n points.
std::uint64_t levelCodes(const Extents& n, Axes axes);
std::uint64_t stepsCodes(const Steps& steps, const Extents& n);

}  // namespace fz::interp
