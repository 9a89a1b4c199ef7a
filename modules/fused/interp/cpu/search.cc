#include "fused/interp/cpu/search.h"

#include <algorithm>
#include <utility>

#include "fused/interp/blocks.h"
#include "fused/interp/cpu/search_lines.h"

namespace fz::interp {

namespace {

constexpr std::uint32_t kLeastPoints = 3;  // of an axis that is halved
constexpr std::uint32_t kMostHalvings = 8;
// Coarser lattices than this are too small for a choice of axes to matter.
constexpr std::size_t kLeastValues = 256;
// Inner plans of nested levels are found on such a part.
constexpr std::size_t kNestedShare = 2;
constexpr std::size_t kNestedValues = std::size_t{1} << 13;

// Estimates are as good as others up to this part of them: from rows of blocks all over a lattice,
// and from a part of it.
constexpr Cost kSpread = 32;
constexpr Cost kNearly = 16;

// A plan is nearly the best where it costs more by up to such a share of a bit per value.
constexpr Cost kBitShare = 24;

/// How often an axis may be halved.
std::uint32_t mostHalvings(std::uint32_t n_axes) {
  return n_axes >= 3 ? 4 : n_axes == 2 ? 5 : kMostHalvings;
}

}  // namespace

// ---- lattices

FoundPlan Programme::solve(std::int32_t* x, const Extents& n) {
  const std::size_t mark = home_.stack.top();
  listNodes(n);
  takeMemory(x);
  for (std::size_t end = nodes_.size(); end > 0;) {
    std::size_t first = end - 1;
    while (first > 0 && halvingsOf(nodes_[first - 1]) == halvingsOf(nodes_[end - 1])) {
      --first;
    }
    solveWave(first, end);
    end = first;
  }
  home_.stack.popTo(mark);
  return planOf(nodes_.front().best);
}

void Programme::listNodes(const Extents& n) {
  nodes_.clear();
  places_.assign(idOf({kMostHalvings, kMostHalvings, kMostHalvings}) + 1, 0);
  nodes_.emplace_back().n = n;
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    for (std::size_t way = kAll; way < kWays; ++way) {
      const Axes axes = axesOf(way);
      if (!isOpen(nodes_[at], way)) {
        continue;
      }
      Node made;
      made.s = nodes_[at].s;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        made.s[axis] += has(axes, axis) ? 1 : 0;
      }
      made.n = halved(nodes_[at].n, axes);
      if (places_[idOf(made.s)] == 0) {
        places_[idOf(made.s)] = 1;
        nodes_.push_back(std::move(made));
      }
    }
  }
  std::stable_sort(nodes_.begin(), nodes_.end(),
                   [&](const Node& a, const Node& b) { return halvingsOf(a) < halvingsOf(b); });
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    places_[idOf(nodes_[at].s)] = at;
  }
}

void Programme::takeMemory(std::int32_t* x) {
  const auto roomOf = [](const Node& node) {
    return bits::roundUp<std::size_t>(latticeValues(node.n, ghostsOf(node)), 16);
  };
  // Fixed point is needed in its wave alone.
  std::size_t n_all = 0;
  std::size_t n_most = 0;
  std::size_t n_wave = 0;
  for (std::size_t at = 1; at < nodes_.size(); ++at) {
    const std::size_t n_node = bits::roundUp<std::size_t>(countOf(nodes_[at].n), 16);
    const bool is_new = halvingsOf(nodes_[at]) != halvingsOf(nodes_[at - 1]);
    n_wave = (is_new ? 0 : n_wave) + n_node;
    n_most = std::max(n_most, n_wave);
    n_all += roomOf(nodes_[at]);
  }
  std::int32_t* const memory = home_.stack.values(nullptr, n_most + n_all);
  std::int32_t* r = memory + n_most;
  std::int32_t* wave = memory;
  nodes_.front().x = x;
  for (std::size_t at = 1; at < nodes_.size(); ++at) {
    const bool is_new = halvingsOf(nodes_[at]) != halvingsOf(nodes_[at - 1]);
    wave = is_new ? memory : wave;
    nodes_[at].x =
        std::exchange(wave, wave + bits::roundUp<std::size_t>(countOf(nodes_[at].n), 16));
    nodes_[at].r =
        latticeIn(std::exchange(r, r + roomOf(nodes_[at])), nodes_[at].n, ghostsOf(nodes_[at]));
  }
}

