#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "fused/interp/codec.h"
#include "fused/interp/plan.h"

/// A plan at work: on which lattice it is, and what it goes on with. The same for all backends.
namespace fz::interp {

/// Where a lattice lies in its field.
struct Places {
  std::uint64_t first = 0;
  std::array<std::uint64_t, 3> step = {};

  std::uint64_t at(std::uint64_t x, std::uint64_t y, std::uint64_t z) const {
    return first + x * step[0] + y * step[1] + z * step[2];
  }
};

inline Places evenPlaces(const Places& places, Axes axes) {
  Places even = places;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    even.step[axis] *= has(axes, axis) ? 2 : 1;
  }
  return even;
}

/// Levels and Lorenzo end of a plan on a lattice of n.
struct PlanStep {
  Steps steps;
  Extents n = {};
  Places places;
  std::uint32_t sub_bits = kMaxSubBits;
  bool has_alpha = false;
  std::uint32_t n_axes = 1;    ///< of the whole field: of more than one point
  std::uint32_t halvings = 0;  ///< that were done before; of a nested lattice
  bool is_nested = false;

  Bin bin() const { return makeBin(binUnits(halvings, n_axes, sub_bits, has_alpha)); }
};

inline PlanStep wholePlan(const Plan& plan, const Extents& n, std::uint32_t sub_bits) {
  PlanStep whole;
  whole.steps = plan.steps();
  whole.n = n;
  whole.places = {0, {1, n[0], std::uint64_t{n[0]} * n[1]}};
  whole.sub_bits = sub_bits;
  whole.has_alpha = plan.has_alpha;
  whole.n_axes = std::max(1u, countAxes(activeAxes(n)));
  return whole;
}

/// The plan without its finest level, on the lattice below it.
inline PlanStep coarser(const PlanStep& plan) {
  const Axes axes = finest(plan.steps.levels).front().axes;
  PlanStep below = plan;
  below.steps = withoutFinest(plan.steps);
  below.n = halved(plan.n, axes);
  below.places = evenPlaces(plan.places, axes);
  below.halvings += countAxes(axes);
  return below;
}

/// The plan that codes the differences of a nested level, the finest one.
inline PlanStep inner(const PlanStep& plan) {
  const std::span<const Level> group = finest(plan.steps.levels);
  const Axes axes = group.front().axes;
  PlanStep inside = plan;
  inside.steps = innerSteps(group);
  inside.n = pointsOf(plan.n, axes, axes);
  inside.places = evenPlaces(plan.places, axes);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    inside.places.first += has(axes, axis) ? plan.places.step[axis] : 0;
  }
  inside.is_nested = true;
  return inside;
}

}  // namespace fz::interp
