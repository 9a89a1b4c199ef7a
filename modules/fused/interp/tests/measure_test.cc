// Probes of a search: what they say is what the codes would cost.
#include "fused/interp/cpu/measure.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <random>
#include <vector>

#include "backends/cpu/parallel_for.h"
#include "fused/interp/cpu/search_level.h"

namespace fz::interp {
namespace {

const Extents kExtents[] = {{37, 21, 13}, {64, 32, 16}, {5, 3, 2},   {70, 41, 1},
                            {500, 1, 1},  {3, 70, 9},   {17, 1, 33}, {1, 1, 1}};

/// Small steps from place to place, so that all kernels and differences have something to do.
Values walk(const Extents& n, bool has_gaps) {
  std::mt19937 rng(3);
  Values values(countOf(n));
  std::int32_t at = 1000;
  for (std::int32_t& value : values) {
    at += static_cast<std::int32_t>(rng() % 2001) - 1000;
    value = has_gaps && rng() % 9 == 0 ? kNoValue : at;
  }
  return values;
}

struct Memory {
  ScratchStack stack;
  Scratch workers;
  Core core() {
    return {CpuExecutor::serial(), nullptr, stack, workers, DataType::INT32, {}, nullptr};
  }
};

void expectCostsOfEnds() {
  Memory memory;
  const Core core = memory.core();
  ProbeMemory probe_memory;
  for (const Extents& n : kExtents) {
    for (const std::int32_t units : {256, 204, 1}) {
      for (const bool has_gaps : {false, true}) {
        Values x = walk(n, has_gaps);
        const Bin bin = makeBin(units);
        Values r(x.size());
        const auto costs = probeEnds({x, n, bin}, r, probe_memory);
        for (std::uint32_t set = 0; set < 8; ++set) {
          if ((set & ~activeAxes(n)) != 0) {
            continue;
          }
          CodeBuffer codes(DataType::INT32);
          const std::uint64_t n_codes = makeCodeArray(n).codes();
          Values coded(x.size());
          encodeLorenzo(core, {static_cast<Axes>(set), bin, n, true, {}},
                        sourceOf(latticeOf(x, n), has_gaps), codes.reserve(n_codes),
                        latticeOf(coded, n));
          EXPECT_EQ(costs[set], codes.cost(0, n_codes))
              << n[0] << " x " << n[1] << " x " << n[2] << ", set " << set << ", bin " << units;
          EXPECT_EQ(r, coded);
        }
      }
    }
  }
}

void expectCostsOfKernels() {
  Memory memory;
  const Core core = memory.core();
  ProbeMemory probe_memory;
  for (const Extents& n : kExtents) {
    for (std::uint32_t set = 1; set < 8; ++set) {
      const auto axes = static_cast<Axes>(set);
      if ((axes & ~activeAxes(n)) != 0) {
        continue;
      }
      for (const std::int32_t units : {256, 204}) {
        Values x = walk(n, true);
        const Source source = sourceOf(latticeOf(x, n), true);
        const Extents n_below = halved(n, axes);
        const std::size_t mark = core.stack.top();
        LevelStep step;
        step.level.axes = axes;
        step.bin = makeBin(units);
        step.n = n;
        step.base = withGhosts(core, walk(n_below, false), n_below, axes, n);
        for (std::size_t kernel = 0; kernel < kKernels; ++kernel) {
          step.level.kernels.fill(static_cast<Kernel>(kernel));
          CodeBuffer codes(DataType::INT32);
          encodeLevel(core, step, source, codes.reserve(levelCodes(n, axes)), {});
          std::uint64_t first = 0;
          for (std::size_t axis = 0; axis < 3; ++axis) {
            if (!has(axes, axis)) {
              continue;
            }
            const std::uint64_t n_codes =
                makeCodeArray(pointsOf(n, axes, static_cast<Axes>(1u << axis))).codes();
            const auto costs = probeKernels(step, source, axis, probe_memory);
            EXPECT_EQ(costs[kernel], codes.cost(first, n_codes))
                << n[0] << " x " << n[1] << " x " << n[2] << ", axes " << set << ", axis " << axis
                << ", kernel " << kernel << ", bin " << units;
            first += n_codes;
          }
        }
        core.stack.popTo(mark);
      }
    }
  }
}

/// What probes say decides bytes, so all machines must say the same.
template <class F>
void onEveryTarget(F f) {
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    SCOPED_TRACE(hwy::TargetName(left & -left));
    hwy::SetSupportedTargetsForTest(left & -left);
    hwy::GetChosenTarget().DeInit();
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

TEST(InterpProbe, EndsCostWhatTheirCodesCost) {
  onEveryTarget(expectCostsOfEnds);
}

TEST(InterpProbe, KernelsCostWhatTheirCodesCost) {
  onEveryTarget(expectCostsOfKernels);
}

}  // namespace
}  // namespace fz::interp
