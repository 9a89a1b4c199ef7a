#include "fused/interp/plan.h"

#include <algorithm>

#include "core/require.h"

namespace fz::interp {

namespace {

constexpr std::uint32_t kIsoLevels[4] = {0, 8, 5, 4};  // by dimensions
constexpr std::uint32_t kMaxInner = 31;

/// Levels of `steps` that a lattice of n allows, from fine to coarse, and the Lorenzo axes; what is
/// left of the lattice is put into n.
template <class Keep>
void fitLevels(const Steps& steps, Extents& n, Keep keep) {
  for (Steps rest = steps; !rest.levels.empty(); rest = withoutFinest(rest)) {
    const std::span<const Level> group = finest(rest.levels);
    Level level = group.front();
    level.axes &= activeAxes(n);
    if (level.axes != 0) {
      keep(level, group, n);
      n = halved(n, level.axes);
    }
  }
}

Level inStandardForm(Level level) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!has(level.axes, axis)) {
      level.kernels[axis] = Kernel::kCubic;
    }
    if ((level.axes & kPairs[axis]) != kPairs[axis]) {
      level.pair_sets[axis] = 0;
    }
  }
  level.cube_set = level.axes == kXyz ? level.cube_set : std::uint8_t{0};
  return level;
}

}  // namespace

bool Plan::add(const Level& level) {
  if (n_levels == kMaxLevels) {
    return false;
  }
  levels[n_levels++] = level;
  return true;
}

bool Plan::operator==(const Plan& other) const {
  return has_alpha == other.has_alpha && lorenzo == other.lorenzo &&
         std::equal(levels.begin(), levels.begin() + n_levels, other.levels.begin(),
                    other.levels.begin() + other.n_levels);
}

std::size_t countOuter(std::span<const Level> levels) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < levels.size(); i += 1u + levels[i].n_inner) {
    ++n;
  }
  return n;
}

std::span<const Level> finest(std::span<const Level> levels) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < levels.size(); i += 1u + levels[i].n_inner) {
    last = i;
  }
  return levels.subspan(last);
}

Axes activeAxes(const Extents& n) {
  return static_cast<Axes>((n[0] > 1 ? kX : 0) | (n[1] > 1 ? kY : 0) | (n[2] > 1 ? kZ : 0));
}

Extents halved(const Extents& n, Axes axes) {
  return pointsOf(n, axes, 0);
}

Extents pointsOf(const Extents& n, Axes axes, Axes odd) {
  Extents points = n;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (has(axes, axis)) {
      points[axis] = n[axis] / 2 + (has(odd, axis) ? 0 : n[axis] % 2);
    }
  }
  return points;
}

Plan isoPlan(const Extents& n) {
  Plan wanted;
  wanted.lorenzo = kXyz;
  Level level;
  level.axes = kXyz;
  for (std::uint32_t i = 0; i < kIsoLevels[countAxes(activeAxes(n))]; ++i) {
    wanted.add(level);
  }
  return fittedPlan(wanted, n);
}

Plan lorenzoPlan(const Extents& n) {
  Plan plan;
  plan.lorenzo = activeAxes(n);
  return plan;
}

Plan fittedPlan(const Plan& plan, const Extents& n) {
  // Strides grow from the finest level on, the list from the coarsest: gathered backwards.
  Plan backwards;
  backwards.has_alpha = plan.has_alpha;
  Extents left = n;
  fitLevels(plan.steps(), left, [&](Level level, std::span<const Level> group, const Extents& at) {
    level = inStandardForm(level);
    if (level.is_nested) {
      Extents inside = pointsOf(at, level.axes, level.axes);
      level.n_inner = 0;
      fitLevels(innerSteps(group), inside,
                [&](const Level& inner, std::span<const Level>, const Extents&) {
                  backwards.add(inStandardForm(inner));
                  ++level.n_inner;
                });
      level.inner_lorenzo = static_cast<Axes>(level.inner_lorenzo & activeAxes(inside));
    }
    backwards.add(level);
  });
  std::reverse(backwards.levels.begin(), backwards.levels.begin() + backwards.n_levels);
  backwards.lorenzo = static_cast<Axes>(plan.lorenzo & activeAxes(left));
  return backwards;
}

// ---- text

namespace {

/// Reads a plan's text word by word.
class PlanParser {
 public:
  explicit PlanParser(std::string_view text) : all_(text), left_(text) {}