std::uint32_t Programme::halvingsOf(const Node& node) const {
  return halvings_ + node.s[0] + node.s[1] + node.s[2];
}

Axes Programme::axesOf(std::size_t way) const {
  return way == kAll ? axes_
                     : static_cast<Axes>(1u << (way < kNested ? way - kOne : way - kNested));
}

bool Programme::canHalve(const Node& node, Axes axes) const {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (has(axes, axis) &&
        (node.n[axis] < kLeastPoints || node.s[axis] >= mostHalvings(settings_.n_axes))) {
      return false;
    }
  }
  return true;
}

bool Programme::isOpen(const Node& node, std::size_t way) const {
  if (way == kLorenzo) {
    return true;
  }
  const Axes axes = axesOf(way);
  if (axes == 0 || (axes & ~axes_) != 0 || !canHalve(node, axes) || !open_.has(node.s, way)) {
    return false;
  }
  if (way == kAll) {
    return true;
  }
  const bool has_choice = countAxes(axes_) > 1 && countOf(node.n) >= kLeastValues;
  const std::uint32_t along = node.s[way < kNested ? 0 : way - kNested];
  return has_choice &&
         (way < kNested || (!is_nested_ && node.s[0] + node.s[1] + node.s[2] == along));
}

std::size_t Programme::belowOf(const Node& node, Axes axes) const {
  Strides s = node.s;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    s[axis] += has(axes, axis) ? 1 : 0;
  }
  return places_[idOf(s)];
}

Axes Programme::ghostsOf(const Node& node) {
  unsigned axes = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    axes |= node.s[axis] > 0 ? 1u << axis : 0u;
  }
  return static_cast<Axes>(axes);
}

void Programme::fillGhostsOf(const Node& node, Worker& worker) const {
  Extents n_fine = nodes_.front().n;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (std::uint32_t i = 1; i < node.s[axis]; ++i) {
      n_fine[axis] = bits::ceilDiv(n_fine[axis], 2u);
    }
  }
  fillGhosts(worker.core(countOf(node.n) / 8), node.r, ghostsOf(node), n_fine);
}

Source Programme::sourceOfNode(const Node& node) const {
  return sourceOf(latticeOf(node.x, node.n), settings_.has_gaps);
}

FoundPlan Programme::planOf(const Way& way) const {
  FoundPlan plan = {{}, way.lorenzo, way.cost};
  if (way.level) {
    plan = planOf(nodes_[way.below].best);
    plan.cost = way.cost;
    plan.levels.push_back(*way.level);
    plan.levels.insert(plan.levels.end(), way.inner.begin(), way.inner.end());
  }
  return plan;
}

std::optional<FoundPlan> Programme::almost() const {
  const Node& first = nodes_.front();
  const Way* best = nullptr;
  for (const Way& way : first.ways) {
    best = way.level && (best == nullptr || way.cost < best->cost) ? &way : best;
  }
  const bool is_near = best != nullptr && best->cost < first.best.cost + first.best.cost / kNearly;
  return is_near && !first.best.level ? std::optional(planOf(*best)) : std::nullopt;
}

