// Levels from coarse to fine, on lattices that hold only their own points.
#include "fused/interp/cuda/walk.h"

#include <algorithm>
#include <utility>

#include <cuda_runtime_api.h>

#include "cuda_check.h"
#include "fz/cuda_part.h"
#include "shared/bits.h"

namespace fz::interp::device {

namespace {

constexpr std::size_t kAlignment = 256;
/// Rows begin with so many values of room, and are a multiple of it: points 2 i and 2 i + 1 lie
/// together, and in long rows warps find whole lines of the cache.
std::uint32_t rowAlignment(std::uint32_t n) {
  return n >= 128 ? 32 : 4;
}

Points pointsFrom(const Extents& n) {
  return {{n[0], n[1], n[2]}};
}

CodePlaces codePlaces(const CodeArray& array, std::uint64_t start) {
  CodePlaces places = {};
  for (unsigned axis = 0; axis < 3; ++axis) {
    places.n[axis] = array.n[axis];
    places.log2[axis] = array.log2[axis];
    places.n_padded[axis] = array.n_blocks[axis] << array.log2[axis];
  }
  places.block_step = {{1, array.n_blocks[0], array.n_blocks[0] * array.n_blocks[1]}};
  places.shift = {{0, array.log2[0], array.log2[0] + array.log2[1]}};
  places.start = start;
  return places;
}

template <class T>
void swapYz(Three<T>& three) {
  std::swap(three[1], three[2]);
}
void turn(CodePlaces& places) {
  swapYz(places.n);
  swapYz(places.n_padded);
  swapYz(places.log2);
  swapYz(places.block_step);
  swapYz(places.shift);
}

/// Kernels go along z: a level of y but not z is turned.
bool isTurned(Axes axes) {
  return (axes & kY) != 0 && (axes & kZ) == 0;
}
Axes turned(Axes axes) {
  return isTurned(axes) ? static_cast<Axes>((axes & ~kY) | kZ) : axes;
}
void turn(LevelJob& job) {
  swapYz(job.n);
  swapYz(job.cells);
  swapYz(job.kernels);
  swapYz(job.base.step);
  swapYz(job.source.step);
  swapYz(job.result.step);
  swapYz(job.marks.places.step);
  for (CodePlaces& places : job.classes) {
    turn(places);
  }
}

}  // namespace

std::uint8_t* Arena::take(std::size_t n_bytes) {
  const std::size_t place = top_;
  top_ += bits::roundUp(n_bytes, kAlignment);
  most_ = std::max(most_, top_);
  return isMeasuring() ? nullptr : base_ + place;
}

Grid fieldGrid(const void* data, DataType type, const Extents& n) {
  return {const_cast<void*>(data),  // NOLINT: one struct for both directions
          type,
          {{1, std::int64_t{n[0]}, std::int64_t{n[0]} * n[1]}},
          true,
          false};
}

Grid Walk::lattice(const Extents& n, Axes ghosts) {
  const auto room = [&](std::size_t axis) { return has(ghosts, axis) ? 3 : 0; };
  const auto before = [&](std::size_t axis) { return has(ghosts, axis) ? 1 : 0; };
  Grid grid = {};
  grid.type = DataType::INT32;
  grid.exists = true;
  const std::uint32_t alignment = rowAlignment(n[0]);
  const std::uint32_t first = has(ghosts, 0) ? alignment : 0;
  const std::uint64_t row =
      bits::roundUp<std::uint64_t>(first + std::uint64_t{n[0]} + (first == 0 ? 0 : 2), alignment);
  const std::uint64_t plane = row * (n[1] + static_cast<std::uint64_t>(room(1)));
  grid.step = {{1, static_cast<std::int64_t>(row), static_cast<std::int64_t>(plane)}};
  const std::uint64_t n_values = plane * (n[2] + static_cast<std::uint64_t>(room(2)));
  auto* const memory =
      reinterpret_cast<std::int32_t*>(arena_.take(n_values * sizeof(std::int32_t)));
  if (memory != nullptr) {
    grid.data = memory + before(2) * grid.step[2] + before(1) * grid.step[1] + first;
  }
  return grid;
}

Marks Walk::marksAt(const Places& places, bool may_test) const {
  Marks marks = marks_;
  marks.may_test = may_test && marks.field != nullptr;
  marks.places = {places.first, {{places.step[0], places.step[1], places.step[2]}}};
  return marks;
}

std::uint8_t* Walk::codesAfter(const PlanStep& below, std::uint8_t* codes) const {
  return codes + stepsCodes(below.steps, below.n) * getDataTypeSize(code_type_);
}

void Walk::fillGhosts(const PlanStep& plan, const Grid& base) {
  const Axes axes = finest(plan.steps.levels).front().axes;
  GhostJob job = {};
  job.setup = setup_;
  job.base = base;
  job.n = pointsFrom(halved(plan.n, axes));
  for (unsigned axis = 0; axis < 3; ++axis) {
    job.is_fine_odd[axis] = plan.n[axis] % 2;
    job.has_axis[axis] = has(axes, axis) ? 1 : 0;
  }
  if (!arena_.isMeasuring()) {
    launchGhosts(job, call_);
  }
}

LevelJob Walk::levelJob(const PlanStep& plan, const Grid& base, std::uint8_t* codes) const {
  const Level& level = finest(plan.steps.levels).front();
  LevelJob job = {};
  job.setup = setup_;
  job.halvings = plan.halvings;
  job.axes = turned(level.axes);
  job.n = pointsFrom(plan.n);
  job.cells = pointsFrom(halved(plan.n, level.axes));
  job.kernels = {{level.kernels[0], level.kernels[1], level.kernels[2]}};
  for (std::size_t pair = 0; pair < 3; ++pair) {
    const Axes odd = kPairs[pair];
    if ((odd & ~level.axes) == 0) {
      const auto& weights = kPairSets[level.pair_sets[pair]];
      // Turned, xy becomes xz, and x stays the first of the two.
      std::int32_t(&to)[2] = job.pair_weights[isTurned(level.axes) ? kX | kZ : odd];
      to[0] = 2 * weights[0];
      to[1] = 2 * weights[1];
    }
  }
  for (std::size_t i = 0; i < 6; ++i) {
    job.cube_weights[i] = (i < 3 ? 2 : 1) * kCubeSets[level.cube_set][i];
  }
  std::uint64_t start = 0;
  for (const Axes odd : kClasses) {
    if ((odd & ~level.axes) == 0) {
      const CodeArray array = makeCodeArray(pointsOf(plan.n, level.axes, odd));
      const Axes place =
          isTurned(level.axes) && (odd & kY) != 0 ? static_cast<Axes>((odd & ~kY) | kZ) : odd;
      job.classes[place] = codePlaces(array, start);
      start += array.codes();
    }
  }
  job.base = base;
  job.codes = codes;
  job.code_bytes = static_cast<std::uint32_t>(getDataTypeSize(code_type_));
  job.marks = marksAt(plan.places, true);
  return job;
}

NestedJob Walk::nestedJob(const PlanStep& plan, const Grid& base) const {
  const Level& level = finest(plan.steps.levels).front();
  const PlanStep inside = inner(plan);
  NestedJob job = {};
  job.setup = setup_;
  job.axis = level.axes == kX ? 0 : level.axes == kY ? 1 : 2;
  job.kernel = level.kernels[job.axis];
  job.n = pointsFrom(plan.n);
  job.n_odd = pointsFrom(inside.n);
  job.base = base;
  job.marks = marksAt(inside.places, true);
  return job;
}

EndJob Walk::endJob(const PlanStep& plan, std::uint8_t* codes) const {
  EndJob job = {};
  job.setup = setup_;
  job.halvings = plan.halvings;
  job.axes = plan.steps.lorenzo;
  job.n = pointsFrom(plan.n);
  job.is_nested = plan.is_nested;
  job.array = codePlaces(makeCodeArray(plan.n), 0);
  job.codes = codes;
  job.code_bytes = static_cast<std::uint32_t>(getDataTypeSize(code_type_));
  return job;
}

void Walk::encodeEnd(
    const PlanStep& plan, const Grid& source, std::uint8_t* codes, const Grid& out, bool may_test) {
  if (plan.n[0] == 0 || plan.n[1] == 0 || plan.n[2] == 0) {
    return;
  }
  const std::size_t mark = arena_.top();
  EndJob job = endJob(plan, codes);
  job.source = source;
  job.bins = out.exists ? out : lattice(plan.n, 0);
  job.is_result_wanted = out.exists;
  job.marks = marksAt(plan.places, may_test);
  const std::size_t n_rows = std::size_t{plan.n[1]} * plan.n[2];
  const std::size_t n_bytes = sizeof(EndState) + n_rows * sizeof(std::uint32_t);
  std::uint8_t* const state = arena_.take(n_bytes);
  if (!arena_.isMeasuring()) {
    job.state = reinterpret_cast<EndState*>(state);
    job.progress = reinterpret_cast<std::uint32_t*>(state + sizeof(EndState));
    FZ_CUDA_CHECK(cudaMemsetAsync(state, 0, n_bytes, call_.stream));
    launchEncodeEnd(job, call_);
  }
  arena_.popTo(mark);
}

void Walk::decodeEnd(const PlanStep& plan, const std::uint8_t* codes, const Grid& out) {
  if (plan.n[0] == 0 || plan.n[1] == 0 || plan.n[2] == 0) {
    return;
  }
  const std::size_t mark = arena_.top();
  EndJob job = endJob(plan, const_cast<std::uint8_t*>(codes));  // NOLINT: for both directions
  job.result = out;
  const bool is_by_blocks = decodesByBlocks(job);
  // With one axis sums go straight to the result.
  const bool has_sums = !is_by_blocks && countAxes(plan.steps.lorenzo) > 1;
  job.bins = has_sums && out.type != DataType::INT32 ? lattice(plan.n, 0) : out;
  const std::uint64_t n_sums = is_by_blocks ? blockSums(job) : endSums(job.n, job.axes);
  job.sums = reinterpret_cast<std::int32_t*>(arena_.take(n_sums * sizeof(std::int32_t)));
  if (!arena_.isMeasuring()) {
    is_by_blocks ? launchDecodeBlocks(job, call_) : launchDecodeEnd(job, call_);
  }
  arena_.popTo(mark);
}

void Walk::encodeNested(const PlanStep& plan,
                        const Grid& source,
                        const Grid& base,
                        std::uint8_t* codes,
                        const Grid& out,
                        bool may_test) {
  const PlanStep inside = inner(plan);
  NestedJob job = nestedJob(plan, base);
  job.source = source;
  job.result = out;
  job.marks.may_test = job.marks.may_test && may_test;
  job.difference = lattice(inside.n, 0);
  Grid found = lattice(inside.n, 0);
  found.is_for_tests = !out.exists || out.is_for_tests;
  if (!arena_.isMeasuring()) {
    launchDiffer(job, call_);
  }
  // Differences are tested when they are values again.
  encodeSteps(inside, job.difference, codes, found, false);
  job.difference = found;
  if (!arena_.isMeasuring()) {
    launchMerge(job, call_);
  }
}

void Walk::encodeSteps(
    const PlanStep& plan, const Grid& source, std::uint8_t* codes, const Grid& out, bool may_test) {
  if (plan.steps.levels.empty()) {
    encodeEnd(plan, source, codes, out, may_test);
    return;
  }
  const std::size_t mark = arena_.top();
  const Level& level = finest(plan.steps.levels).front();
  const PlanStep below = coarser(plan);
  const Grid base = lattice(below.n, level.axes);
  const std::size_t mark_below = arena_.top();
  PickJob pick = {};
  pick.setup = setup_;
  pick.source = source;
  pick.n = pointsFrom(below.n);
  for (unsigned axis = 0; axis < 3; ++axis) {
    pick.stride[axis] = has(level.axes, axis) ? 2 : 1;
  }
  pick.out = lattice(below.n, 0);
  if (!arena_.isMeasuring()) {
    launchPick(pick, call_);
  }
  encodeSteps(below, pick.out, codes, base, may_test);
  arena_.popTo(mark_below);
  fillGhosts(plan, base);
  std::uint8_t* const own = codesAfter(below, codes);
  if (level.is_nested) {
    encodeNested(plan, source, base, own, out, may_test);
  } else if (!arena_.isMeasuring()) {
    LevelJob job = levelJob(plan, base, own);
    job.source = source;
    job.result = out;
    job.marks.may_test = job.marks.may_test && may_test;
    if (isTurned(level.axes)) {
      turn(job);
    }
    launchEncodeLevel(job, call_);
  }
  arena_.popTo(mark);
}

void Walk::decode(const PlanStep& plan, const std::uint8_t* codes, const Grid& out) {
  if (plan.steps.levels.empty()) {
    decodeEnd(plan, codes, out);
    return;
  }
  const std::size_t mark = arena_.top();
  const Level& level = finest(plan.steps.levels).front();
  const PlanStep below = coarser(plan);
  const Grid base = lattice(below.n, level.axes);
  decode(below, codes, base);
  fillGhosts(plan, base);
  auto* const own = codesAfter(below, const_cast<std::uint8_t*>(codes));  // NOLINT: see above
  if (level.is_nested) {
    const PlanStep inside = inner(plan);
    NestedJob job = nestedJob(plan, base);
    job.marks.may_test = false;
    job.result = out;
    job.difference = lattice(inside.n, 0);
    decode(inside, own, job.difference);
    if (!arena_.isMeasuring()) {
      launchMerge(job, call_);
    }
  } else if (!arena_.isMeasuring()) {
    LevelJob job = levelJob(plan, base, own);
    job.result = out;
    if (isTurned(level.axes)) {
      turn(job);
    }
    launchDecodeLevel(job, call_);
  }
  arena_.popTo(mark);
}

}  // namespace fz::interp::device
