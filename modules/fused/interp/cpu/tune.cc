// The search for a plan: a dynamic programme over the strides of lattices. What a lattice costs is
// the least of what its Lorenzo end costs and of every level on top of a coarser lattice, which was
// solved before and left its reconstruction; so every level is judged in closed loop.
#include "fused/interp/cpu/tune.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "fused/interp/cpu/cost.h"

namespace fz::interp {

namespace {

using Cost = std::uint64_t;
using Values = std::vector<std::int32_t>;

const std::size_t kSearchValues = std::size_t{1} << (getenv("FZ_S") ? atoi(getenv("FZ_S")) : 17);
const std::size_t kJudgeValues = std::size_t{1} << (getenv("FZ_J") ? atoi(getenv("FZ_J")) : 18);
// Choices inside a step are made on a part of its lattice of about this many points.
constexpr std::size_t kPartValues = std::size_t{1} << 13;
// Coarser lattices than this are too small for a choice of axes to matter.
constexpr std::size_t kLeastValues = 256;
// Crops keep this much of an axis, so that coarse lattices have something to interpolate.
constexpr std::uint32_t kLeastExtent = 33;
constexpr std::uint32_t kLeastPoints = 3;  // of an axis that is halved

// What is tried for the weights while the plan is open, and for the plan that was chosen.
constexpr std::array<std::uint8_t, 3> kFewPairs = {0, 2, 4};
constexpr std::array<std::uint8_t, 7> kAllPairs = {0, 1, 2, 3, 4, 5, 6};
constexpr std::array<std::uint8_t, 3> kFewCubes = {0, 4, 3};
constexpr std::array<std::uint8_t, 13> kAllCubes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

std::size_t countOf(const Extents& n) {
  return std::size_t{n[0]} * n[1] * n[2];
}

Lattice latticeOf(Values& values, const Extents& n) {
  return {values.data(), n, n[0], std::size_t{n[0]} * n[1]};
}

/// A slab from the middle of a lattice: what comes before and behind it along its slowest axis
/// stands where the ghosts of a lattice of its own would.
struct Slab {
  std::size_t axis = 0;
  std::uint32_t first = 0;
  Extents n = {};
};
Slab slabOf(const Extents& n, std::size_t n_values) {
  Slab slab;
  slab.n = n;
  slab.axis = n[2] > 1 ? 2 : n[1] > 1 ? 1 : 0;
  const std::uint32_t extent = n[slab.axis];
  const std::size_t wanted = n_values / (countOf(n) / extent) + 1;
  // Even, as the lattice below it begins with an even point.
  const auto length = static_cast<std::uint32_t>(std::max<std::size_t>(wanted, 8) + 1) & ~1u;
  if (std::uint64_t{length} * 4 < std::uint64_t{extent} * 3) {
    slab.n[slab.axis] = length;
    slab.first = (extent - length) / 2 & ~1u;
  }
  return slab;
}
std::size_t stepAlong(std::size_t axis, std::size_t row, std::size_t plane) {
  return axis == 0 ? 1 : axis == 1 ? row : plane;
}
Source partOf(const Source& source, const Slab& slab) {
  Source part = source;
  part.data =
      static_cast<const std::uint8_t*>(source.data) +
      slab.first * stepAlong(slab.axis, source.row, source.plane) * getDataTypeSize(source.type);
  return part;
}
LevelStep partOf(const LevelStep& step, const Slab& slab) {
  LevelStep part = step;
  part.n = slab.n;
  part.base.n = halved(slab.n, step.level.axes);
  const std::uint32_t first = has(step.level.axes, slab.axis) ? slab.first / 2 : slab.first;
  part.base.data += first * stepAlong(slab.axis, step.base.row, step.base.plane);
  return part;
}

/// How often an axis may be halved.
std::uint32_t mostHalvings(std::uint32_t n_axes) {
  return n_axes >= 3 ? 4 : n_axes == 2 ? 5 : 8;
}

/// What the steps of a search have in common.
struct Frame {
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

