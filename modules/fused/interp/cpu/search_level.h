#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fused/interp/cpu/search_crew.h"

/// The parts of a search for a plan that know one level at a time: what its codes cost, and which
/// kernels and weights it should have.
namespace fz::interp {

inline std::size_t countOf(const Extents& n) {
  return std::size_t{n[0]} * n[1] * n[2];
}

/// Values as a lattice, x fastest and without room between rows.
inline Lattice latticeOf(std::int32_t* values, const Extents& n) {
  return {values, n, n[0], std::size_t{n[0]} * n[1]};
}

/// What the steps of a search have in common.
struct SearchSettings {
  std::uint32_t sub_bits = 0;
  std::uint32_t n_axes = 1;  ///< of the field
  bool has_gaps = false;

  Bin bin(std::uint32_t halvings, bool has_alpha = false) const {
    return makeBin(binUnits(halvings, n_axes, sub_bits, has_alpha));
  }
};

/// How much of a lattice is enough for a first look.
OneIn firstLook(const Extents& n);

/// What steps cost on the whole of a lattice, as far as a part of it tells.
std::array<Cost, 8> costsOfEnds(const EndProbe& probe, OneIn one_in, Worker& worker);
std::array<Cost, kKernels> costsOfKernels(const KernelProbe& probe, OneIn one_in, Worker& worker);

/// A level with its free choices made by trying: kernels by what the points odd along one axis
/// cost, then the weights of pairs, then those of the rest. Each depends only on those before.
/// Sources hold fixed point.
class LevelTuner {
 public:
  explicit LevelTuner(Worker& worker) : worker_(worker) {}

  /// Sets kernels of `step.level`, and its weights by a part of the lattice and few of the sets
  /// there are. Returns what the whole may cost. Stops, with weights of no use, where that cannot
  /// be less than `limit`.
  Cost choose(LevelStep& step, const Source& source, Cost limit);
  /// Sets kernels alone. Returns what the points odd along one axis cost.
  Cost chooseKernels(LevelStep& step, const Source& source, OneIn one_in);
  /// Sets kernels and weights, with all sets that may be best.
  void refine(LevelStep& step, const Source& source);
  /// The cost of a whole level; `fine` gets the reconstruction. Its codes stay with the worker.
  Cost run(const LevelStep& step, const Source& source, const Lattice& fine);
  std::uint64_t codes() const { return n_codes_; }

 private:
  void layOut(const Extents& n, Axes axes);
  void code(const LevelStep& step, const Source& source, const Lattice& fine, Worker& worker) const;
  Cost classCost(Axes odd, const Worker& worker) const {
    return worker.codes.cost(starts_[odd], counts_[odd]);
  }
  /// The cost of all other points.
  Cost chooseFew(LevelStep& step, const Source& source, Cost limit);
  void choosePairs(LevelStep& step, const Source& source);
  void chooseCube(LevelStep& step, const Source& source);

  Worker& worker_;
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

/// A copy of a lattice with ghosts along the axes of a level above it, in the worker's memory.
Lattice withGhosts(
    Worker& worker, const std::int32_t* values, const Extents& n, Axes axes, const Extents& n_fine);

}  // namespace fz::interp
