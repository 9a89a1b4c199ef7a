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

/// How much of a lattice is looked at: one in so many rows of blocks, spread evenly.
using OneIn = std::uint32_t;

/// Rows of blocks of an array of codes, in their order.
struct BlockRows {
  std::size_t first = 0;
  std::size_t end = 0;
};
inline BlockRows blockRowsOf(const CodeArray& array) {
  return {0, std::size_t{array.n_blocks[1]} * array.n_blocks[2]};
}

/// What was found in some rows of blocks, by way to code them; to be added up.
template <std::size_t kWays>
struct Look {
  std::array<std::uint64_t, kWays> costs = {};
  std::uint64_t n_rows = 0;  ///< of values
};

/// A Lorenzo end of a lattice of fixed point, x fastest and without room between rows.
struct EndProbe {
  std::span<const std::int32_t> x;
  Extents n = {};
  Bin bin;
  /// What kNoValue counts as: 0, as it does inside nested levels, or about what is before it.
  bool fills_gaps = false;
};
/// By set of axes.
Look<8> probeEnds(const EndProbe& probe, OneIn one_in, BlockRows rows, ProbeMemory& memory);

/// By kernel: the points of a level that are odd along one axis only. `source` holds fixed point.
struct KernelProbe {
  const LevelStep& step;
  const Source& source;
  std::size_t axis = 0;

  CodeArray array() const {
    return makeCodeArray(pointsOf(step.n, step.level.axes, static_cast<Axes>(1u << axis)));
  }
};
Look<kKernels> probeKernels(const KernelProbe& probe,
                            OneIn one_in,
                            BlockRows rows,
                            ProbeMemory& memory);

}  // namespace fz::interp
