#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fused/interp/cpu/cost.h"
#include "fused/interp/cpu/grid.h"
#include "fused/interp/cpu/measure.h"

/// The parts of a search for a plan that know one level at a time: what its codes cost, and which
/// kernels and weights it should have.
namespace fz::interp {

using Cost = std::uint64_t;  ///< in 1/1024 bit
using Values = std::vector<std::int32_t>;

inline std::size_t countOf(const Extents& n) {
  return std::size_t{n[0]} * n[1] * n[2];
}

inline Lattice latticeOf(Values& values, const Extents& n) {
  return {values.data(), n, n[0], std::size_t{n[0]} * n[1]};
}

/// What the steps of a search have in common.
struct SearchContext {
  const Core& core;
  std::uint32_t sub_bits = 0;
  std::uint32_t n_axes = 1;  ///< of the field
  bool has_alpha = false;
  bool has_gaps = false;

  Bin bin(std::uint32_t halvings) const {
    return makeBin(binUnits(halvings, n_axes, sub_bits, has_alpha));
  }
};

/// Codes of one step, and what parts of them cost.
class CodeBuffer {
 public:
  explicit CodeBuffer(DataType type) : is_short_(type == DataType::INT16) {}

  void* reserve(std::uint64_t n_codes) {
    if (is_short_) {
      short_.resize(std::max<std::size_t>(short_.size(), n_codes));
      return short_.data();
    }
    wide_.resize(std::max<std::size_t>(wide_.size(), n_codes));
    return wide_.data();
  }
  Cost cost(std::uint64_t first, std::uint64_t n) const {
    return is_short_ ? blockCost(std::span(short_).subspan(first, n))
                     : blockCost(std::span(wide_).subspan(first, n));
  }
  void addTo(ClassCost& total, std::uint64_t n) const {
    if (is_short_) {
      total.add(std::span(short_).first(n));
    } else {
      total.add(std::span(wide_).first(n));
    }
  }
  ProbeMemory& probeMemory() { return probe_memory_; }

 private:
  bool is_short_;
  std::vector<std::int16_t> short_;
  std::vector<std::int32_t> wide_;
  ProbeMemory probe_memory_;
};

/// A level with its free choices made by trying: kernels by what the points odd along one axis
/// cost, then the weights of pairs, then those of the rest. Each depends only on those before.
/// Sources hold fixed point.
class LevelTuner {
 public:
  LevelTuner(const SearchContext& context, CodeBuffer& codes) : context_(context), codes_(codes) {}

  /// Sets kernels of `step.level`, and its weights by a part of the lattice and few of the sets
  /// there are. Returns what the whole may cost; exactly that for a level along one axis. Stops,
  /// with weights of no use, where that cannot be less than `limit`.
  Cost choose(LevelStep& step, const Source& source, Cost limit);
  /// Sets kernels alone. Returns what the points odd along one axis cost.
  Cost chooseKernels(LevelStep& step, const Source& source);
  /// Sets kernels and weights, with all sets that may be best.
  void refine(LevelStep& step, const Source& source);
  /// The cost of a whole level; `fine` gets the reconstruction.
  Cost run(const LevelStep& step, const Source& source, const Lattice& fine);

 private:
  void layOut(const Extents& n, Axes axes);
  void code(const LevelStep& step, const Source& source, const Lattice& fine);
  Cost classCost(Axes odd) const { return codes_.cost(starts_[odd], counts_[odd]); }
  /// The cost of all other points.
  Cost chooseFew(LevelStep& step, const Source& source, Cost limit);
  void choosePairs(LevelStep& step, const Source& source);
  void chooseCube(LevelStep& step, const Source& source);

  const SearchContext& context_;
  CodeBuffer& codes_;
  std::array<std::uint64_t, 8> starts_ = {};
  std::array<std::uint64_t, 8> counts_ = {};
  std::uint64_t n_codes_ = 0;
};

/// A slab from the middle of a lattice: what comes before and behind it along its slowest axis
/// stands where the ghosts of a lattice of its own would.
struct Slab {
  std::size_t axis = 0;
  std::uint32_t first = 0;
  Extents n = {};
};
/// Of about n_values, or all where that is not much more.
Slab slabOf(const Extents& n, std::size_t n_values);
Source partOf(const Source& source, const Slab& slab);

/// A copy of a lattice with ghosts along the axes of a level above it, in the core's memory.
Lattice withGhosts(
    const Core& core, const Values& values, const Extents& n, Axes axes, const Extents& n_fine);

}  // namespace fz::interp
