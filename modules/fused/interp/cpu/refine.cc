#include "fused/interp/cpu/refine.h"

#include "fused/interp/plan_state.h"

namespace fz::interp {

bool Refiner::refine(Plan& plan, const Crop& crop, ClassCost* codes) {
  Plan made = fittedPlan(plan, crop.n);
  if (made.n_levels != plan.n_levels) {
    return false;
  }
  codes_ = codes;
  const std::size_t mark = worker_.stack.top();
  refineTo(made, {made.n_levels, crop.n, 0, crop.x, nullptr});
  worker_.stack.popTo(mark);
  made.lorenzo = plan.lorenzo;
  plan = made;
  return true;
}

void Refiner::refineTo(Plan& plan, const Target& target) {
  const Steps steps = {std::span(plan.levels).first(target.n_levels), plan.lorenzo};
  if (target.n_levels == 0) {
    codeAll(plan, target);
    return;
  }
  const std::size_t at = target.n_levels - finest(steps.levels).size();
  const Axes axes = plan.levels[at].axes;
  Target below = {at, halved(target.n, axes), target.halvings + countAxes(axes), nullptr, nullptr};
  const std::size_t n_below = countOf(below.n);
  below.x = worker_.stack.values(nullptr, n_below);
  below.r = worker_.stack.values(nullptr, n_below);
  const Source source = sourceOf(latticeOf(target.x, target.n), settings_.has_gaps);
  pickEven(worker_.core(n_below / 4), source, target.n, axes, latticeOf(below.x, below.n));
  refineTo(plan, below);
  if (plan.levels[at].is_nested) {
    codeAll(plan, target);
  } else {
    refineLevel(plan, at, target, latticeOf(below.r, below.n));
  }
}

void Refiner::refineLevel(Plan& plan, std::size_t at, const Target& target, const Lattice& below) {
  const std::size_t mark = worker_.stack.top();
  const Source source = sourceOf(latticeOf(target.x, target.n), settings_.has_gaps);
  LevelStep one;
  one.level = plan.levels[at];
  one.bin = settings_.bin(target.halvings, plan.has_alpha);
  one.n = target.n;
  one.base = withGhosts(worker_, below.data, below.n, one.level.axes, target.n);
  LevelTuner tuner(worker_);
  if (target.halvings == 0 && plan.has_alpha) {
    // Bins are as without alpha here, and so are weights.
    tuner.chooseKernels(one, source, 1);
  } else {
    tuner.refine(one, source);
  }
  if (target.r != nullptr || codes_ != nullptr) {
    tuner.run(one, source, target.r == nullptr ? Lattice{} : latticeOf(target.r, target.n));
  }
  if (codes_ != nullptr) {
    worker_.addCodesTo(*codes_, tuner.codes());
  }
  plan.levels[at] = one.level;
  worker_.stack.popTo(mark);
}

void Refiner::codeAll(const Plan& plan, const Target& target) {
  if (target.r == nullptr && codes_ == nullptr) {
    return;
  }
  PlanStep step = wholePlan(plan, target.n, settings_.sub_bits);
  step.steps.levels = step.steps.levels.first(target.n_levels);
  step.n_axes = settings_.n_axes;
  step.halvings = target.halvings;
  const std::uint64_t n_codes = stepsCodes(step.steps, target.n);
  encodePlan(worker_.core(countOf(target.n)), step,
             sourceOf(latticeOf(target.x, target.n), settings_.has_gaps),
             worker_.codes.reserve(n_codes),
             target.r == nullptr ? Lattice{} : latticeOf(target.r, target.n));
  if (codes_ != nullptr) {
    *codes_ = ClassCost();  // what was added came of the same levels
    worker_.addCodesTo(*codes_, n_codes);
  }
}

}  // namespace fz::interp
