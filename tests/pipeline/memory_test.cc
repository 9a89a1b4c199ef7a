#include <cstdlib>
#include <gtest/gtest.h>

#include "coders/huffman/huffman_stage.h"
#include "coders/rze/rze_stage.h"
#include "fused/bitplane_rze/bitplane_rze_stage.h"
#include "fz/presets.h"
#include "log.h"
#include "predictors/diff/diff.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "support/pipelines.h"
#include "support/test_stages.h"
#include "transforms/zigzag/zigzag_stage.h"

namespace fz::test {
namespace {

constexpr std::size_t kValues = 16 * 1024;
constexpr std::size_t kBytes = kValues * sizeof(float);
const MemoryStrategy kStrategies[] = {MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE};

TEST(Memory, BothStrategiesGiveTheSameFrame) {
  const auto values = wave(kValues);
  for (const Build build : kCodeChains) {
    Pipeline minimal(kBytes, MemoryStrategy::MINIMAL);
    Pipeline preallocated(kBytes, MemoryStrategy::PREALLOCATE);
    build(minimal);
    build(preallocated);
    const FrameBytes frame = frameOf(minimal, values);
    EXPECT_EQ(frame, frameOf(preallocated, values));
    EXPECT_EQ(countMisses(values, decoded<float>(preallocated, frame)), 0u);
  }
}

TEST(Memory, BothStrategiesDecodeWhatIsFarSmallerThanAReserve) {
  constexpr std::size_t kMany = 1'000'000;
  const std::vector<float> flat(kMany, 2.5f);
  const std::vector<float> curve = wave(kMany);
  for (const MemoryStrategy strategy : kStrategies) {
    Pipeline runs(kMany * sizeof(float), strategy);
    buildRleChain(runs);
    Pipeline best(kMany * sizeof(float), strategy);
    std::string toml(findPreset("best")->toml);
    toml.replace(toml.find("NOA"), 3, "ABS");
    best.loadConfigText(toml, "best");
    ASSERT_EQ(best.getMemoryStrategy(), strategy);
    for (Pipeline* pipeline : {&runs, &best}) {
      for (const auto* values : {&flat, &curve, &flat}) {  // after more, too
        EXPECT_EQ(countMisses(*values, roundTrip(*pipeline, *values)), 0u);
      }
    }
  }
}

TEST(Memory, TheStrategyMayChangeBeforeAndAfterStagesAreAdded) {
  const auto values = wave(kValues);
  Pipeline before(kBytes);
  before.setMemoryStrategy(MemoryStrategy::PREALLOCATE);
  buildRleChain(before);
  EXPECT_TRUE(before.isColoringEnabled());
  EXPECT_EQ(countMisses(values, roundTrip(before, values)), 0u);

  Pipeline after(kBytes, MemoryStrategy::PREALLOCATE);
  after.enableProfiling(true);
  auto* quantizer = addQuantizer(after);
  auto* rle = after.addStage<RLEStage<std::uint16_t>>();
  after.setMemoryStrategy(MemoryStrategy::MINIMAL);
  after.connect(rle, quantizer, "codes");
  after.finalize();
  EXPECT_FALSE(after.isColoringEnabled());
  EXPECT_EQ(countMisses(values, roundTrip(after, values)), 0u);
  EXPECT_EQ(after.getLastPerfResult().stages.size(), 2u) << "profiling was forgotten";
}

TEST(Memory, ThePoolMultiplierChangesNoByte) {
  const auto values = wave(kValues);
  Pipeline small(kBytes, MemoryStrategy::MINIMAL, 3.0f);
  Pipeline large(kBytes, MemoryStrategy::MINIMAL, 10.0f);
  EXPECT_GE(small.getPoolThreshold(), 3 * kBytes);
  EXPECT_GE(large.getPoolThreshold(), 10 * kBytes);
  buildRleChain(small);
  buildRleChain(large);
  EXPECT_EQ(frameOf(small, values), frameOf(large, values));
  EXPECT_EQ(small.getPoolThreshold(), 3 * kBytes);
}

TEST(Memory, UsageIsZeroAfterEveryResetOnlyWithMinimal) {
  const auto values = wave(kValues);
  for (const MemoryStrategy strategy : kStrategies) {
    for (const Build build : kCodeChains) {
      Pipeline pipeline(kBytes, strategy);
      build(pipeline);
      std::size_t used_after_reset = 0;
      for (int cycle = 0; cycle < 5; ++cycle) {
        frameOf(pipeline, values);
        EXPECT_GT(pipeline.getPeakMemoryUsage(), 0u);
        EXPECT_GT(pipeline.getCurrentMemoryUsage(), 0u);
        pipeline.reset();
        if (strategy == MemoryStrategy::MINIMAL) {
          EXPECT_EQ(pipeline.getCurrentMemoryUsage(), 0u);
        } else {
          EXPECT_GT(pipeline.getCurrentMemoryUsage(), 0u);
        }
        const std::size_t used = pipeline.getMemoryPool().getCurrentUsage();
        EXPECT_TRUE(cycle == 0 || used == used_after_reset) << "cycle " << cycle;
        used_after_reset = used;
      }
    }
  }
}

TEST(Memory, APipelineWithOneOutputHoldsItsFrameUntilReset) {
  Pipeline pipeline;
  pipeline.addStage<RLEStage<std::uint16_t>>();
  pipeline.finalize();
  frameOf(pipeline, std::vector<std::uint16_t>(1000, 3));
  EXPECT_GT(pipeline.getCurrentMemoryUsage(), 0u);
  pipeline.reset();
  EXPECT_EQ(pipeline.getCurrentMemoryUsage(), 0u);
}

TEST(Memory, TheSecondCallOfTheSameSizeTakesNothingFromTheSystem) {
  const auto values = wave(kValues);
  for (const MemoryStrategy strategy : kStrategies) {
    for (const std::size_t hint : {std::size_t{0}, kBytes}) {
      for (std::size_t chain = 0; chain < std::size(kCodeChains); ++chain) {
        Pipeline pipeline(hint, strategy);
        kCodeChains[chain](pipeline);
        roundTrip(pipeline, values);
        const std::size_t taken = pipeline.getMemoryPool().getSystemAllocationCount();
        for (int call = 2; call < 5; ++call) {
          roundTrip(pipeline, values);
          EXPECT_EQ(pipeline.getMemoryPool().getSystemAllocationCount(), taken)
              << "chain " << chain << ", hint " << hint << ", call " << call;
        }
      }
    }
  }
}

TEST(Memory, AfterWarmupTheFirstCallTakesNothingFromTheSystem) {
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  pipeline.setWarmupOnFinalize(true);
  buildLongChain(pipeline);
  EXPECT_EQ(pipeline.getLastUncompressedSize(), 0u);
  const std::size_t taken = pipeline.getMemoryPool().getSystemAllocationCount();
  const std::vector<float> zeros(kValues, 0.0f);
  EXPECT_EQ(roundTrip(pipeline, zeros), zeros);
  EXPECT_EQ(pipeline.getMemoryPool().getSystemAllocationCount(), taken);
}

TEST(Memory, TopologicalSizeOfMinimalIsNotAboveThatOfPreallocate) {
  Pipeline minimal(kBytes, MemoryStrategy::MINIMAL);
  Pipeline preallocated(kBytes, MemoryStrategy::PREALLOCATE);
  Pipeline plain(kBytes, MemoryStrategy::PREALLOCATE);
  plain.setColoringEnabled(false);
  for (Pipeline* pipeline : {&minimal, &preallocated, &plain}) {
    pipeline->setFusion(Fusion::Off);  // fused stages have no buffers that could share memory
  }
  buildLongChain(minimal);
  buildLongChain(preallocated);
  buildLongChain(plain);
  const std::size_t least = minimal.getDAG()->computeTopoPoolSize();
  EXPECT_GT(least, 0u);
  EXPECT_LE(least, preallocated.getDAG()->computeTopoPoolSize());
  EXPECT_LT(preallocated.getDAG()->computeTopoPoolSize(), plain.getDAG()->computeTopoPoolSize());
}

TEST(Memory, ColoringIsOnForPreallocateAndNeverForMinimal) {
  Pipeline minimal(kBytes, MemoryStrategy::MINIMAL);
  buildLongChain(minimal);
  EXPECT_FALSE(minimal.isColoringEnabled());
  EXPECT_EQ(minimal.getColorRegionCount(), 0u);
  Pipeline preallocated(kBytes, MemoryStrategy::PREALLOCATE);
  buildLongChain(preallocated);
  EXPECT_TRUE(preallocated.isColoringEnabled());
  EXPECT_GT(preallocated.getColorRegionCount(), 0u);
  EXPECT_LT(preallocated.getColorRegionCount(), preallocated.getDAG()->getBufferCount());
  Pipeline off(kBytes, MemoryStrategy::PREALLOCATE);
  off.setColoringEnabled(false);
  buildLongChain(off);
  EXPECT_FALSE(off.isColoringEnabled());
  EXPECT_EQ(off.getColorRegionCount(), 0u);
}

TEST(Memory, ColoredEqualsUncoloredAndNeedsNoMoreMemory) {
  const auto values = wave(kValues);
  for (const Build build : kCodeChains) {
    Pipeline colored(kBytes, MemoryStrategy::PREALLOCATE);
    Pipeline plain(kBytes, MemoryStrategy::PREALLOCATE);
    plain.setColoringEnabled(false);
    build(colored);
    build(plain);
    const FrameBytes frame = frameOf(colored, values);
    EXPECT_EQ(frame, frameOf(plain, values));
    EXPECT_EQ(frame, frameOf(colored, values));
    EXPECT_LE(colored.getPeakMemoryUsage(), plain.getPeakMemoryUsage());
    EXPECT_EQ(countMisses(values, decoded<float>(colored, frame)), 0u);
  }
}

TEST(Memory, PeakOfPreallocateIsNotBelowThatOfMinimal) {
  const auto values = wave(kValues);
  Pipeline minimal(kBytes, MemoryStrategy::MINIMAL);
  Pipeline preallocated(kBytes, MemoryStrategy::PREALLOCATE);
  buildLongChain(minimal);
  buildLongChain(preallocated);
  frameOf(minimal, values);
  frameOf(preallocated, values);
  EXPECT_GE(preallocated.getDAG()->getPeakMemoryUsage(), minimal.getDAG()->getPeakMemoryUsage());
}

TEST(Memory, AChainHasOneStagePerLevel) {
  Pipeline pipeline;
  auto* zigzag = pipeline.addStage<ZigzagStage<std::int32_t>>();
  auto* pass = pipeline.addStage<PassThroughStage>();
  auto* rle = pipeline.addStage<RLEStage<std::uint32_t>>();
  pipeline.connect(pass, zigzag);
  pipeline.connect(rle, pass);
  pipeline.finalize();
  const auto& levels = pipeline.getDAG()->getLevels();
  ASSERT_EQ(levels.size(), 3u);
  for (const auto& level : levels) {
    EXPECT_EQ(level.size(), 1u);
  }
  EXPECT_EQ(pipeline.getDAG()->getMaxParallelism(), 1u);
}

TEST(Memory, ADiamondHasTwoStagesInItsMiddleAndItsOutputIsTwiceTheInput) {
  for (const MemoryStrategy strategy : kStrategies) {
    Pipeline pipeline(4000, strategy);
    auto* split = pipeline.addStage<SplitStage>();
    auto* left = pipeline.addStage<PassThroughStage>();
    auto* right = pipeline.addStage<PassThroughStage>();
    auto* merge = pipeline.addStage<MergeStage>();
    pipeline.connect(left, split, "first");
    pipeline.connect(right, split, "second");
    pipeline.connect(merge, {left, right});
    pipeline.finalize();
    const auto& levels = pipeline.getDAG()->getLevels();
    ASSERT_EQ(levels.size(), 3u);
    EXPECT_EQ(levels[1].size(), 2u);
    EXPECT_EQ(pipeline.getDAG()->getMaxParallelism(), 2u);
    const auto values = wave(1000);
    const FrameBytes frame = frameOf(pipeline, values);
    EXPECT_EQ(merge->getActualOutputSizesByName().at("output"), 2 * byteCount(values));
    EXPECT_EQ(decoded<float>(pipeline, frame), values);
  }
}

std::size_t n_lines = 0;

TEST(Memory, DescriptionsForPeopleHaveALinePerStageAndBuffer) {
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  buildLongChain(pipeline);
  n_lines = 0;
  Logger::setCallback([](LogLevel, const char*) { ++n_lines; });
  pipeline.getDAG()->printDAG();
  EXPECT_EQ(n_lines, 4u);
  pipeline.getDAG()->printBufferLifetimes();
  EXPECT_EQ(n_lines, 4 + pipeline.getDAG()->getBufferCount());
  pipeline.printPipeline();
  pipeline.getMemoryPool().printStats();
  Logger::setCallback(nullptr);
  EXPECT_GT(n_lines, 4 + pipeline.getDAG()->getBufferCount());
}

/// Sets the variable that asks for the fallback, for the life of the object.
class ForcedFallback {
 public:
  ForcedFallback() { ::setenv("FZ_FORCE_MEMPOOL_FALLBACK", "1", 1); }
  ForcedFallback(const ForcedFallback&) = delete;
  ForcedFallback& operator=(const ForcedFallback&) = delete;
  ~ForcedFallback() { ::unsetenv("FZ_FORCE_MEMPOOL_FALLBACK"); }
};

TEST(Memory, TheFallbackIsChosenWhenThePoolIsMade) {
  EXPECT_FALSE(Pipeline().isMemPoolFallbackMode());
  EXPECT_TRUE(MemoryPool(MemoryPoolConfig(0, 3.0f, 0, true, true)).isFallbackMode());
  std::unique_ptr<Pipeline> forced;
  {
    const ForcedFallback fallback;
    forced = std::make_unique<Pipeline>();
    EXPECT_TRUE(forced->isMemPoolFallbackMode());
  }
  EXPECT_TRUE(forced->isMemPoolFallbackMode());
  EXPECT_FALSE(Pipeline().isMemPoolFallbackMode());
}

TEST(Memory, TheFallbackGivesTheSameFramesAndDoesNotLeak) {
  const auto values = wave(kValues);
  const TempFolder folder;
  for (const MemoryStrategy strategy : kStrategies) {
    for (const Build build : kCodeChains) {
      Pipeline ordinary(kBytes, strategy);
      build(ordinary);
      const FrameBytes frame = frameOf(ordinary, values);

      const ForcedFallback fallback;
      Pipeline pipeline(kBytes, strategy);
      build(pipeline);
      EXPECT_EQ(frameOf(pipeline, values), frame);
      pipeline.writeToFile(folder.file("a.fzm"));
      EXPECT_EQ(readAll(folder.file("a.fzm")), frame);
      EXPECT_EQ(countMisses(values, decoded<float>(pipeline, frame)), 0u);
      const std::size_t used = pipeline.getMemoryPool().getCurrentUsage();
      for (int i = 0; i < 3; ++i) {
        roundTrip(pipeline, values);
        EXPECT_EQ(pipeline.getMemoryPool().getCurrentUsage(), used);
      }
      pipeline.reset();
      EXPECT_EQ(pipeline.getCurrentMemoryUsage() == 0, strategy == MemoryStrategy::MINIMAL);
    }
  }
}

}  // namespace
}  // namespace fz::test
