#pragma once

#include <cstddef>
#include <cstdint>

#include "fused/interp/cpu/args.h"
#include "fused/interp/cpu/search_crew.h"

/// Nested levels in a search: the odd points along one axis, as a field of its own.
namespace fz::interp {

/// The place of the only axis of a set.
std::size_t axisOf(Axes one);
/// Of a level along one axis, without source and result.
NestedArgs nestedArgs(const LevelStep& step);

/// The odd points along one axis of a lattice, or groups of neighbours, spread evenly.
struct OddPart {
  std::size_t axis = 0;
  Extents n = {};
  std::uint32_t group = 0;
  std::uint32_t n_all = 0;  ///< along the axis

  std::uint32_t firstOf(std::uint32_t i) const {
    const std::uint64_t n_groups = n[axis] / group;
    const std::uint64_t n_places = n_all / group;
    return static_cast<std::uint32_t>((2 * i + 1) * n_places / (2 * n_groups)) * group;
  }
};
/// About n_values of them, in whole blocks; all where that is not much more.
OddPart oddPart(const Extents& n, Axes axes, std::size_t n_values);

/// How far a part of the odd points is from its prediction, in the worker's memory.
std::int32_t* differencesOf(const LevelStep& step,
                            const Source& source,
                            const OddPart& part,
                            Worker& worker);

}  // namespace fz::interp