 private:
  bool is_short_;
  std::vector<std::int16_t> short_;
  std::vector<std::int32_t> wide_;
};

/// The best way to a lattice that was found.
struct Solved {
  Extents n = {};
  Values x;  ///< fixed point
  Values r;  ///< what decoding it gives
  Cost cost = std::numeric_limits<Cost>::max();
  Axes lorenzo = 0;
  std::optional<Level> level;  ///< on top of the lattice of `below`; none: Lorenzo alone
  std::vector<Level> inner;    ///< of a nested level
  std::uint32_t below = 0;
};

/// A level with its free choices made by trying: kernels by what the points odd along one axis
/// cost, then the weights of pairs, then those of the rest. Each depends only on those before.
class LevelTuner {
 public:
  LevelTuner(const Frame& frame, CodeBuffer& codes) : frame_(frame), codes_(codes) {}

  /// Sets kernels and weights of `step.level`, by a part of the lattice. Returns what the whole may
  /// cost.
  Cost choose(LevelStep& step, const Source& source, bool thorough) {
    const Slab slab = slabOf(step.n, thorough ? 4 * kPartValues : kPartValues);
    LevelStep part = partOf(step, slab);
    const Source part_source = partOf(source, slab);
    const Axes axes = step.level.axes;
    layOut(part.n, axes);
    chooseKernels(part, part_source);
    if (countAxes(axes) > 1) {
      choosePairs(part, part_source,
                  thorough ? std::span<const std::uint8_t>(kAllPairs) : std::span(kFewPairs));
    }
    if (axes == kXyz) {
      chooseCube(part, part_source,
                 thorough ? std::span<const std::uint8_t>(kAllCubes) : std::span(kFewCubes));
    }
    step.level = part.level;
    return best_ * countOf(step.n) / countOf(part.n);
  }

  /// The cost of a whole level; `fine` gets the reconstruction.
  Cost run(const LevelStep& step, const Source& source, const Lattice& fine) {
    layOut(step.n, step.level.axes);
    code(step, source, fine);
    return codes_.cost(0, n_codes_);
  }

 private:
  void layOut(const Extents& n, Axes axes) {
    n_codes_ = 0;
    for (const Axes odd : kClasses) {
      starts_[odd] = n_codes_;
      counts_[odd] = 0;
      const Extents points = pointsOf(n, axes, odd);
      if ((odd & axes) == odd && countOf(points) > 0) {
        counts_[odd] = makeCodeArray(points).codes();
        n_codes_ += counts_[odd];
      }
    }
  }
  void code(const LevelStep& step, const Source& source, const Lattice& fine) {
    encodeLevel(frame_.core, step, source, codes_.reserve(n_codes_), fine);
  }
  Cost classCost(Axes odd) const { return codes_.cost(starts_[odd], counts_[odd]); }

  void chooseKernels(LevelStep& step, const Source& source) {
    std::array<Cost, 3> best;
    best.fill(std::numeric_limits<Cost>::max());
    std::array<Kernel, 3> chosen = step.level.kernels;
    for (const Kernel kernel : {Kernel::kCubic, Kernel::kLinear, Kernel::kNatural}) {
      step.level.kernels.fill(kernel);
      code(step, source, {});
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const auto odd = static_cast<Axes>(1u << axis);
        if (has(step.level.axes, axis) && classCost(odd) < best[axis]) {
          best[axis] = classCost(odd);
          chosen[axis] = kernel;
        }
      }
    }
    best_ = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      best_ += has(step.level.axes, axis) ? best[axis] : 0;
    }
    step.level.kernels.fill(Kernel::kCubic);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (has(step.level.axes, axis)) {
        step.level.kernels[axis] = chosen[axis];
      }
    }
  }

  void choosePairs(LevelStep& step, const Source& source, std::span<const std::uint8_t> sets) {
    constexpr std::array<Axes, 3> kPairs = {kX | kY, kX | kZ, kY | kZ};
    std::array<Cost, 3> best;
    best.fill(std::numeric_limits<Cost>::max());
    std::array<std::uint8_t, 3> chosen = {};
    for (const std::uint8_t set : sets) {
      step.level.pair_sets.fill(set);
      code(step, source, {});
      for (std::size_t i = 0; i < 3; ++i) {
        if ((kPairs[i] & step.level.axes) == kPairs[i] && classCost(kPairs[i]) < best[i]) {
          best[i] = classCost(kPairs[i]);
          chosen[i] = set;
        }
      }
    }
    step.level.pair_sets = chosen;
    for (std::size_t i = 0; i < 3; ++i) {
      best_ += (kPairs[i] & step.level.axes) == kPairs[i] ? best[i] : 0;
    }
  }

  void chooseCube(LevelStep& step, const Source& source, std::span<const std::uint8_t> sets) {
    Cost best = std::numeric_limits<Cost>::max();
    std::uint8_t chosen = 0;
    for (const std::uint8_t set : sets) {
      step.level.cube_set = set;
      code(step, source, {});
      if (classCost(kXyz) < best) {
        best = classCost(kXyz);
        chosen = set;
      }
    }
    step.level.cube_set = chosen;
    best_ += best;
  }

  const Frame& frame_;
  CodeBuffer& codes_;
  std::array<std::uint64_t, 8> starts_ = {};
  std::array<std::uint64_t, 8> counts_ = {};
  std::uint64_t n_codes_ = 0;
  Cost best_ = 0;  // of the part, by class
};