  Plan parse() {
    Plan plan;
    plan.has_alpha = takeWord("alpha");
    plan.lorenzo = lorenzo();
    for (skipSpaces(); !left_.empty(); skipSpaces()) {
      const bool is_nested = take("N");
      Level level = levelHead();
      level.is_nested = is_nested;
      require(plan.n_levels < Plan::kMaxLevels, "no more levels");
      const std::size_t place = plan.n_levels;
      plan.add(level);
      if (is_nested) {
        require(countAxes(level.axes) == 1 && take("("), "one axis and a plan in ()");
        plan.levels[place].inner_lorenzo = lorenzo();
        for (skipSpaces(); !take(")"); skipSpaces()) {
          const Level inner = levelHead();
          require((inner.axes & level.axes) == 0, "inner levels along other axes");
          require(plan.add(inner) && ++plan.levels[place].n_inner <= kMaxInner, "fewer levels");
        }
      }
    }
    return plan;
  }

 private:
  void require(bool condition, std::string_view needed) const {
    FZ_REQUIRE_ARG(condition, "Interp: plan '{}' needs {} at '{}'", all_, needed, left_);
  }
  void skipSpaces() { left_.remove_prefix(std::min(left_.find_first_not_of(' '), left_.size())); }
  bool take(std::string_view text) {
    const bool is_next = left_.starts_with(text);
    left_.remove_prefix(is_next ? text.size() : 0);
    return is_next;
  }
  bool takeWord(std::string_view word) {
    skipSpaces();
    const std::string_view behind = left_.substr(std::min(word.size(), left_.size()));
    return (behind.empty() || behind.front() == ' ' || behind.front() == ':' ||
            behind.front() == ')') &&
           take(word);
  }
  Axes axes() {
    Axes found = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      found = static_cast<Axes>(found |
                                (take(std::string_view("xyz").substr(axis, 1)) ? 1 << axis : 0));
    }
    require(found != 0, "axes (x, y, z in this order)");
    return found;
  }
  Axes lorenzo() {
    if (!takeWord("lorenzo") || !take(":")) {
      return kXyz;
    }
    return take("none") ? Axes{0} : axes();
  }
  std::uint8_t digit(std::string_view digits, std::string_view needed) {
    const std::size_t place = left_.empty() ? left_.npos : digits.find(left_.front());
    require(place != digits.npos, needed);
    left_.remove_prefix(1);
    return static_cast<std::uint8_t>(place);
  }
  Level levelHead() {
    Level level;
    level.axes = axes();
    if (take(":")) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        if (has(level.axes, axis)) {
          level.kernels[axis] = static_cast<Kernel>(digit("lcn", "a kernel (l, c or n) per axis"));
        }
      }
    }
    if (countAxes(level.axes) > 1 && take(":")) {
      for (std::size_t pair = 0; pair < 3; ++pair) {
        if ((level.axes & kPairs[pair]) == kPairs[pair]) {
          level.pair_sets[pair] = digit("0123456", "a weight set (0 to 6) per pair of axes");
        }
      }
      level.cube_set = level.axes == kXyz
                           ? digit("0123456789abc", "a weight set (0 to 9, a to c) for xyz")
                           : std::uint8_t{0};
    }
    require(left_.empty() || left_.front() == ' ' || left_.front() == '(' || left_.front() == ')',
            "a space");
    return level;
  }

  std::string_view all_;
  std::string_view left_;
};

std::string axesText(Axes axes) {
  std::string text;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (has(axes, axis)) {
      text.push_back("xyz"[axis]);
    }
  }
  return text.empty() ? "none" : text;
}

std::string levelText(const Level& level) {
  std::string kernels;
  std::string sets;
  for (std::size_t i = 0; i < 3; ++i) {
    if (has(level.axes, i)) {
      kernels.push_back("lcn"[static_cast<std::size_t>(level.kernels[i])]);
    }
    if ((level.axes & kPairs[i]) == kPairs[i]) {
      sets.push_back("0123456"[level.pair_sets[i]]);
    }
  }
  if (level.axes == kXyz) {
    sets.push_back("0123456789abc"[level.cube_set]);
  }
  return fmt::format("{}{}:{}{}{}", level.is_nested ? "N" : "", axesText(level.axes), kernels,
                     sets.empty() ? "" : ":", sets);
}

}  // namespace

Plan parsePlan(std::string_view text) {
  return PlanParser(text).parse();
}

std::string planText(const Plan& plan) {
  std::string text =
      fmt::format("{}lorenzo:{}", plan.has_alpha ? "alpha " : "", axesText(plan.lorenzo));
  std::uint32_t n_open = 0;
  for (const Level& level : plan.steps().levels) {
    text += fmt::format(" {}", levelText(level));
    if (level.is_nested) {
      text += fmt::format("(lorenzo:{}", axesText(level.inner_lorenzo));
      n_open = level.n_inner + 1u;
    }
    if (n_open == 1) {
      text.push_back(')');
    }
    n_open -= n_open > 0 ? 1 : 0;
  }
  return text;
}

}  // namespace fz::interp
