#include <cstdlib>
#include <gtest/gtest.h>

#include "coders/bitpack/bitpack_stage.h"
#include "coders/huffman/huffman_stage.h"
#include "coders/rze/rze_stage.h"
#include "predictors/diff/diff.h"
#include "support/pipelines.h"

// On the CPU there is nothing to capture, but the sequence of calls has the same rules as on a
// GPU, so that a program behaves alike on both.

namespace fz::test {
namespace {

constexpr std::size_t kValues = 8192;
constexpr std::size_t kBytes = kValues * sizeof(float);

void connectRle(Pipeline& pipeline) {
  auto* quantizer = addQuantizer(pipeline);
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  pipeline.connect(rle, quantizer, "codes");
}

TEST(GraphMode, ReplaysWithOtherDataAndSizesEqualOrdinaryRuns) {
  Pipeline graph(kBytes, MemoryStrategy::PREALLOCATE);
  graph.enableGraphMode(true);
  EXPECT_TRUE(graph.isGraphModeEnabled());
  buildRleChain(graph);
  graph.warmup();
  EXPECT_FALSE(graph.isGraphCaptured());
  graph.captureGraph();
  EXPECT_TRUE(graph.isGraphCaptured());
  Pipeline ordinary(kBytes, MemoryStrategy::PREALLOCATE);
  buildRleChain(ordinary);
  for (std::size_t i = 0; i < 12; ++i) {
    const auto values = wave(kValues - 17 * i, 100.0 * static_cast<double>(i));
    const FrameBytes frame = frameOf(graph, values);
    EXPECT_EQ(frame, frameOf(ordinary, values)) << "replay " << i;
    EXPECT_EQ(countMisses(values, decoded<float>(graph, frame)), 0u) << "replay " << i;
  }
}

TEST(GraphMode, FinalizeNeedsPreallocateASizeAndAPool) {
  const auto kState = ErrorCode::kInvalidState;
  Pipeline minimal(kBytes, MemoryStrategy::MINIMAL);
  minimal.enableGraphMode(true);
  EXPECT_EQ(codeOf([&] { buildRleChain(minimal); }), kState);
  minimal.setMemoryStrategy(MemoryStrategy::PREALLOCATE);
  EXPECT_NO_THROW(minimal.finalize()) << "the error said how to repair it";

  Pipeline no_size(0, MemoryStrategy::PREALLOCATE);
  no_size.enableGraphMode(true);
  EXPECT_EQ(codeOf([&] { buildRleChain(no_size); }), kState);

  ::setenv("FZ_FORCE_MEMPOOL_FALLBACK", "1", 1);
  Pipeline fallback(kBytes, MemoryStrategy::PREALLOCATE);
  ::unsetenv("FZ_FORCE_MEMPOOL_FALLBACK");
  fallback.enableGraphMode(true);
  EXPECT_EQ(codeOf([&] { buildRleChain(fallback); }), kState);
}

TEST(GraphMode, CaptureNeedsFinalizeAndTheMode) {
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  pipeline.enableGraphMode(true);
  connectRle(pipeline);
  EXPECT_EQ(codeOf([&] { pipeline.captureGraph(); }), ErrorCode::kInvalidState);
  Pipeline without(kBytes, MemoryStrategy::PREALLOCATE);
  buildRleChain(without);
  EXPECT_EQ(codeOf([&] { without.captureGraph(); }), ErrorCode::kInvalidState);
  EXPECT_FALSE(without.isGraphCaptured());
}

TEST(GraphMode, CompressBeforeCaptureWorksAndCaptureThenNeedsReset) {
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  pipeline.enableGraphMode(true);
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  const FrameBytes frame = frameOf(pipeline, values);
  const Failure failure = failureOf([&] { pipeline.captureGraph(); });
  EXPECT_EQ(failure.code, ErrorCode::kInvalidState);
  EXPECT_TRUE(failure.mentions("reset")) << failure.message;
  pipeline.reset();
  pipeline.captureGraph();
  EXPECT_EQ(frameOf(pipeline, values), frame);
  pipeline.reset();
  EXPECT_NO_THROW(pipeline.captureGraph()) << "a second capture";
}

TEST(GraphMode, CaptureNamesEveryStageThatCannotTakePart) {
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  pipeline.enableGraphMode(true);
  auto* quantizer = addQuantizer(pipeline);
  quantizer->setErrorBoundMode(ErrorBoundMode::NOA);
  auto* huffman = pipeline.addStage<HuffmanStage<std::uint16_t>>();
  pipeline.connect(huffman, quantizer, "codes");
  pipeline.finalize();
  const Failure failure = failureOf([&] { pipeline.captureGraph(); });
  EXPECT_EQ(failure.code, ErrorCode::kUnsupported);
  EXPECT_TRUE(failure.mentions("Huffman")) << failure.message;
  EXPECT_FALSE(failure.mentions("LorenzoQuant")) << "its range is found on the device";
  EXPECT_FALSE(pipeline.isGraphCaptured());
}

TEST(GraphMode, StagesSayWhatTheyCanDoInEachDirection) {
  LorenzoQuantF32 quantizer;
  EXPECT_TRUE(quantizer.isGraphCompatible());
  quantizer.setErrorBoundMode(ErrorBoundMode::NOA);
  EXPECT_TRUE(quantizer.isGraphCompatible()) << "the range is found on the device";
  RZEStage rze;
  EXPECT_TRUE(rze.isGraphCompatible());
  rze.setInverse(true);
  EXPECT_TRUE(rze.isGraphCompatible());
  RLEStage<std::uint16_t> rle;
  EXPECT_TRUE(rle.isGraphCompatible());
  rle.setInverse(true);
  EXPECT_TRUE(rle.isGraphCompatible());
  BitpackStage<std::uint16_t> pack;
  EXPECT_TRUE(pack.isGraphCompatible());
  pack.setAutoDetect(true);
  EXPECT_TRUE(pack.isGraphCompatible());
  EXPECT_TRUE(DifferenceStage<std::uint16_t>().isGraphCompatible());
  EXPECT_FALSE(HuffmanStage<std::uint16_t>().isGraphCompatible());
}

TEST(GraphMode, ColoringOnOrOffGivesTheSameFrames) {
  const auto values = wave(kValues);
  FrameBytes frames[2];
  for (const bool colored : {false, true}) {
    Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
    pipeline.setColoringEnabled(colored);
    pipeline.enableGraphMode(true);
    buildRleChain(pipeline);
    EXPECT_EQ(pipeline.isColoringEnabled(), colored);
    const auto n_regions = pipeline.getColorRegionCount();
    pipeline.captureGraph();
    EXPECT_EQ(pipeline.getColorRegionCount(), n_regions);
    frames[colored ? 1 : 0] = frameOf(pipeline, values);
  }
  EXPECT_EQ(frames[0], frames[1]);
}

}  // namespace
}  // namespace fz::test