OpenWays Programme::nearlyBest() const {
  const Node& first = nodes_.front();
  const Cost most = first.best.cost + countOf(first.n) * kCostOfBit / kBitShare;
  std::vector<Cost> above(nodes_.size(), Way::kNone);  // the least that levels above a lattice cost
  above.front() = 0;
  OpenWays open;
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    std::uint8_t ways = 0;
    for (std::size_t place = 0; place < kWays; ++place) {
      const Way& way = nodes_[at].ways[place];
      if (!way.level || above[at] + way.cost > most) {
        continue;
      }
      ways = static_cast<std::uint8_t>(ways | 1u << place);
      // Of a nested level the lattice below is reached as by the plain one.
      const Cost level = way.cost - nodes_[way.below].best.cost;
      above[way.below] = std::min(above[way.below], above[at] + level);
    }
    open.set(nodes_[at].s, ways);
  }
  return open;
}

// ---- a wave

void Programme::solveWave(std::size_t first, std::size_t end) {
  std::size_t n_values = 0;
  for (std::size_t at = first; at < end; ++at) {
    n_values += countOf(nodes_[at].n);
  }
  if (first > 0) {
    home_.forEach(end - first, n_values / 8,
                  [&](std::size_t i, Worker& worker) { pick(nodes_[first + i], worker); });
  }
  // What takes longest comes last: it need not be tried where it cannot win.
  for (const bool is_late : {false, true}) {
    std::vector<Item> items;
    for (std::size_t way = kWays; way-- > 0;) {
      const bool is_way_late = way >= kNested || (way == kAll && countAxes(axes_) > 1);
      for (std::size_t at = first; at < end && is_way_late == is_late; ++at) {
        if (isOpen(nodes_[at], way)) {
          items.push_back({at, way});
        }
      }
    }
    for (std::size_t at = first; at < end; ++at) {
      nodes_[at].limit = leastMost(nodes_[at]);
    }
    home_.forEach(items.size(), 2 * n_values, [&](std::size_t i, Worker& worker) {
      estimate(nodes_[items[i].node], items[i].way, worker);
    });
  }
  if (first == 0) {
    decideFirst();
    return;
  }
  decide(std::span(nodes_).subspan(first, end - first), n_values);
}

Cost Programme::slackOf(Cost cost, Cost share) const {
  return share == 0 || is_nested_ ? 0 : cost / share;
}

Cost Programme::leastMost(const Node& node) {
  Cost least = Way::kNone;
  for (const Way& way : node.ways) {
    least = std::min(least, way.most());
  }
  return least;
}

void Programme::pick(Node& node, Worker& worker) const {
  const Node& first = nodes_.front();
  const std::size_t in_row = first.n[0];
  const std::size_t in_plane = in_row * first.n[1];
  const CpuExecutor& executor = worker.core(countOf(node.n) / 8).executor;
  parallelFor(executor, std::size_t{node.n[1]} * node.n[2], [&](std::size_t row) {
    const std::size_t y = row % node.n[1];
    const std::size_t z = row / node.n[1];
    const std::int32_t* const in =
        first.x + (z << node.s[2]) * in_plane + (y << node.s[1]) * in_row;
    std::int32_t* const out = node.x + row * node.n[0];
    if (node.s[0] == 0) {
      std::copy_n(in, node.n[0], out);
    } else {
      for (std::size_t x = 0; x < node.n[0]; ++x) {
        out[x] = in[x << node.s[0]];
      }
    }
  });
}

void Programme::estimate(Node& node, std::size_t way, Worker& worker) const {
  const std::size_t mark = worker.stack.top();
  if (way == kLorenzo) {
    estimateLorenzo(node, worker);
  } else if (nodes_[belowOf(node, axesOf(way))].best.cost < node.limit) {
    estimateLevel(node, way, worker);
  }
  worker.stack.popTo(mark);
}

