#include <cstdlib>
#include <gtest/gtest.h>
#include <sstream>

#include "predictors/diff/diff.h"
#include "support/pipelines.h"

namespace fz::test {
namespace {

constexpr std::size_t kValues = 64 * 1024;

TEST(Profiling, IsOffByDefaultAndThenMeasuresNothing) {
  Pipeline pipeline;
  EXPECT_FALSE(pipeline.isProfilingEnabled());
  buildRleChain(pipeline);
  roundTrip(pipeline, wave(kValues));
  EXPECT_TRUE(pipeline.getLastPerfResult().stages.empty());
  EXPECT_TRUE(pipeline.getLastPerfResult().levels.empty());
}

TEST(Profiling, CompressGivesARowPerStageAndPerLevel) {
  Pipeline pipeline;
  pipeline.enableProfiling(true);
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  const FrameBytes frame = frameOf(pipeline, values);
  const PipelinePerfResult& perf = pipeline.getLastPerfResult();
  EXPECT_TRUE(perf.is_compress);
  EXPECT_EQ(perf.input_bytes, byteCount(values));
  EXPECT_EQ(perf.output_bytes, frame.size());
  EXPECT_GT(perf.dag_elapsed_ms, 0.0f);
  EXPECT_GE(perf.host_elapsed_ms, perf.dag_elapsed_ms);
  EXPECT_EQ(perf.device_elapsed_ms, 0.0f) << "no device, no device time";
  EXPECT_GT(perf.throughput_gbs(), 0.0f);
  EXPECT_GT(perf.pipeline_throughput_gbs(), 0.0f);
  EXPECT_LE(perf.pipeline_throughput_gbs(), perf.throughput_gbs());
  ASSERT_EQ(perf.stages.size(), 2u);
  EXPECT_EQ(perf.stages[0].name, "LorenzoQuant");
  EXPECT_EQ(perf.stages[1].name, "RLE");
  float total_ms = 0.0f;
  for (std::size_t i = 0; i < perf.stages.size(); ++i) {
    const StageTimingResult& row = perf.stages[i];
    EXPECT_EQ(row.level, static_cast<int>(i));
    EXPECT_GT(row.elapsed_ms, 0.0f);
    EXPECT_GT(row.input_bytes, 0u);
    EXPECT_GT(row.output_bytes, 0u);
    EXPECT_GT(row.throughput_gbs(), 0.0f);
    total_ms += row.elapsed_ms;
  }
  EXPECT_FLOAT_EQ(perf.dag_elapsed_ms, total_ms) << "time of finished work, not of launches";
  EXPECT_EQ(perf.stages[0].input_bytes, byteCount(values));
  EXPECT_EQ(perf.stages[1].input_bytes, byteCount(values) / 2);
  ASSERT_EQ(perf.levels.size(), 2u);
  for (std::size_t i = 0; i < perf.levels.size(); ++i) {
    EXPECT_EQ(perf.levels[i].level, static_cast<int>(i));
    EXPECT_EQ(perf.levels[i].parallelism, 1);
    EXPECT_FLOAT_EQ(perf.levels[i].elapsed_ms, perf.stages[i].elapsed_ms);
  }
}

TEST(Profiling, ALevelTakesTheTimeOfItsSlowestStage) {
  Pipeline pipeline;
  pipeline.enableProfiling(true);
  auto* quantizer = addQuantizer(pipeline);
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  auto* difference = pipeline.addStage<DifferenceStage<std::uint16_t>>();
  pipeline.connect(rle, quantizer, "codes");
  pipeline.connect(difference, quantizer, "codes");
  pipeline.finalize();
  frameOf(pipeline, wave(kValues));
  const PipelinePerfResult& perf = pipeline.getLastPerfResult();
  ASSERT_EQ(perf.stages.size(), 3u);
  ASSERT_EQ(perf.levels.size(), 2u);
  EXPECT_EQ(perf.levels[1].parallelism, 2);
  EXPECT_EQ(perf.levels[1].elapsed_ms,
            std::max(perf.stages[1].elapsed_ms, perf.stages[2].elapsed_ms));
}

TEST(Profiling, DecompressReportsTheInverse) {
  Pipeline pipeline;
  pipeline.enableProfiling(true);
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  const FrameBytes frame = frameOf(pipeline, values);
  void* out = nullptr;
  std::size_t n_bytes = 0;
  pipeline.decompress(nullptr, 0, &out, &n_bytes);
  const PipelinePerfResult& perf = pipeline.getLastPerfResult();
  EXPECT_FALSE(perf.is_compress);
  EXPECT_EQ(perf.input_bytes, frame.size()) << "also when the frame was not passed";
  EXPECT_EQ(perf.output_bytes, byteCount(values));
  ASSERT_EQ(perf.stages.size(), 2u);
  EXPECT_EQ(perf.stages[0].name, "RLE");
  EXPECT_EQ(perf.stages[1].name, "LorenzoQuant");
  EXPECT_EQ(perf.stages[1].output_bytes, byteCount(values));
  EXPECT_EQ(perf.levels.size(), 2u);
  EXPECT_GT(perf.throughput_gbs(), 0.0f);
}

TEST(Profiling, EveryCallReplacesTheResult) {
  Pipeline pipeline;
  pipeline.enableProfiling(true);
  buildRleChain(pipeline);
  frameOf(pipeline, wave(kValues));
  EXPECT_EQ(pipeline.getLastPerfResult().input_bytes, kValues * sizeof(float));
  frameOf(pipeline, wave(100));
  EXPECT_EQ(pipeline.getLastPerfResult().input_bytes, 400u);
  EXPECT_EQ(pipeline.getLastPerfResult().stages.size(), 2u);
}

TEST(Profiling, SwitchedOffItKeepsTheLastResult) {
  Pipeline pipeline;
  pipeline.enableProfiling(true);
  buildRleChain(pipeline);
  frameOf(pipeline, wave(1000));
  pipeline.enableProfiling(false);
  roundTrip(pipeline, wave(10));
  EXPECT_TRUE(pipeline.getLastPerfResult().is_compress);
  EXPECT_EQ(pipeline.getLastPerfResult().input_bytes, 4000u);
}

TEST(Profiling, WarmupIsNotMeasured) {
  Pipeline pipeline(4000, MemoryStrategy::PREALLOCATE);
  pipeline.enableProfiling(true);
  buildRleChain(pipeline);
  pipeline.warmup();
  EXPECT_TRUE(pipeline.getLastPerfResult().stages.empty());
  EXPECT_TRUE(pipeline.isProfilingEnabled());
  frameOf(pipeline, wave(1000));
  EXPECT_EQ(pipeline.getLastPerfResult().stages.size(), 2u);
}

TEST(Profiling, PrintNamesEveryStage) {
  Pipeline pipeline;
  pipeline.enableProfiling(true);
  buildRleChain(pipeline);
  frameOf(pipeline, wave(1000));
  std::ostringstream text;
  pipeline.getLastPerfResult().print(text);
  EXPECT_NE(text.str().find("LorenzoQuant"), std::string::npos);
  EXPECT_NE(text.str().find("RLE"), std::string::npos);
}

TEST(Profiling, RatesOfNothingAreZero) {
  EXPECT_EQ(StageTimingResult().throughput_gbs(), 0.0f);
  EXPECT_EQ(PipelinePerfResult().throughput_gbs(), 0.0f);
  EXPECT_EQ(PipelinePerfResult().pipeline_throughput_gbs(), 0.0f);
}

}  // namespace
}  // namespace fz::test
