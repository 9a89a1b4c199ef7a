#include "fused/interp/cpu/choose.h"

#include <limits>

namespace fz::interp {

namespace {

// Choices inside a step are made on a part of its lattice of about this many points.
constexpr std::size_t kPartValues = std::size_t{1} << 13;

// What is tried for the weights while the plan is open, and for the plan that was chosen.
constexpr std::array<std::uint8_t, 3> kFewPairs = {0, 2, 4};
constexpr std::array<std::uint8_t, 7> kAllPairs = {0, 1, 2, 3, 4, 5, 6};
constexpr std::array<std::uint8_t, 3> kFewCubes = {0, 4, 3};
constexpr std::array<std::uint8_t, 13> kAllCubes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

std::size_t stepAlong(std::size_t axis, std::size_t row, std::size_t plane) {
  return axis == 0 ? 1 : axis == 1 ? row : plane;
}
LevelStep partOf(const LevelStep& step, const Slab& slab) {
  LevelStep part = step;
  part.n = slab.n;
  part.base.n = halved(slab.n, step.level.axes);
  const std::uint32_t first = has(step.level.axes, slab.axis) ? slab.first / 2 : slab.first;
  part.base.data += first * stepAlong(slab.axis, step.base.row, step.base.plane);
  return part;
}

}  // namespace

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

Source partOf(const Source& source, const Slab& slab) {
  Source part = source;
  part.data =
      static_cast<const std::uint8_t*>(source.data) +
      slab.first * stepAlong(slab.axis, source.row, source.plane) * getDataTypeSize(source.type);
  return part;
}

Cost LevelTuner::choose(LevelStep& step, const Source& source, bool thorough) {
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

Cost LevelTuner::run(const LevelStep& step, const Source& source, const Lattice& fine) {
  layOut(step.n, step.level.axes);
  code(step, source, fine);
  return codes_.cost(0, n_codes_);
}

void LevelTuner::layOut(const Extents& n, Axes axes) {
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

void LevelTuner::code(const LevelStep& step, const Source& source, const Lattice& fine) {
  encodeLevel(context_.core, step, source, codes_.reserve(n_codes_), fine);
}

void LevelTuner::chooseKernels(LevelStep& step, const Source& source) {
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

void LevelTuner::choosePairs(LevelStep& step,
                             const Source& source,
                             std::span<const std::uint8_t> sets) {
  constexpr std::array<Axes, 3> kTwo = {kX | kY, kX | kZ, kY | kZ};
  std::array<Cost, 3> best;
  best.fill(std::numeric_limits<Cost>::max());
  std::array<std::uint8_t, 3> chosen = {};
  for (const std::uint8_t set : sets) {
    step.level.pair_sets.fill(set);
    code(step, source, {});
    for (std::size_t i = 0; i < 3; ++i) {
      if ((kTwo[i] & step.level.axes) == kTwo[i] && classCost(kTwo[i]) < best[i]) {
        best[i] = classCost(kTwo[i]);
        chosen[i] = set;
      }
    }
  }
  step.level.pair_sets = chosen;
  for (std::size_t i = 0; i < 3; ++i) {
    best_ += (kTwo[i] & step.level.axes) == kTwo[i] ? best[i] : 0;
  }
}

void LevelTuner::chooseCube(LevelStep& step,
                            const Source& source,
                            std::span<const std::uint8_t> sets) {
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

}  // namespace fz::interp