void Programme::estimateLorenzo(Node& node, Worker& worker) const {
  Way& way = node.ways[kLorenzo];
  const OneIn one_in = firstLook(node.n);
  const bool fills_gaps = settings_.has_gaps && !is_nested_;
  const auto costs =
      costsOfEnds({{node.x, countOf(node.n)}, node.n, binOf(node), fills_gaps}, one_in, worker);
  for (std::uint32_t set = 8; set-- > 0;) {
    if ((set & ~activeAxes(node.n)) == 0 && costs[set] < way.cost) {
      way.cost = costs[set];
      way.lorenzo = static_cast<Axes>(set);
    }
  }
  way.slack = slackOf(way.cost, fills_gaps ? kNearly : one_in == 1 ? 0 : kSpread);
}

LevelStep Programme::stepOf(const Node& node, const Node& below, Axes axes) const {
  LevelStep step;
  step.level.axes = axes;
  step.bin = binOf(node);
  step.n = node.n;
  step.base = below.r;
  return step;
}

void Programme::estimateLevel(Node& node, std::size_t place, Worker& worker) const {
  Way& way = node.ways[place];
  const Axes axes = axesOf(place);
  way.below = belowOf(node, axes);
  const Node& below = nodes_[way.below];
  const Cost limit = node.limit - below.best.cost;
  LevelStep step = stepOf(node, below, axes);
  LevelTuner tuner(worker);
  const Cost cost = tuner.choose(step, sourceOfNode(node), limit);
  way.level = step.level;
  if (place >= kNested) {
    estimateNested(node, step, way, worker);
    return;
  }
  const bool is_part = countAxes(axes) > 1;
  way.cost = below.best.cost + cost;
  way.slack = slackOf(cost, is_part ? kNearly : firstLook(node.n) == 1 ? 0 : kSpread);
}

void Programme::estimateNested(Node& node, const LevelStep& step, Way& way, Worker& worker) const {
  const Axes axes = step.level.axes;
  const std::size_t n_all = countOf(pointsOf(node.n, axes, axes));
  const OddPart part = oddPart(node.n, axes, std::max(kNestedValues, n_all / kNestedShare));
  std::int32_t* const difference = differencesOf(step, sourceOfNode(node), part, worker);
  Programme inside(worker, settings_, static_cast<Axes>(axes_ & ~axes), halvingsOf(node), true);
  FoundPlan plan = inside.solve(difference, part.n);
  const Cost cost = plan.cost * n_all / countOf(part.n);
  way.level->is_nested = true;
  way.level->n_inner = static_cast<std::uint8_t>(plan.levels.size());
  way.level->inner_lorenzo = plan.lorenzo;
  way.inner = std::move(plan.levels);
  way.cost = nodes_[way.below].best.cost + cost;
  way.slack = cost / kNearly;
}

void Programme::decide(std::span<Node> wave, std::size_t n_values) {
  std::vector<std::vector<Way*>> ways(wave.size());
  home_.forEach(wave.size(), n_values, [&](std::size_t i, Worker& worker) {
    Node& node = wave[i];
    node.limit = leastMost(node);
    ways[i] = inOrder(node);
    Way& way = *ways[i].front();
    way.cost = code(node, way, node.r, worker);
    way.slack = 0;
    node.best = way;
  });
  struct Other {
    Node& node;
    Way& way;
    Lattice r;
  };
  const std::size_t mark = home_.stack.top();
  std::vector<Other> others;
  for (std::size_t i = 0; i < wave.size(); ++i) {
    for (Way* const way : std::span(ways[i]).subspan(1)) {
      if (way->least() <= wave[i].limit && way->least() < wave[i].best.cost) {
        others.push_back({wave[i], *way, home_.stack.lattice(nullptr, wave[i].n, 0)});
      }
    }
  }
  home_.forEach(others.size(), n_values, [&](std::size_t i, Worker& worker) {
    others[i].way.cost = code(others[i].node, others[i].way, others[i].r, worker);
    others[i].way.slack = 0;
  });
  std::vector<const Other*> better(wave.size(), nullptr);
  for (const Other& other : others) {
    if (other.way.cost < other.node.best.cost) {
      other.node.best = other.way;
      better[static_cast<std::size_t>(&other.node - wave.data())] = &other;
    }
  }
  home_.forEach(wave.size(), n_values / 8, [&](std::size_t i, Worker& worker) {
    if (better[i] != nullptr) {
      const Core core = worker.core(countOf(wave[i].n) / 8);
      pickEven(core, sourceOf(better[i]->r, false), wave[i].n, 0, wave[i].r);
    }
    fillGhostsOf(wave[i], worker);
  });
  home_.stack.popTo(mark);
}

