#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fused/interp/cpu/grid.h"

/// What steps would cost, by one pass over a lattice and without making their codes: a search asks
/// this of many more steps than it takes. All costs are those of blockCost.
namespace fz::interp {

/// Working memory, kept from probe to probe.
struct ProbeMemory {
  std::vector<std::uint32_t> sums;
  std::vector<std::int32_t> values;
};

/// How much of a lattice is looked at: one in so many rows of blocks, spread evenly. Costs are
/// those of the whole, as far as they tell.
using OneIn = std::uint32_t;

/// A Lorenzo end of a lattice of fixed point, x fastest and without room between rows.
struct EndProbe {
  std::span<const std::int32_t> x;
  Extents n = {};
  Bin bin;
  /// What kNoValue counts as: 0, as it does inside nested levels, or about what is before it.
  bool fills_gaps = false;
};
/// By set of axes.
std::array<std::uint64_t, 8> probeEnds(const EndProbe& probe, OneIn one_in, ProbeMemory& memory);

/// By kernel: the points of a level that are odd along one axis only. `source` holds fixed point.
std::array<std::uint64_t, kKernels> probeKernels(const LevelStep& step,
                                                 const Source& source,
                                                 std::size_t axis,
                                                 OneIn one_in,
                                                 ProbeMemory& memory);

}  // namespace fz::interp
