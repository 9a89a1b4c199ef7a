#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fused/interp/cpu/plan_search.h"

/// The choice of axes for a plan of Lorenzo alone, where all values have a fixed point: by what
/// blocks of codes cost on parts of a field. Any backend may add the costs up.
namespace fz::interp {

/// Parts of a field that are looked at, all of the same extents.
struct FieldParts {
  Extents n = {};
  std::vector<std::array<std::size_t, 3>> first;
};
/// Three parts of about n_values each: the middle one, then those next to the ends; with fewer
/// values than that the whole field.
FieldParts partsOf(const Extents& n, std::size_t n_values);
/// Those by which axes are chosen.
FieldParts lorenzoParts(const Extents& n);

/// By set of axes.
using EndCosts = std::array<std::uint64_t, 8>;
/// The plan whose blocks cost least in the parts of a field of n points.
Tuned cheapestLorenzo(const Extents& n, const FieldParts& parts, const EndCosts& costs);

}  // namespace fz::interp