void Programme::decideFirst() {
  Node& node = nodes_.front();
  const Cost limit = leastMost(node);
  std::vector<Way*> open = inOrder(node);
  std::erase_if(open, [&](const Way* way) { return way->least() > limit; });
  if (open.size() > 1) {
    home_.forEach(open.size(), open.size() * countOf(node.n), [&](std::size_t i, Worker& worker) {
      if (open[i]->slack != 0) {
        open[i]->cost = code(node, *open[i], {}, worker);
        open[i]->slack = 0;
      }
    });
  }
  node.best = **std::min_element(open.begin(), open.end(),
                                 [](const Way* a, const Way* b) { return a->cost < b->cost; });
}

std::vector<Way*> Programme::inOrder(Node& node) {
  std::vector<Way*> ways;
  for (Way& way : node.ways) {
    if (way.cost < Way::kNone) {
      ways.push_back(&way);
    }
  }
  std::stable_sort(ways.begin(), ways.end(),
                   [](const Way* a, const Way* b) { return a->cost < b->cost; });
  return ways;
}

// ---- codes

Cost Programme::code(const Node& node, const Way& way, const Lattice& r, Worker& worker) const {
  const std::size_t mark = worker.stack.top();
  Cost cost = 0;
  if (!way.level) {
    const std::uint64_t n_codes = makeCodeArray(node.n).codes();
    encodeLorenzo(worker.core(countOf(node.n)), {way.lorenzo, binOf(node), node.n, is_nested_, {}},
                  sourceOfNode(node), worker.codes.reserve(n_codes), r);
    cost = worker.costOfCodes(n_codes);
  } else {
    const Node& below = nodes_[way.below];
    LevelStep step = stepOf(node, below, way.level->axes);
    step.level = *way.level;
    cost = below.best.cost + (way.level->is_nested
                                  ? codeNested(node, way, step, r, worker)
                                  : LevelTuner(worker).run(step, sourceOfNode(node), r));
  }
  worker.stack.popTo(mark);
  return cost;
}

Cost Programme::codeNested(const Node& node,
                           const Way& way,
                           const LevelStep& step,
                           const Lattice& r,
                           Worker& worker) const {
  PlanStep inside;
  inside.steps = {way.inner, way.level->inner_lorenzo};
  inside.n = pointsOf(node.n, way.level->axes, way.level->axes);
  inside.sub_bits = settings_.sub_bits;
  inside.n_axes = settings_.n_axes;
  inside.halvings = halvingsOf(node);
  inside.is_nested = true;
  const Core core = worker.core(countOf(inside.n));
  const OddPart all = oddPart(node.n, way.level->axes, countOf(inside.n));
  std::int32_t* const difference = differencesOf(step, sourceOfNode(node), all, worker);
  const Lattice found = r.data == nullptr
                            ? Lattice{}
                            : latticeOf(worker.stack.values(nullptr, countOf(inside.n)), inside.n);
  const std::uint64_t n_codes = stepsCodes(inside.steps, inside.n);
  encodePlan(core, inside, sourceOf(latticeOf(difference, inside.n), settings_.has_gaps),
             worker.codes.reserve(n_codes), found);
  if (r.data != nullptr) {
    NestedArgs args = nestedArgs(step);
    args.difference = found;
    args.result = resultOf(r);
    mergeNested(core, args, node.n);
  }
  return worker.costOfCodes(n_codes);
}

}  // namespace fz::interp
