#include "fused/interp/cpu/search.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fz::interp {

namespace {

constexpr std::uint32_t kLeastPoints = 3;  // of an axis that is halved
// Coarser lattices than this are too small for a choice of axes to matter.
constexpr std::size_t kLeastValues = 256;
// The axes of a Lorenzo end are chosen on a part of at least this many points.
constexpr std::size_t kLorenzoValues = std::size_t{1} << 15;

// Estimates and costs are as good as others up to this part of them.
constexpr Cost kNearly = 16;

/// How often an axis may be halved.
std::uint32_t mostHalvings(std::uint32_t n_axes) {
  return n_axes >= 3 ? 4 : n_axes == 2 ? 5 : 8;
}

/// Calls f(fine index, odd index, prediction) for the odd points along one axis.
template <class F>
void forOddPoints(const Lattice& base, std::size_t axis, Kernel kernel, const Extents& n, F f) {
  const Extents odd = pointsOf(n, static_cast<Axes>(1u << axis), static_cast<Axes>(1u << axis));
  const std::ptrdiff_t step = axis == 0   ? 1
                              : axis == 1 ? static_cast<std::ptrdiff_t>(base.row)
                                          : static_cast<std::ptrdiff_t>(base.plane);
  std::size_t i = 0;
  for (std::uint32_t z = 0; z < odd[2]; ++z) {
    for (std::uint32_t y = 0; y < odd[1]; ++y) {
      const std::int32_t* const row = base.at(y, z);
      for (std::uint32_t x = 0; x < odd[0]; ++x, ++i) {
        const std::int32_t* const at = row + x;
        const std::size_t fine_x = axis == 0 ? 2 * x + 1 : x;
        const std::size_t fine_y = axis == 1 ? 2 * y + 1 : y;
        const std::size_t fine_z = axis == 2 ? 2 * z + 1 : z;
        f((fine_z * n[1] + fine_y) * n[0] + fine_x, i,
          between(kernel, at[-step], at[0], at[step], at[2 * step]));
      }
    }
  }
}

/// The fine lattice of a nested level.
void putTogether(Solved& node,
                 const Solved& base,
                 const Lattice& ghosts,
                 std::size_t axis,
                 Kernel kernel,
                 const Values& difference) {
  const Extents& n = node.n;
  std::size_t i = 0;
  for (std::uint32_t z = 0; z < base.n[2]; ++z) {
    for (std::uint32_t y = 0; y < base.n[1]; ++y) {
      for (std::uint32_t x = 0; x < base.n[0]; ++x, ++i) {
        const std::size_t fine_x = axis == 0 ? 2 * x : x;
        const std::size_t fine_y = axis == 1 ? 2 * y : y;
        const std::size_t fine_z = axis == 2 ? 2 * z : z;
        node.r[(fine_z * n[1] + fine_y) * n[0] + fine_x] = base.r[i];
      }
    }
  }
  forOddPoints(ghosts, axis, kernel, n,
               [&](std::size_t fine, std::size_t odd, std::int32_t predicted) {
                 node.r[fine] = bits::wrapAdd(predicted, difference[odd]);
               });
}

}  // namespace

const Solved& Programme::solve(Values x, const Extents& n, Cost limit) {
  solved_.clear();
  almost_ = {};
  limit_ = limit;
  Solved& root = solved_[0];
  root.x = std::move(x);
  root.n = n;
  solveAt({0, 0, 0});
  return root;
}

FoundPlan Programme::planOf(const Way& way) const {
  if (!way.level) {
    return {};
  }
  const Solved& base = solved_.at(way.below);
  FoundPlan plan = planOf(base);
  plan.lorenzo = base.level ? plan.lorenzo : base.lorenzo;
  plan.levels.push_back(*way.level);
  plan.levels.insert(plan.levels.end(), way.inner.begin(), way.inner.end());
  return plan;
}

FoundPlan Programme::found() const {
  const Solved& root = solved_.at(0);
  FoundPlan plan = planOf(root);
  plan.lorenzo = root.level ? plan.lorenzo : root.lorenzo;
  return plan;
}

std::optional<FoundPlan> Programme::almost() const {
  const Solved& root = solved_.at(0);
  const bool is_near = almost_.level && almost_.cost < root.cost + root.cost / kNearly;
  return is_near && !root.level ? std::optional(planOf(almost_)) : std::nullopt;
}

bool Programme::keep(Solved& node, Way way) {
  if (way.cost < node.cost) {
    static_cast<Way&>(node) = std::move(way);
    return true;
  }
  if (&node == &solved_.at(0) && (!almost_.level || way.cost < almost_.cost)) {
    almost_ = std::move(way);
  }
  return false;
}

bool Programme::canHalve(const Strides& s, const Extents& n, Axes axes) const {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (has(axes, axis) && (n[axis] < kLeastPoints || s[axis] >= mostHalvings(context_.n_axes))) {
      return false;
    }
  }
  return true;
}

Source Programme::sourceOfNode(Solved& node) const {
  return sourceOf(latticeOf(node.x, node.n), context_.has_gaps);
}

std::uint32_t Programme::below(const Strides& s, Axes axes, Solved& node) {
  Strides next = s;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    next[axis] += has(axes, axis) ? 1 : 0;
  }
  const std::uint32_t id = idOf(next);
  if (solved_.find(id) == solved_.end()) {
    Solved& made = solved_[id];
    made.n = halved(node.n, axes);
    made.x.resize(countOf(made.n));
    pickEven(context_.core, sourceOfNode(node), node.n, axes, latticeOf(made.x, made.n));
    solveAt(next);
  }
  return id;
}

