// Whole plans: levels from coarse to fine, on lattices that hold only their own points.
#include "backends/cpu/parallel_for.h"
#include "fused/interp/cpu/args.h"

namespace fz::interp {

namespace {

// Lattices of fewer points are coded before other threads have begun.
constexpr std::uint64_t kLeastShared = std::uint64_t{1} << 13;

/// For the calling thread alone where that is quicker.
Core coreFor(const Core& core, const Extents& n) {
  const bool is_shared = std::uint64_t{n[0]} * n[1] * n[2] >= kLeastShared;
  return {is_shared ? core.executor : CpuExecutor::serial(),
          core.pool,
          core.stack,
          core.worker_memory,
          core.code_type,
          core.outliers,
          core.check};
}

LevelStep levelStep(const PlanStep& plan, const Lattice& base) {
  return {finest(plan.steps.levels).front(), plan.bin(), plan.n, base, plan.places};
}
LorenzoStep lorenzoStep(const PlanStep& plan) {
  return {plan.steps.lorenzo, plan.bin(), plan.n, plan.is_nested, plan.places};
}

NestedArgs nestedArgs(const Core& core, const PlanStep& plan, const Lattice& base) {
  const Level& level = finest(plan.steps.levels).front();
  NestedArgs args;
  args.axis = level.axes == kX ? 0 : level.axes == kY ? 1 : 2;
  args.kernel = level.kernels[args.axis];
  args.base = base;
  args.places = inner(plan).places;
  args.outliers = core.outliers;
  args.check = core.check;
  return args;
}

void encodeNested(const Core& core,
                  const PlanStep& plan,
                  const Source& source,
                  const Lattice& base,
                  void* codes,
                  const Lattice& out) {
  const PlanStep inside = inner(plan);
  NestedArgs args = nestedArgs(core, plan, base);
  args.source = source;
  args.result = resultOf(out);
  args.difference = core.stack.lattice(core.pool, inside.n, 0);
  forEachPart(core, inside.n, 1,
              [&](const LinePart& part, std::int32_t* memory) { differLine(args, part, memory); });
  Core inside_core = core;
  inside_core.check = nullptr;  // differences are tested when they are values again
  const bool is_wanted = out.data != nullptr || core.check != nullptr;
  const Lattice found = is_wanted ? core.stack.lattice(core.pool, inside.n, 0) : Lattice{};
  encodePlan(inside_core, inside, sourceOf(args.difference, source.has_gaps), codes, found);
  if (is_wanted) {
    args.difference = found;
    mergeNested(core, args, plan.n);
  }
}

std::uint8_t* codesAfter(const Core& core, const PlanStep& below, const void* codes) {
  const std::uint64_t n_codes = stepsCodes(below.steps, below.n);
  return static_cast<std::uint8_t*>(const_cast<void*>(codes)) +  // NOLINT: for both directions
         n_codes * getDataTypeSize(core.code_type);
}

}  // namespace

void mergeNested(const Core& core, const NestedArgs& args, const Extents& n) {
  const Axes axes = static_cast<Axes>(1u << args.axis);
  const Extents odd = pointsOf(n, axes, axes);
  forEachPart(core, odd, 2,
              [&](const LinePart& part, std::int32_t* memory) { mergeLine(args, part, memory); });
  if (args.result.data == nullptr) {
    return;
  }
  const Extents even = halved(n, axes);
  if (args.axis != 0) {
    forEachPart(core, even, 0,
                [&](const LinePart& part, std::int32_t* /*memory*/) { copyLine(args, part); });
  } else if (even[0] > odd[0]) {
    for (std::uint32_t row = 0; row < even[1] * even[2]; ++row) {
      copyLine(args, {odd[0], row % even[1], row / even[1], 1});
    }
  }
}

void encodePlan(
    const Core& core, const PlanStep& plan, const Source& source, void* codes, const Lattice& out) {
  if (plan.steps.levels.empty()) {
    encodeLorenzo(core, lorenzoStep(plan), source, codes, out);
    return;
  }
  const std::size_t mark = core.stack.top();
  const Level& level = finest(plan.steps.levels).front();
  const PlanStep below = coarser(plan);
  const Lattice base = core.stack.lattice(core.pool, below.n, level.axes);
  const std::size_t mark_below = core.stack.top();
  const Lattice even = core.stack.lattice(core.pool, below.n, 0);
  pickEven(core, source, plan.n, level.axes, even);
  encodePlan(coreFor(core, below.n), below, sourceOf(even, source.has_gaps), codes, base);
  core.stack.popTo(mark_below);
  fillGhosts(core, base, level.axes, plan.n);
  void* const own = codesAfter(core, below, codes);
  if (level.is_nested) {
    encodeNested(core, plan, source, base, own, out);
  } else {
    encodeLevel(core, levelStep(plan, base), source, own, out);
  }
  core.stack.popTo(mark);
}

void decodePlan(const Core& core, const PlanStep& plan, const void* codes, const Result& out) {
  if (plan.steps.levels.empty()) {
    decodeLorenzo(core, lorenzoStep(plan), codes, out);
    return;
  }
  const std::size_t mark = core.stack.top();
  const Level& level = finest(plan.steps.levels).front();
  const PlanStep below = coarser(plan);
  const Lattice base = core.stack.lattice(core.pool, below.n, level.axes);
  decodePlan(coreFor(core, below.n), below, codes, resultOf(base));
  fillGhosts(core, base, level.axes, plan.n);
  const void* const own = codesAfter(core, below, codes);
  if (level.is_nested) {
    const PlanStep inside = inner(plan);
    NestedArgs args = nestedArgs(core, plan, base);
    args.check = nullptr;
    args.result = out;
    args.difference = core.stack.lattice(core.pool, inside.n, 0);
    decodePlan(core, inside, own, resultOf(args.difference));
    mergeNested(core, args, plan.n);
  } else {
    decodeLevel(core, levelStep(plan, base), own, out);
  }
  core.stack.popTo(mark);
}

}  // namespace fz::interp
