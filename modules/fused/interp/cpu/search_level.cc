#include "fused/interp/cpu/search_level.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace fz::interp {

namespace {

// A first look at a lattice takes this part of it, but not less than these points.
constexpr std::size_t kLookShare = 8;
constexpr std::size_t kLookRows = 32;  // of blocks
constexpr std::size_t kLookValues = std::size_t{1} << 13;

// Choices inside a step are made on a part of its lattice of about this many points.
constexpr std::size_t kPartValues = std::size_t{1} << 13;

// What is tried for the weights while the plan is open: all, half and none of the correction.
struct FewSets {
  std::uint8_t pair, cube;
};
constexpr std::array<FewSets, 3> kFewSets = {{{0, 0}, {2, 4}, {4, 3}}};
// So many threads may wait for less than what is saved where one of them tries less.
constexpr std::size_t kManyThreads = 6;

// The classes that weights change.
constexpr std::array<Axes, 4> kCorrected = {kX | kY, kX | kZ, kY | kZ, kXyz};

// Sets for xyz: all, half and none of the correction; those next to each; and those that trust some
// axes more than others, which are looked at where pairs do.
constexpr std::array<std::uint8_t, 3> kPlainCubes = {0, 2, 3};
constexpr std::array<std::uint8_t, 2> kStrongCubes = {1, 4};
constexpr std::array<std::uint8_t, 4> kMiddleCubes = {1, 4, 5, 6};
constexpr std::array<std::uint8_t, 2> kWeakCubes = {5, 6};
constexpr std::array<std::uint8_t, 6> kSlantCubes = {7, 8, 9, 10, 11, 12};

std::size_t stepAlong(std::size_t axis, std::size_t row, std::size_t plane) {
  return axis == 0 ? 1 : axis == 1 ? row : plane;
}
std::size_t pairPlace(Axes pair) {
  return static_cast<std::size_t>(std::find(kPairs.begin(), kPairs.end(), pair) - kPairs.begin());
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

OneIn firstLook(const Extents& n) {
  const CodeArray array = makeCodeArray(n);
  const std::size_t n_rows = std::size_t{array.n_blocks[1]} * array.n_blocks[2];
  const std::size_t most = std::min(kLookShare, std::max<std::size_t>(1, n_rows / kLookRows));
  return static_cast<OneIn>(std::clamp<std::size_t>(countOf(n) / kLookValues, 1, most));
}

namespace {

/// probe(rows, one_in, memory) for all rows of blocks, in pieces where others may help.
template <std::size_t kWays, class Probe>
std::array<Cost, kWays> costsBy(const CodeArray& array, OneIn one_in, Worker& worker, Probe probe) {
  constexpr std::size_t kMostPieces = 16;
  constexpr std::size_t kPieceValues = std::size_t{1} << 13;
  const std::size_t n_rows = blockRowsOf(array).end;
  const std::size_t n_values = countOf(array.n) / one_in;
  const std::size_t n_pieces =
      worker.teamSize() > 1 ? std::clamp<std::size_t>(n_values / kPieceValues, 1, kMostPieces) : 1;
  std::array<Look<kWays>, kMostPieces> looks;
  worker.forEach(n_pieces, n_values, [&](std::size_t i, Worker& by) {
    const BlockRows rows = {i * n_rows / n_pieces, (i + 1) * n_rows / n_pieces};
    looks[i] = probe(rows, one_in, by.probe_memory);
  });
  Look<kWays> all;
  for (const Look<kWays>& look : std::span(looks).first(n_pieces)) {
    std::transform(all.costs.begin(), all.costs.end(), look.costs.begin(), all.costs.begin(),
                   std::plus<>());
    all.n_rows += look.n_rows;
  }
  if (all.n_rows == 0 && one_in != 1) {
    return costsBy<kWays>(array, 1, worker, probe);
  }
  const std::uint64_t all_rows = std::uint64_t{array.n[1]} * array.n[2];
  for (Cost& cost : all.costs) {
    cost = all.n_rows == all_rows ? cost : cost * all_rows / all.n_rows;
  }
  return all.costs;
}

}  // namespace

std::array<Cost, 8> costsOfEnds(const EndProbe& probe, OneIn one_in, Worker& worker) {
  return costsBy<8>(makeCodeArray(probe.n), one_in, worker,
                    [&](BlockRows rows, OneIn looked_at, ProbeMemory& memory) {
                      return probeEnds(probe, looked_at, rows, memory);
                    });
}

std::array<Cost, kKernels> costsOfKernels(const KernelProbe& probe, OneIn one_in, Worker& worker) {
  return costsBy<kKernels>(probe.array(), one_in, worker,
                           [&](BlockRows rows, OneIn looked_at, ProbeMemory& memory) {
                             return probeKernels(probe, looked_at, rows, memory);
                           });
}

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

Cost LevelTuner::choose(LevelStep& step, const Source& source, Cost limit) {
  const Cost cost = chooseKernels(step, source, firstLook(step.n));
  if (countAxes(step.level.axes) == 1 || cost >= limit) {
    return cost;
  }
  const Slab slab = slabOf(step.n, kPartValues);
  LevelStep part = partOf(step, slab);
  layOut(part.n, part.level.axes);
  const std::size_t n_all = countOf(step.n);
  const std::size_t n_part = countOf(part.n);
  const Cost rest = chooseFew(part, partOf(source, slab), (limit - cost) * n_part / n_all);
  step.level = part.level;
  return cost + rest * n_all / n_part;
}

void LevelTuner::refine(LevelStep& step, const Source& source) {
  chooseKernels(step, source, 1);
  if (countAxes(step.level.axes) == 1) {
    return;
  }
  const Slab slab = slabOf(step.n, 4 * kPartValues);
  LevelStep part = partOf(step, slab);
  layOut(part.n, part.level.axes);
  choosePairs(part, partOf(source, slab));
  if (part.level.axes == kXyz) {
    chooseCube(part, partOf(source, slab));
  }
  step.level = part.level;
}

Cost LevelTuner::run(const LevelStep& step, const Source& source, const Lattice& fine) {
  layOut(step.n, step.level.axes);
  code(step, source, fine, worker_);
  return worker_.costOfCodes(n_codes_);
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

void LevelTuner::code(const LevelStep& step,
                      const Source& source,
                      const Lattice& fine,
                      Worker& worker) const {
  encodeLevel(worker.core(countOf(step.n)), step, source, worker.codes.reserve(n_codes_), fine);
}

Cost LevelTuner::chooseKernels(LevelStep& step, const Source& source, OneIn one_in) {
  Cost total = 0;
  step.level.kernels.fill(Kernel::kCubic);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!has(step.level.axes, axis)) {
      continue;
    }
    const auto costs = costsOfKernels({step, source, axis}, one_in, worker_);
    Cost best = std::numeric_limits<Cost>::max();
    for (const Kernel kernel : {Kernel::kCubic, Kernel::kLinear, Kernel::kNatural}) {
      const Cost cost = costs[static_cast<std::size_t>(kernel)];
      if (cost < best) {
        best = cost;
        step.level.kernels[axis] = kernel;
      }
    }
    total += best;
  }
  return total;
}

Cost LevelTuner::chooseFew(LevelStep& step, const Source& source, Cost limit) {
  std::array<std::array<Cost, 8>, kFewSets.size()> costs;
  const auto look = [&](std::size_t first, std::size_t n_sets) {
    worker_.forEach(n_sets, n_sets * countOf(step.n), [&](std::size_t i, Worker& worker) {
      LevelStep tried = step;
      tried.level.pair_sets.fill(kFewSets[first + i].pair);
      tried.level.cube_set = kFewSets[first + i].cube;
      code(tried, source, {}, worker);
      for (const Axes odd : kCorrected) {
        costs[first + i][odd] = classCost(odd, worker);
      }
    });
  };
  // All at once, or one by one, as not all may be needed.
  const bool is_at_once = worker_.teamSize() >= kManyThreads;
  if (is_at_once) {
    look(0, kFewSets.size());
  }
  std::array<Cost, 8> best;
  best.fill(std::numeric_limits<Cost>::max());
  Level chosen = step.level;
  Cost total = 0;
  for (std::size_t set = 0; set < kFewSets.size(); ++set) {
    if (!is_at_once) {
      look(set, 1);
    }
    total = 0;
    bool has_gained = false;
    for (const Axes odd : kCorrected) {
      if ((odd & ~step.level.axes) != 0) {
        continue;
      }
      if (costs[set][odd] < best[odd]) {
        best[odd] = costs[set][odd];
        has_gained = true;
        if (odd == kXyz) {
          chosen.cube_set = kFewSets[set].cube;
        } else {
          chosen.pair_sets[pairPlace(odd)] = kFewSets[set].pair;
        }
      }
      total += best[odd];
    }
    // Weights are no better where less of them is worse already; and they gain less than a quarter.
    if ((set > 0 && !has_gained) || total - total / 4 >= limit) {
      break;
    }
  }
  step.level = chosen;
  return total;
}

void LevelTuner::choosePairs(LevelStep& step, const Source& source) {
  std::array<std::array<Cost, 3>, kPairSets.size()> costs = {};
  worker_.forEach(kPairSets.size(), kPairSets.size() * countOf(step.n),
                  [&](std::size_t set, Worker& worker) {
                    LevelStep tried = step;
                    tried.level.pair_sets.fill(static_cast<std::uint8_t>(set));
                    code(tried, source, {}, worker);
                    for (std::size_t i = 0; i < 3; ++i) {
                      costs[set][i] = classCost(kPairs[i], worker);
                    }
                  });
  for (std::size_t i = 0; i < 3; ++i) {
    const auto best = std::min_element(costs.begin(), costs.end(),
                                       [&](const auto& a, const auto& b) { return a[i] < b[i]; });
    step.level.pair_sets[i] = static_cast<std::uint8_t>(best - costs.begin());
  }
}

void LevelTuner::chooseCube(LevelStep& step, const Source& source) {
  std::array<Cost, kCubeSets.size()> costs;
  costs.fill(std::numeric_limits<Cost>::max());
  std::uint8_t chosen = 0;
  const auto look = [&](std::span<const std::uint8_t> sets) {
    worker_.forEach(sets.size(), sets.size() * countOf(step.n), [&](std::size_t i, Worker& worker) {
      LevelStep tried = step;
      tried.level.cube_set = sets[i];
      code(tried, source, {}, worker);
      costs[sets[i]] = classCost(kXyz, worker);
    });
    for (const std::uint8_t set : sets) {
      chosen = costs[set] < costs[chosen] ? set : chosen;
    }
  };
  look(kPlainCubes);
  look(chosen == 0   ? std::span<const std::uint8_t>(kStrongCubes)
       : chosen == 3 ? std::span<const std::uint8_t>(kWeakCubes)
                     : std::span<const std::uint8_t>(kMiddleCubes));
  const bool is_aslant =
      std::any_of(step.level.pair_sets.begin(), step.level.pair_sets.end(),
                  [](std::uint8_t set) { return kPairSets[set][0] != kPairSets[set][1]; });
  if (is_aslant) {
    look(kSlantCubes);
  }
  step.level.cube_set = chosen;
}

Lattice withGhosts(Worker& worker,
                   const std::int32_t* values,
                   const Extents& n,
                   Axes axes,
                   const Extents& n_fine) {
  const Core core = worker.core(countOf(n) / 8);
  const Lattice base = core.stack.lattice(core.pool, n, axes);
  parallelFor(core.executor, std::size_t{n[1]} * n[2], [&](std::size_t row) {
    std::copy_n(values + row * n[0], n[0], base.at(row % n[1], row / n[1]));
  });
  fillGhosts(core, base, axes, n_fine);
  return base;
}

}  // namespace fz::interp