/// A copy of a lattice with ghosts along the axes of a level above it.
Lattice withGhosts(
    const Core& core, const Values& values, const Extents& n, Axes axes, const Extents& n_fine) {
  const Lattice base = core.stack.lattice(core.pool, n, axes);
  for (std::uint32_t z = 0; z < n[2]; ++z) {
    for (std::uint32_t y = 0; y < n[1]; ++y) {
      const auto from = (std::size_t{z} * n[1] + y) * n[0];
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), n[0], base.at(y, z));
    }
  }
  fillGhosts(core, base, axes, n_fine);
  return base;
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

/// Solves a lattice and all coarser ones that it needs.
class Programme {
 public:
  Programme(
      const Frame& frame, CodeBuffer& codes, Axes axes, std::uint32_t halvings, bool is_nested)
      : frame_(frame), codes_(codes), axes_(axes), halvings_(halvings), is_nested_(is_nested) {}

  const Solved& solve(Values x, const Extents& n) {
    solved_.clear();
    Solved& root = solved_[0];
    root.x = std::move(x);
    root.n = n;
    solveAt({0, 0, 0});
    return root;
  }
  const Solved& root() const { return solved_.at(0); }

  /// From coarse to fine.
  std::vector<Level> levels() const {
    std::vector<Level> all;
    addLevels(0, all);
    return all;
  }
  Axes lorenzo() const {
    std::uint32_t id = 0;
    while (solved_.at(id).level) {
      id = solved_.at(id).below;
    }
    return solved_.at(id).lorenzo;
  }

 private:
  using Strides = std::array<std::uint32_t, 3>;

  static std::uint32_t idOf(const Strides& s) { return (s[0] * 16 + s[1]) * 16 + s[2]; }

  void addLevels(std::uint32_t id, std::vector<Level>& all) const {
    const Solved& node = solved_.at(id);
    if (!node.level) {
      return;
    }
    addLevels(node.below, all);
    all.push_back(*node.level);
    all.insert(all.end(), node.inner.begin(), node.inner.end());
  }

