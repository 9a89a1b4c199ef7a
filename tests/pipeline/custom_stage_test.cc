#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

#include "pipeline/compressor.h"
#include "support/test_stages.h"
#include "transforms/zigzag/zigzag_stage.h"

namespace fz::test {
namespace {

std::vector<std::int32_t> ramp(std::size_t n) {
  std::vector<std::int32_t> values(n);
  std::iota(values.begin(), values.end(), -static_cast<std::int32_t>(n / 2));
  return values;
}

std::vector<std::int32_t> roundTrip(Pipeline& pipeline, const std::vector<std::int32_t>& values) {
  void* frame = nullptr;
  std::size_t n_frame = 0;
  pipeline.compress(values.data(), values.size() * 4, &frame, &n_frame);
  void* out = nullptr;
  std::size_t n_out = 0;
  pipeline.decompress(frame, n_frame, &out, &n_out);
  std::vector<std::int32_t> back(n_out / 4);
  if (n_out > 0) {
    std::memcpy(back.data(), out, n_out);
  }
  return back;
}

TEST(CustomStage, OneStageRoundTripsInMemory) {
  Pipeline pipeline;
  pipeline.addStage<PassThroughStage>();
  pipeline.finalize();
  const auto values = ramp(1000);
  EXPECT_EQ(roundTrip(pipeline, values), values);
}

TEST(CustomStage, MixesWithStagesOfTheLibrary) {
  Pipeline pipeline;
  auto* zigzag = pipeline.addStage<ZigzagStage<std::int32_t>>();
  auto* pass = pipeline.addStage<PassThroughStage>();
  pipeline.connect(pass, zigzag);
  pipeline.finalize();
  const auto values = ramp(777);
  EXPECT_EQ(roundTrip(pipeline, values), values);
  EXPECT_EQ(roundTrip(pipeline, values), values);
}

TEST(CustomStage, DiamondOfSplitAndMergeRoundTrips) {
  Pipeline pipeline;
  auto* split = pipeline.addStage<SplitStage>();
  auto* left = pipeline.addStage<ZigzagStage<std::int32_t>>();
  auto* right = pipeline.addStage<ZigzagStage<std::int32_t>>();
  auto* merge = pipeline.addStage<MergeStage>();
  pipeline.connect(left, split, "first");
  pipeline.connect(right, split, "second");
  pipeline.connect(merge, std::vector<Stage*>{left, right});
  pipeline.finalize();
  ASSERT_EQ(pipeline.getDAG()->getLevels().size(), 3u);
  EXPECT_EQ(pipeline.getDAG()->getLevels()[1].size(), 2u);
  const auto values = ramp(500);
  EXPECT_EQ(roundTrip(pipeline, values), values);
}

TEST(CustomStage, PaddingForAnAlignedStageIsTrimmedAgain) {
  Pipeline pipeline;
  pipeline.addStage<AlignedStage>();
  pipeline.finalize();
  const auto values = ramp(1001);
  EXPECT_EQ(roundTrip(pipeline, values), values);
}

TEST(CustomStage, AStageThatReportsMoreThanItsBufferIsCaught) {
  Pipeline pipeline;
  pipeline.addStage<OverReportingStage>();
  pipeline.finalize();
  const auto values = ramp(10);
  EXPECT_THROW(roundTrip(pipeline, values), std::runtime_error);
}

}  // namespace
}  // namespace fz::test
