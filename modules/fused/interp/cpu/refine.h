#pragma once

#include "fused/interp/cpu/search_level.h"

/// The second look at a plan: its levels stay, and get the best of all kernels and weights.
namespace fz::interp {

/// A part of a field as fixed point.
struct Crop {
  Extents n = {};
  std::int32_t* x = nullptr;
};

/// Refines plans on a crop, each level on what those below it reconstruct. Inner levels of nested
/// ones stay as they are.
class Refiner {
 public:
  Refiner(const SearchSettings& settings, Worker& worker) : settings_(settings), worker_(worker) {}

  /// The plan refined, or as it is where the crop is too small for all of its levels. `codes`,
  /// where it is wanted, gets what the crop's codes come to; false: nothing was refined or added.
  bool refine(Plan& plan, const Crop& crop, ClassCost* codes);

 private:
  /// What a lattice is refined by.
  struct Target {
    std::size_t n_levels = 0;  ///< of the plan, from the coarsest on
    Extents n = {};
    std::uint32_t halvings = 0;
    std::int32_t* x = nullptr;
    std::int32_t* r = nullptr;  ///< what the levels reconstruct; null: not wanted
  };

  void refineTo(Plan& plan, const Target& target);
  /// One level that is not nested, on top of a refined lattice.
  void refineLevel(Plan& plan, std::size_t at, const Target& target, const Lattice& below);
  /// Codes all levels as they are.
  void codeAll(const Plan& plan, const Target& target);

  const SearchSettings& settings_;
  Worker& worker_;
  ClassCost* codes_ = nullptr;
};

}  // namespace fz::interp