  bool canHalve(const Strides& s, const Extents& n, Axes axes) const {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (has(axes, axis) && (n[axis] < kLeastPoints || s[axis] >= mostHalvings(frame_.n_axes))) {
        return false;
      }
    }
    return true;
  }

  Source sourceOfNode(Solved& node) const {
    return sourceOf(latticeOf(node.x, node.n), frame_.has_gaps || is_nested_);
  }

  std::uint32_t below(const Strides& s, Axes axes, Solved& node) {
    Strides next = s;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      next[axis] += has(axes, axis) ? 1 : 0;
    }
    const std::uint32_t id = idOf(next);
    if (solved_.find(id) == solved_.end()) {
      Solved& made = solved_[id];
      made.n = halved(node.n, axes);
      made.x.resize(countOf(made.n));
      pickEven(frame_.core, sourceOfNode(node), node.n, axes, latticeOf(made.x, made.n));
      solveAt(next);
    }
    return id;
  }

  void solveAt(const Strides& s) {
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

  void tryLorenzo(Solved& node, std::uint32_t h) {
    const Slab slab = slabOf(node.n, std::max(4 * kPartValues, countOf(node.n) / 4));
    const Source part = partOf(sourceOfNode(node), slab);
    const std::uint64_t n_part = makeCodeArray(slab.n).codes();
    Cost best = std::numeric_limits<Cost>::max();
    const Axes active = activeAxes(node.n);
    for (std::uint32_t set = 8; set-- > 0;) {
      const auto axes = static_cast<Axes>(set);
      if ((axes & active) != axes) {
        continue;
      }
      encodeLorenzo(frame_.core, {axes, frame_.bin(h), slab.n, is_nested_, {}}, part,
                    codes_.reserve(n_part), {});
      const Cost cost = codes_.cost(0, n_part);
      if (cost < best) {
        best = cost;
        node.lorenzo = axes;
      }
    }
    node.r.resize(node.x.size());
    const std::uint64_t n_codes = makeCodeArray(node.n).codes();
    encodeLorenzo(frame_.core, {node.lorenzo, frame_.bin(h), node.n, is_nested_, {}},
                  sourceOfNode(node), codes_.reserve(n_codes), latticeOf(node.r, node.n));
    node.cost = codes_.cost(0, n_codes);
  }

  void tryLevel(const Strides& s, Solved& node, Axes axes, std::uint32_t h) {
    if (!canHalve(s, node.n, axes)) {
      return;
    }
    const std::uint32_t id = below(s, axes, node);
    const Solved& base = solved_.at(id);
    if (base.cost >= node.cost) {
      return;
    }
    const std::size_t mark = frame_.core.stack.top();
    LevelStep step;
    step.level.axes = axes;
    step.bin = frame_.bin(h);
    step.n = node.n;
    step.base = withGhosts(frame_.core, base.r, base.n, axes, node.n);
    LevelTuner tuner(frame_, codes_);
    const Cost expected = base.cost + tuner.choose(step, sourceOfNode(node), false);
    Values r;
    Cost cost = std::numeric_limits<Cost>::max();
    if (expected - expected / 16 < node.cost) {
      r.resize(node.x.size());
      cost = base.cost + tuner.run(step, sourceOfNode(node), latticeOf(r, node.n));
    }
    frame_.core.stack.popTo(mark);
    if (cost < node.cost) {
      node.cost = cost;
      node.level = step.level;
      node.inner.clear();
      node.below = id;
      node.r.swap(r);
    }
  }

  void tryNested(const Strides& s, Solved& node, std::size_t axis, std::uint32_t h) {
    const auto axes = static_cast<Axes>(1u << axis);
    if (!canHalve(s, node.n, axes)) {
      return;
    }
    const std::uint32_t id = below(s, axes, node);
    const Solved& base = solved_.at(id);
    if (base.cost >= node.cost) {
      return;
    }
    const std::size_t mark = frame_.core.stack.top();
    LevelStep step;
    step.level.axes = axes;
    step.bin = frame_.bin(h);
    step.n = node.n;
    step.base = withGhosts(frame_.core, base.r, base.n, axes, node.n);
    LevelTuner(frame_, codes_).choose(step, sourceOfNode(node), false);
    const Kernel kernel = step.level.kernels[axis];
    const Extents n_odd = pointsOf(node.n, axes, axes);
    Values difference(countOf(n_odd));
    forOddPoints(step.base, axis, kernel, node.n,
                 [&](std::size_t fine, std::size_t odd, std::int32_t predicted) {
                   const std::int32_t x = node.x[fine];
                   difference[odd] = x == kNoValue ? kNoValue : bits::wrapSub(x, predicted);
                 });
    Programme inside(frame_, codes_, static_cast<Axes>(axes_ & ~axes), h, true);
    const Solved& found = inside.solve(std::move(difference), n_odd);
    const Cost cost = base.cost + found.cost;
    if (cost < node.cost) {
      node.cost = cost;
      Level level = step.level;
      level.is_nested = true;
      node.inner = inside.levels();
      level.n_inner = static_cast<std::uint8_t>(node.inner.size());
      level.inner_lorenzo = inside.lorenzo();
      node.level = level;
      node.below = id;
      putTogether(node, base, step.base, axis, kernel, found.r);
    }
    frame_.core.stack.popTo(mark);
  }

  static void putTogether(Solved& node,
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

  const Frame& frame_;
  CodeBuffer& codes_;
  Axes axes_;
  std::uint32_t halvings_;
  bool is_nested_;
  std::map<std::uint32_t, Solved> solved_;
};

/// A part of a field as fixed point.
struct Crop {
  Extents n = {};
  Values x;
};

/// `eighths` of the way from the first to the last place where it fits.
Crop cropOf(const Core& core,
            const Source& source,
            const Extents& n,
            std::size_t n_values,
            std::uint32_t eighths) {
  Crop crop;
  crop.n = n;
  while (countOf(crop.n) > n_values) {
    const auto longest = std::max_element(crop.n.begin(), crop.n.end());
    if (*longest <= kLeastExtent) {
      break;
    }
    const std::uint64_t wanted = std::uint64_t{*longest} * n_values / countOf(crop.n);
    *longest = std::max<std::uint32_t>(
        {kLeastExtent, static_cast<std::uint32_t>(wanted), *longest - *longest / 4});
  }
  std::array<std::size_t, 3> first = {};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    first[axis] = std::uint64_t{n[axis] - crop.n[axis]} * eighths / 8;
  }
  Source part = source;
  part.data =
      static_cast<const std::uint8_t*>(source.data) +
      (first[0] + first[1] * source.row + first[2] * source.plane) * getDataTypeSize(source.type);
  crop.x.resize(countOf(crop.n));
  pickEven(core, part, crop.n, 0, latticeOf(crop.x, crop.n));
  return crop;
}

