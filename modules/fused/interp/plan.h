#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fused/interp/codec.h"

/// Plans: in which steps a field is predicted.
namespace fz::interp {

/// Points of a lattice, x fastest.
using Extents = std::array<std::uint32_t, 3>;

/// A set of axes: bit 0 is x, bit 1 is y, bit 2 is z.
using Axes = std::uint8_t;
inline constexpr Axes kX = 1;
inline constexpr Axes kY = 2;
inline constexpr Axes kZ = 4;
inline constexpr Axes kXyz = 7;
FZ_HD bool has(Axes axes, std::size_t axis) {
  return (axes >> axis & 1) != 0;
}

/// The pairs of axes, as weight sets are ordered.
inline constexpr std::array<Axes, 3> kPairs = {kX | kY, kX | kZ, kY | kZ};

/// One level: halves the stride of some axes.
struct Level {
  Axes axes = 0;
  std::array<Kernel, 3> kernels = {Kernel::kCubic, Kernel::kCubic, Kernel::kCubic};
  std::array<std::uint8_t, 3> pair_sets = {};  ///< of xy, xz and yz: place in kPairSets
  std::uint8_t cube_set = 0;                   ///< of xyz: place in kCubeSets
  /// Not the odd planes of the one axis are coded, but how far they are from their prediction, as
  /// a field of its own: by the n_inner levels that come next in the plan.
  bool is_nested = false;
  std::uint8_t n_inner = 0;
  Axes inner_lorenzo = 0;

  bool operator==(const Level&) const = default;
};

/// Levels from coarse to fine, with what codes the lattice below the coarsest: Lorenzo along some
/// axes.
struct Steps {
  std::span<const Level> levels;  ///< of a nested one, its inner levels follow it
  Axes lorenzo = 0;
};

struct Plan {
  static constexpr std::size_t kMaxLevels = 80;

  bool has_alpha = false;  ///< smaller bins on coarse lattices
  Axes lorenzo = 0;
  std::uint8_t n_levels = 0;  ///< inner ones included
  std::array<Level, kMaxLevels> levels = {};

  Steps steps() const { return {std::span(levels).first(n_levels), lorenzo}; }
  /// False: there is no room.
  bool add(const Level& level);
  bool operator==(const Plan& other) const;
};

/// How many levels there are, inner ones not counted.
std::size_t countOuter(std::span<const Level> levels);
/// The finest level of the steps, with its inner ones; none must be empty.
std::span<const Level> finest(std::span<const Level> levels);
/// The steps without the finest level.
inline Steps withoutFinest(const Steps& steps) {
  return {steps.levels.first(steps.levels.size() - finest(steps.levels).size()), steps.lorenzo};
}
/// What codes the differences of a nested level, which stands first in `levels`.
inline Steps innerSteps(std::span<const Level> levels) {
  return {levels.subspan(1), levels.front().inner_lorenzo};
}
inline std::uint32_t countAxes(Axes axes) {
  return bits::popCount(axes);
}

/// Axes of more than one point.
Axes activeAxes(const Extents& n);
/// The lattice of even points along some axes, and that of the odd ones along `odd` and the even
/// ones along the rest of `axes`.
Extents halved(const Extents& n, Axes axes);
Extents pointsOf(const Extents& n, Axes axes, Axes odd);

/// Levels along all axes while the lattice has more than one point: strides up to 16 in three
/// dimensions, 32 in two and 256 in one.
Plan isoPlan(const Extents& n);
/// Lorenzo along all axes, no levels.
Plan lorenzoPlan(const Extents& n);
/// The plan without what the extents do not allow: axes of one point, levels without axes.
Plan fittedPlan(const Plan& plan, const Extents& n);

/// Words, from coarse to fine: "alpha" (smaller bins on coarse lattices); "lorenzo" (along all
/// axes), "lorenzo:xy" or "lorenzo:none"; then levels: axes, kernels (l, c or n for each axis),
/// weight sets (a digit for each pair of axes, and one for xyz), as "xyz:ccc:0000", "xy:cl" or "z".
/// A nested level has its own plan in parentheses: "Nz:c(lorenzo:xy xy xy)". Throws
/// InvalidArgument.
Plan parsePlan(std::string_view text);
std::string planText(const Plan& plan);

}  // namespace fz::interp
