#include "fused/interp/stream.h"

#include <algorithm>

namespace fz::interp {

namespace {

constexpr std::uint32_t kLog2BlockCodes = 6;

std::uint32_t log2Ceil(std::uint32_t n) {
  return n <= 1 ? 0 : bits::bitWidth(n - 1);
}

}  // namespace

CodeArray makeCodeArray(const Extents& n) {
  CodeArray array;
  array.n = n;
  if (n[0] == 0 || n[1] == 0 || n[2] == 0) {
    return array;
  }
  // A cube where there is room for one; where the array is narrow, what is left over goes to x,
  // then to y, and in the end to z, which may be padded.
  const std::uint32_t z = std::min(2u, log2Ceil(n[2]));
  const std::uint32_t y = std::min(n[2] > 1 ? 2u : 3u, log2Ceil(n[1]));
  array.log2[0] = std::min(log2Ceil(n[0]), kLog2BlockCodes - y - z);
  array.log2[1] = std::min(log2Ceil(n[1]), kLog2BlockCodes - array.log2[0] - z);
  array.log2[2] = std::min(log2Ceil(n[2]), kLog2BlockCodes - array.log2[0] - array.log2[1]);
  array.log2[0] = kLog2BlockCodes - array.log2[1] - array.log2[2];
  for (std::size_t axis = 0; axis < 3; ++axis) {
    array.n_blocks[axis] = ((n[axis] - 1) >> array.log2[axis]) + 1;
  }
  return array;
}

std::uint64_t levelCodes(const Extents& n, Axes axes) {
  std::uint64_t n_codes = 0;
  for (const Axes odd : kClasses) {
    n_codes += (odd & ~axes) == 0 ? makeCodeArray(pointsOf(n, axes, odd)).codes() : 0;
  }
  return n_codes;
}

std::uint64_t stepsCodes(const Steps& steps, const Extents& n) {
  std::uint64_t n_codes = 0;
  Extents left = n;
  for (Steps rest = steps; !rest.levels.empty(); rest = withoutFinest(rest)) {
    const std::span<const Level> group = finest(rest.levels);
    const Axes axes = group.front().axes;
    n_codes += group.front().is_nested ? stepsCodes(innerSteps(group), pointsOf(left, axes, axes))
                                       : levelCodes(left, axes);
    left = halved(left, axes);
  }
  return n_codes + makeCodeArray(left).codes();
}

}  // namespace fz::interp