/// Turns levels into a plan that a config can hold: without its finest nested parts where they do
/// not fit.
std::optional<Plan> toPlan(const std::vector<Level>& levels,
                           Axes lorenzo,
                           bool has_alpha,
                           std::size_t max_bytes) {
  Plan plan;
  plan.has_alpha = has_alpha;
  plan.lorenzo = lorenzo;
  for (const Level& level : levels) {
    if (!plan.add(level)) {
      return std::nullopt;
    }
  }
  return planBytes(plan) <= max_bytes ? std::optional(plan) : std::nullopt;
}

class Tuner {
 public:
  Tuner(const Core& core,
        const Source& source,
        const Extents& n,
        std::uint32_t sub_bits,
        TuneFamily family,
        std::size_t max_plan_bytes)
      : core_(core),
        codes_(core.code_type),
        source_(source),
        n_(n),
        family_(family),
        max_plan_bytes_(max_plan_bytes) {
    frame_.sub_bits = sub_bits;
    frame_.n_axes = std::max(1u, countAxes(activeAxes(n)));
    frame_.has_gaps = source.has_gaps;
    crop_ = cropOf(core, source, n, kSearchValues, 4);
    if (countOf(n) <= 2 * kJudgeValues) {
      judged_.push_back(cropOf(core, source, n, countOf(n), 0));
    } else {
      for (const std::uint32_t eighths : {4u, 1u, 7u}) {
        judged_.push_back(cropOf(core, source, n, kJudgeValues, eighths));
      }
    }
  }

  Plan run() {
    if (family_ == TuneFamily::kLorenzo) {
      return bestLorenzo();
    }
    std::vector<Plan> plans = {isoPlan(n_), bestLorenzo()};
    std::vector<Plan> open = {isoPlan(n_)};
    if (const std::optional<Plan> found = search()) {
      open.push_back(*found);
    }
    for (Plan& plan : open) {
      for (const bool has_alpha : {false, true}) {
        frame_.has_alpha = has_alpha;
        plan.has_alpha = has_alpha;
        plans.push_back(refined(plan));
      }
    }
    return cheapest(plans);
  }

 private:
  std::optional<Plan> search() {
    Programme programme(frame_, codes_, activeAxes(n_), 0, false);
    const Crop& crop = crop_;
    programme.solve(crop.x, crop.n);
    return toPlan(programme.levels(), programme.lorenzo(), frame_.has_alpha, max_plan_bytes_);
  }

  Plan bestLorenzo() {
    std::vector<Plan> plans;
    const Axes active = activeAxes(n_);
    for (std::uint32_t set = 8; set-- > 0;) {
      if ((set & active) == set) {
        plans.push_back({});
        plans.back().lorenzo = static_cast<Axes>(set);
      }
    }
    return cheapest(plans);
  }

