#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fused/interp/cpu/search_level.h"

/// The search for a plan: a dynamic programme over the strides of lattices. What a lattice costs is
/// the least of what its Lorenzo end costs and of every level on top of a coarser lattice, which
/// was solved before and left its reconstruction; so every level is judged in closed loop.
///
/// All ways to a lattice are estimated from a share of it; those that may be the best are coded.
/// Lattices are solved in waves, those that were halved most often first: within a wave none needs
/// another one, so threads share them out, and help each other with what takes long; what is found
/// does not depend on how.
namespace fz::interp {

/// A way to code a lattice: by a level on top of another one, or by Lorenzo alone.
struct Way {
  static constexpr Cost kNone = std::numeric_limits<Cost>::max() / 4;

  Cost cost = kNone;  ///< of the lattice and all that is below it
  Cost slack = 0;     ///< how far that may be off; 0: it is exact
  Axes lorenzo = 0;   ///< without a level
  std::optional<Level> level;
  std::vector<Level> inner;  ///< of a nested level
  std::size_t below = 0;     ///< the lattice under the level

  Cost least() const { return cost - slack; }
  Cost most() const { return cost + slack; }
};

/// All of a plan but alpha.
struct FoundPlan {
  std::vector<Level> levels;  ///< from coarse to fine
  Axes lorenzo = 0;
  Cost cost = 0;  ///< about
};

/// Ways that may belong to a good plan, by how often a lattice was halved along each axis; lattices
/// that nobody looked at have all ways.
class OpenWays {
 public:
  using Strides = std::array<std::uint32_t, 3>;

  bool has(const Strides& s, std::size_t way) const {
    return idOf(s) >= ways_.size() || (ways_[idOf(s)] >> way & 1) != 0;
  }
  void set(const Strides& s, std::uint8_t ways) {
    ways_.resize(std::max(ways_.size(), idOf(s) + 1), kAll);
    ways_[idOf(s)] = ways;
  }
  static std::size_t idOf(const Strides& s) { return (s[0] * 9 + s[1]) * 9 + s[2]; }

 private:
  static constexpr std::uint8_t kAll = 255;

  std::vector<std::uint8_t> ways_;
};

/// Solves a lattice and all coarser ones that it needs.
class Programme {
 public:
  /// Levels are along some of `axes`; `halvings` of the field's axes were made before.
  Programme(Worker& home,
            const SearchSettings& settings,
            Axes axes,
            std::uint32_t halvings,
            bool is_nested)
      : home_(home), settings_(settings), axes_(axes), halvings_(halvings), is_nested_(is_nested) {}

  /// Leaves all other ways out.
  void setOpen(OpenWays open) { open_ = std::move(open); }
  /// The best plan for a lattice of fixed point.
  FoundPlan solve(std::int32_t* x, const Extents& n);
  /// The ways of all plans that are nearly as good as the best.
  OpenWays nearlyBest() const;
  /// The best plan with levels, where Lorenzo alone is better, but not by much.
  std::optional<FoundPlan> almost() const;

 private:
  using Strides = OpenWays::Strides;
  /// Ways to a lattice: Lorenzo, a level along all axes, along one, and nested ones.
  enum WayPlace : std::size_t { kLorenzo = 0, kAll = 1, kOne = 2, kNested = 5, kWays = 8 };

  /// A lattice.
  struct Node {
    Strides s = {};
    Extents n = {};
    std::int32_t* x = nullptr;  ///< fixed point; while its wave is solved
    Lattice r;                  ///< what decoding it gives, with ghosts; none for the first lattice
    std::array<Way, kWays> ways;
    Cost limit = Way::kNone;  ///< a way that costs as much is not needed
    Way best;
  };
  struct Item {
    std::size_t node, way;
  };

  static std::size_t idOf(const Strides& s) { return OpenWays::idOf(s); }
  Axes axesOf(std::size_t way) const;
  bool canHalve(const Node& node, Axes axes) const;
  /// Whether a way to a lattice is to be tried.
  bool isOpen(const Node& node, std::size_t way) const;
  std::size_t belowOf(const Node& node, Axes axes) const;
  std::uint32_t halvingsOf(const Node& node) const;
  Bin binOf(const Node& node) const { return settings_.bin(halvingsOf(node)); }
  /// The axes of levels above a lattice.
  static Axes ghostsOf(const Node& node);
  /// The same for all of them: what lies outside along an axis does not depend on the others.
  void fillGhostsOf(const Node& node, Worker& worker) const;
  Source sourceOfNode(const Node& node) const;
  FoundPlan planOf(const Way& way) const;

  void listNodes(const Extents& n);
  void takeMemory(std::int32_t* x);
  void solveWave(std::size_t first, std::size_t end);
  /// Of a cost that is right up to one part in so many; 0: it is exact.
  Cost slackOf(Cost cost, Cost share) const;
  /// What a lattice costs at most, as far as it was looked at.
  static Cost leastMost(const Node& node);
  void pick(Node& node, Worker& worker) const;
  void estimate(Node& node, std::size_t way, Worker& worker) const;
  void estimateLorenzo(Node& node, Worker& worker) const;
  void estimateLevel(Node& node, std::size_t place, Worker& worker) const;
  void estimateNested(Node& node, const LevelStep& step, Way& way, Worker& worker) const;
  /// For each lattice the best of the ways that may be, coded: the one that looks best, then others
  /// that may be better.
  void decide(std::span<Node> wave, std::size_t n_values);
  /// The same for the first lattice, of which no reconstruction is needed.
  void decideFirst();
  /// Those that were estimated, the cheapest first.
  static std::vector<Way*> inOrder(Node& node);
  LevelStep stepOf(const Node& node, const Node& below, Axes axes) const;
  /// Codes a lattice that way; `r` gets its reconstruction, where it has room.
  Cost code(const Node& node, const Way& way, const Lattice& r, Worker& worker) const;
  /// The cost of the odd points alone.
  Cost codeNested(const Node& node,
                  const Way& way,
                  const LevelStep& step,
                  const Lattice& r,
                  Worker& worker) const;

  Worker& home_;  // all memory is its own but for that of items
  const SearchSettings& settings_;
  Axes axes_;
  std::uint32_t halvings_;
  bool is_nested_;
  OpenWays open_;
  std::vector<Node> nodes_;  // the first lattice first, then as often as they are halved
  std::vector<std::size_t> places_;
};

}  // namespace fz::interp
