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

using Values = std::vector<std::int32_t>;

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

void expectCostsOfEnds() {
  Worker worker;
  worker.setType(DataType::INT32);
  const Core core = worker.core(1);
  for (const Extents& n : kExtents) {
    for (const std::int32_t units : {256, 204, 1}) {
      for (const bool has_gaps : {false, true}) {
        Values x = walk(n, has_gaps);
        const Bin bin = makeBin(units);
        const auto costs = costsOfEnds({x, n, bin}, 1, worker);
        for (std::uint32_t set = 0; set < 8; ++set) {
          if ((set & ~activeAxes(n)) != 0) {
            continue;
          }
          CodeBuffer codes;
          const std::uint64_t n_codes = makeCodeArray(n).codes();
          encodeLorenzo(core, {static_cast<Axes>(set), bin, n, true, {}},
                        sourceOf(latticeOf(x.data(), n), has_gaps), codes.reserve(n_codes), {});
          EXPECT_EQ(costs[set], codes.cost(0, n_codes))
              << n[0] << " x " << n[1] << " x " << n[2] << ", set " << set << ", bin " << units;
        }
      }
    }
  }
}

void expectCostsOfKernels() {
  Worker worker;
  worker.setType(DataType::INT32);
  const Core core = worker.core(1);
  for (const Extents& n : kExtents) {
    for (std::uint32_t set = 1; set < 8; ++set) {
      const auto axes = static_cast<Axes>(set);
      if ((axes & ~activeAxes(n)) != 0) {
        continue;
      }
      for (const std::int32_t units : {256, 204}) {
        Values x = walk(n, true);
        const Source source = sourceOf(latticeOf(x.data(), n), true);
        const Extents n_below = halved(n, axes);
        const std::size_t mark = core.stack.top();
        LevelStep step;
        step.level.axes = axes;
        step.bin = makeBin(units);
        step.n = n;
        step.base = withGhosts(worker, walk(n_below, false).data(), n_below, axes, n);
        for (std::size_t kernel = 0; kernel < kKernels; ++kernel) {
          step.level.kernels.fill(static_cast<Kernel>(kernel));
          CodeBuffer codes;
          encodeLevel(core, step, source, codes.reserve(levelCodes(n, axes)), {});
          std::uint64_t first = 0;
          for (std::size_t axis = 0; axis < 3; ++axis) {
            if (!has(axes, axis)) {
              continue;
            }
            const std::uint64_t n_codes =
                makeCodeArray(pointsOf(n, axes, static_cast<Axes>(1u << axis))).codes();
            const auto costs = costsOfKernels({step, source, axis}, 1, worker);
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

TEST(InterpProbe, BlocksCostWhatTheirSizesSay) {
  onEveryTarget([] {
    std::mt19937 rng(5);
    std::vector<std::int32_t> wide(64 * 300);
    std::vector<std::int16_t> narrow(wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const std::uint32_t magnitude = i / 64 % 7 == 0 ? 0 : 1u << (i / 64 % 15);
      narrow[i] = static_cast<std::int16_t>(rng() % (2 * magnitude + 1) - magnitude);
      wide[i] = narrow[i];
    }
    std::vector<std::uint32_t> sizes(300);
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const auto twice = static_cast<std::uint32_t>(wide[i]) << 1;
      sizes[i / 64] += sizeOf(twice ^ static_cast<std::uint32_t>(wide[i] >> 31));
    }
    const std::uint64_t expected = costOfSums(sizes, 1);
    EXPECT_EQ(blockCost(std::span<const std::int32_t>(wide)), expected);
    EXPECT_EQ(blockCost(std::span<const std::int16_t>(narrow)), expected);
  });
}

TEST(InterpProbe, AFirstLookIsNearTheWhole) {
  // Alike everywhere, so any rows of blocks tell what all cost.
  const Extents n = {61, 67, 53};
  const Values x = walk(n, true);
  Worker worker;
  for (const bool fills_gaps : {false, true}) {
    const EndProbe probe = {x, n, makeBin(256), fills_gaps};
    const auto all = costsOfEnds(probe, 1, worker);
    for (const OneIn one_in : {2u, 3u, 8u}) {
      const auto some = costsOfEnds(probe, one_in, worker);
      for (std::size_t set = 0; set < all.size(); ++set) {
        EXPECT_NEAR(static_cast<double>(some[set]), static_cast<double>(all[set]),
                    0.03 * static_cast<double>(all[set]))
            << "set " << set << ", one in " << one_in;
      }
    }
  }
}

TEST(InterpProbe, KernelsCostWhatTheirCodesCost) {
  onEveryTarget(expectCostsOfKernels);
}

}  // namespace
}  // namespace fz::interp