  /// The same levels, with the best of all weights. Inner levels of nested ones stay as they are.
  Plan refined(const Plan& plan) {
    Crop& crop = crop_;
    Plan made = fittedPlan(plan, crop.n);
    if (made.n_levels != plan.n_levels) {
      return plan;  // the crop is too small for all of them
    }
    Values r;
    refineFrom(made, made.n_levels, crop.x, crop.n, 0, r);
    made.lorenzo = plan.lorenzo;
    return made;
  }

  /// Refines the first n_levels of a plan on their lattice; r: what they reconstruct.
  void refineFrom(
      Plan& plan, std::size_t n_levels, Values& x, const Extents& n, std::uint32_t h, Values& r) {
    r.resize(x.size());
    const Source source = sourceOf(latticeOf(x, n), frame_.has_gaps);
    PlanStep step = wholePlan(plan, n, frame_.sub_bits);
    step.steps.levels = step.steps.levels.first(n_levels);
    step.n_axes = frame_.n_axes;
    step.halvings = h;
    if (n_levels == 0) {
      encodePlan(core_, step, source, codes_.reserve(stepsCodes(step.steps, n)), latticeOf(r, n));
      return;
    }
    const std::size_t n_group = finest(step.steps.levels).size();
    const std::size_t at = n_levels - n_group;
    Level& level = plan.levels[at];
    const Axes axes = level.axes;
    const Extents n_below = halved(n, axes);
    Values x_below(countOf(n_below));
    pickEven(core_, source, n, axes, latticeOf(x_below, n_below));
    Values r_below;
    refineFrom(plan, at, x_below, n_below, h + countAxes(axes), r_below);
    if (level.is_nested) {
      encodePlan(core_, step, source, codes_.reserve(stepsCodes(step.steps, n)), latticeOf(r, n));
      return;
    }
    const std::size_t mark = core_.stack.top();
    LevelStep one;
    one.level = level;
    one.bin = frame_.bin(h);
    one.n = n;
    one.base = withGhosts(core_, r_below, n_below, axes, n);
    LevelTuner tuner(frame_, codes_);
    tuner.choose(one, source, true);
    tuner.run(one, source, latticeOf(r, n));
    core_.stack.popTo(mark);
    level = one.level;
  }

  Cost costOf(const Plan& plan) {
    ClassCost total;
    for (Crop& crop : judged_) {
      const Plan fitted = fittedPlan(plan, crop.n);
      PlanStep step = wholePlan(fitted, crop.n, frame_.sub_bits);
      step.n_axes = frame_.n_axes;
      const std::uint64_t n_codes = stepsCodes(step.steps, crop.n);
      encodePlan(core_, step, sourceOf(latticeOf(crop.x, crop.n), frame_.has_gaps),
                 codes_.reserve(n_codes), {});
      codes_.addTo(total, n_codes);
    }
    return total.total() + 8 * 1024 * planBytes(plan);
  }

  Plan cheapest(const std::vector<Plan>& plans) {
    Cost best = std::numeric_limits<Cost>::max();
    Plan chosen = fittedPlan(plans.front(), n_);
    for (const Plan& plan : plans) {
      const Plan fitted = fittedPlan(plan, n_);
      if (planBytes(fitted) > max_plan_bytes_ || stepsCodes(fitted.steps(), n_) > tunedCodes(n_)) {
        continue;
      }
      const Cost cost = costOf(fitted);
      if (cost < best) {
        best = cost;
        chosen = fitted;
      }
    }
    return chosen;
  }

  const Core& core_;
  Frame frame_ = {core_};
  CodeBuffer codes_;
  Source source_;
  Extents n_;
  TuneFamily family_;
  std::size_t max_plan_bytes_;
  Crop crop_;                 // to search
  std::vector<Crop> judged_;  // to choose among what was found
};

}  // namespace

std::uint64_t tunedCodes(const Extents& n) {
  const std::uint64_t most =
      std::max(stepsCodes(isoPlan(n).steps(), n), stepsCodes(lorenzoPlan(n).steps(), n));
  return most + most / 4 + 4096;
}

Plan tunePlan(const Core& core,
              const Source& source,
              const Extents& n,
              std::uint32_t sub_bits,
              TuneFamily family,
              std::size_t max_plan_bytes) {
  if (countOf(n) == 0) {
    return lorenzoPlan(n);
  }
  return Tuner(core, source, n, sub_bits, family, max_plan_bytes).run();
}

}  // namespace fz::interp