void Programme::solveAt(const Strides& s) {
  Solved& node = solved_.at(idOf(s));
  const std::uint32_t h = halvings_ + s[0] + s[1] + s[2];
  tryLorenzo(node, h);
  tryLevel(s, node, axes_, h);
  if (countAxes(axes_) > 1 && countOf(node.n) >= kLeastValues) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (has(axes_, axis)) {
        tryLevel(s, node, static_cast<Axes>(1u << axis), h);
      }
    }
  }
  if (!is_nested_ && countAxes(axes_) > 1 && countOf(node.n) >= kLeastValues) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const bool is_whole = s[0] + s[1] + s[2] == s[axis];
      if (has(axes_, axis) && is_whole) {
        tryNested(s, node, axis, h);
      }
    }
  }
}

void Programme::tryLorenzo(Solved& node, std::uint32_t h) {
  node.r.resize(node.x.size());
  if (context_.has_gaps && !is_nested_) {
    tryLorenzoWithGaps(node, h);
    return;
  }
  const auto costs = probeEnds({node.x, node.n, context_.bin(h)}, node.r, codes_.probeMemory());
  node.cost = std::numeric_limits<Cost>::max();
  for (std::uint32_t set = 8; set-- > 0;) {
    if ((set & ~activeAxes(node.n)) == 0 && costs[set] < node.cost) {
      node.cost = costs[set];
      node.lorenzo = static_cast<Axes>(set);
    }
  }
}

void Programme::tryLorenzoWithGaps(Solved& node, std::uint32_t h) {
  const Slab slab = slabOf(node.n, std::max(kLorenzoValues, countOf(node.n) / 4));
  const Source part = partOf(sourceOfNode(node), slab);
  const std::uint64_t n_part = makeCodeArray(slab.n).codes();
  Cost best = std::numeric_limits<Cost>::max();
  for (std::uint32_t set = 8; set-- > 0;) {
    const auto axes = static_cast<Axes>(set);
    if ((axes & ~activeAxes(node.n)) != 0) {
      continue;
    }
    encodeLorenzo(context_.core, {axes, context_.bin(h), slab.n, false, {}}, part,
                  codes_.reserve(n_part), {});
    const Cost cost = codes_.cost(0, n_part);
    if (cost < best) {
      best = cost;
      node.lorenzo = axes;
    }
  }
  const std::uint64_t n_codes = makeCodeArray(node.n).codes();
  encodeLorenzo(context_.core, {node.lorenzo, context_.bin(h), node.n, false, {}},
                sourceOfNode(node), codes_.reserve(n_codes), latticeOf(node.r, node.n));
  node.cost = codes_.cost(0, n_codes);
}

void Programme::tryLevel(const Strides& s, Solved& node, Axes axes, std::uint32_t h) {
  if (!canHalve(s, node.n, axes)) {
    return;
  }
  const std::uint32_t id = below(s, axes, node);
  const Solved& base = solved_.at(id);
  const Cost limit = std::min(node.cost, limit_);
  if (base.cost >= limit) {
    return;
  }
  const std::size_t mark = context_.core.stack.top();
  LevelStep step;
  step.level.axes = axes;
  step.bin = context_.bin(h);
  step.n = node.n;
  step.base = withGhosts(context_.core, base.r, base.n, axes, node.n);
  LevelTuner tuner(context_, codes_);
  const Cost expected = base.cost + tuner.choose(step, sourceOfNode(node), limit - base.cost);
  // Along one axis the cost is known already.
  if (expected - (countAxes(axes) == 1 ? 0 : expected / kNearly) < limit) {
    Values r(node.x.size());
    const Cost cost = base.cost + tuner.run(step, sourceOfNode(node), latticeOf(r, node.n));
    if (keep(node, {cost, step.level, {}, id})) {
      node.r.swap(r);
    }
  }
  context_.core.stack.popTo(mark);
}

void Programme::tryNested(const Strides& s, Solved& node, std::size_t axis, std::uint32_t h) {
  const auto axes = static_cast<Axes>(1u << axis);
  if (!canHalve(s, node.n, axes)) {
    return;
  }
  const std::uint32_t id = below(s, axes, node);
  const Solved& base = solved_.at(id);
  const Cost limit = std::min(node.cost, limit_);
  if (base.cost >= limit) {
    return;
  }
  const std::size_t mark = context_.core.stack.top();
  LevelStep step;
  step.level.axes = axes;
  step.bin = context_.bin(h);
  step.n = node.n;
  step.base = withGhosts(context_.core, base.r, base.n, axes, node.n);
  LevelTuner(context_, codes_).choose(step, sourceOfNode(node), limit - base.cost);
  const Kernel kernel = step.level.kernels[axis];
  const Extents n_odd = pointsOf(node.n, axes, axes);
  Values difference(countOf(n_odd));
  forOddPoints(step.base, axis, kernel, node.n,
               [&](std::size_t fine, std::size_t odd, std::int32_t predicted) {
                 const std::int32_t x = node.x[fine];
                 difference[odd] = x == kNoValue ? kNoValue : bits::wrapSub(x, predicted);
               });
  Programme inside(context_, codes_, static_cast<Axes>(axes_ & ~axes), h, true);
  const Solved& found = inside.solve(std::move(difference), n_odd, limit - base.cost);
  FoundPlan plan = inside.found();
  Level level = step.level;
  level.is_nested = true;
  level.n_inner = static_cast<std::uint8_t>(plan.levels.size());
  level.inner_lorenzo = plan.lorenzo;
  if (keep(node, {base.cost + found.cost, level, std::move(plan.levels), id})) {
    putTogether(node, base, step.base, axis, kernel, found.r);
  }
  context_.core.stack.popTo(mark);
}

}  // namespace fz::interp
