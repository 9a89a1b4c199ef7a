#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "fused/interp/cpu/search_level.h"

/// The search for a plan: a dynamic programme over the strides of lattices. What a lattice costs is
/// the least of what its Lorenzo end costs and of every level on top of a coarser lattice, which
/// was solved before and left its reconstruction; so every level is judged in closed loop.
namespace fz::interp {

/// A way to code a lattice: by a level on top of another one.
struct Way {
  Cost cost = 0;
  std::optional<Level> level;  ///< on top of the lattice of `below`; none: Lorenzo alone
  std::vector<Level> inner;    ///< of a nested level
  std::uint32_t below = 0;
};

/// A lattice, and the best way to it that was found.
struct Solved : Way {
  Extents n = {};
  Values x;  ///< fixed point
  Values r;  ///< what decoding it gives
  Axes lorenzo = 0;
};

/// All of a plan but alpha.
struct FoundPlan {
  std::vector<Level> levels;  ///< from coarse to fine
  Axes lorenzo = 0;
};

/// Solves a lattice and all coarser ones that it needs.
class Programme {
 public:
  /// Levels are along some of `axes`; `halvings` of the field's axes were made before.
  Programme(const SearchContext& context,
            CodeBuffer& codes,
            Axes axes,
            std::uint32_t halvings,
            bool is_nested)
      : context_(context), codes_(codes), axes_(axes), halvings_(halvings), is_nested_(is_nested) {}

  /// Solutions that cost `limit` or more may not be the best: nobody wants them.
  const Solved& solve(Values x, const Extents& n, Cost limit);
  FoundPlan found() const;
  /// The best plan with levels, where Lorenzo alone is better, but not by much.
  std::optional<FoundPlan> almost() const;

 private:
  using Strides = std::array<std::uint32_t, 3>;

  static std::uint32_t idOf(const Strides& s) { return (s[0] * 16 + s[1]) * 16 + s[2]; }
  FoundPlan planOf(const Way& way) const;  // a way with a level
  /// Keeps a way to a lattice if it is the best so far; says whether.
  bool keep(Solved& node, Way way);
  bool canHalve(const Strides& s, const Extents& n, Axes axes) const;
  Source sourceOfNode(Solved& node) const;
  /// The lattice below a level, solved.
  std::uint32_t below(const Strides& s, Axes axes, Solved& node);
  void solveAt(const Strides& s);
  void tryLorenzo(Solved& node, std::uint32_t h);
  /// Outside nested levels what stands in gaps depends on the axes, so each set must be tried.
  void tryLorenzoWithGaps(Solved& node, std::uint32_t h);
  void tryLevel(const Strides& s, Solved& node, Axes axes, std::uint32_t h);
  void tryNested(const Strides& s, Solved& node, std::size_t axis, std::uint32_t h);

  const SearchContext& context_;
  CodeBuffer& codes_;
  Axes axes_;
  std::uint32_t halvings_;
  bool is_nested_;
  Cost limit_ = 0;
  std::map<std::uint32_t, Solved> solved_;
  Way almost_;  // to the first lattice
};

}  // namespace fz::interp
