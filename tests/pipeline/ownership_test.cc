#include <cstdlib>
#include <gtest/gtest.h>

#include "predictors/diff/diff.h"
#include "support/pipelines.h"

// Who owns what a pipeline returns, and how long it lives. A wrong answer is a leak or a double
// free, which the sanitizer runs report.

namespace fz::test {
namespace {

constexpr std::size_t kValues = 8192;

/// What decompress(..., void**, ...) returns, not copied.
struct Result {
  float* values = nullptr;
  std::size_t n_bytes = 0;
};

Result decompressLast(Pipeline& pipeline) {
  void* out = nullptr;
  std::size_t n_bytes = 0;
  pipeline.decompress(nullptr, 0, &out, &n_bytes);
  return {static_cast<float*>(out), n_bytes};
}

std::size_t countMisses(const std::vector<float>& original, const Result& result) {
  return result.n_bytes != byteCount(original)
             ? original.size()
             : countBoundViolations(original.data(), result.values, original.size(), kBound);
}

TEST(Ownership, TheFrameBelongsToThePipelineUntilTheNextCompress) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  void* frame = nullptr;
  std::size_t n_frame = 0;
  pipeline.compress(values.data(), byteCount(values), &frame, &n_frame);
  const FrameBytes copy(static_cast<std::uint8_t*>(frame),
                        static_cast<std::uint8_t*>(frame) + n_frame);
  decompressLast(pipeline);
  EXPECT_TRUE(std::equal(copy.begin(), copy.end(), static_cast<std::uint8_t*>(frame)))
      << "decompress changed the frame";
}

TEST(Ownership, EveryWayToCompressGivesTheSameFrame) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  const FrameBytes frame = frameOf(pipeline, values);
  void* pooled = nullptr;
  std::size_t n_bytes = 0;
  pipeline.compress(values.data(), byteCount(values), &pooled, &n_bytes);
  const auto* bytes = static_cast<std::uint8_t*>(pooled);
  EXPECT_EQ(FrameBytes(bytes, bytes + n_bytes), frame);
  FrameBytes own(pipeline.getMaxCompressedSize(byteCount(values)));
  pipeline.compress(values.data(), byteCount(values), own.data(), own.size(), &n_bytes);
  own.resize(n_bytes);
  EXPECT_EQ(own, frame);
}

TEST(Ownership, ResetReclaimsTheFrame) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  frameOf(pipeline, wave(kValues));
  pipeline.reset();
  void* out = nullptr;
  std::size_t n_bytes = 0;
  EXPECT_EQ(codeOf([&] { pipeline.decompress(nullptr, 0, &out, &n_bytes); }),
            ErrorCode::kInvalidState);
}

TEST(Ownership, ACallerOwnedResultIsFreedByTheCaller) {
  Pipeline pipeline;
  EXPECT_TRUE(pipeline.isPoolManagedDecompOutput());
  pipeline.setPoolManagedDecompOutput(false);
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  frameOf(pipeline, values);
  const Result first = decompressLast(pipeline);
  const Result second = decompressLast(pipeline);
  EXPECT_NE(first.values, second.values);
  EXPECT_EQ(countMisses(values, first), 0u);
  std::free(first.values);
  EXPECT_EQ(countMisses(values, second), 0u);
  std::free(second.values);
}

TEST(Ownership, ACallerOwnedResultOutlivesThePipeline) {
  const auto values = wave(kValues);
  Result result;
  {
    Pipeline pipeline;
    pipeline.setPoolManagedDecompOutput(false);
    buildRleChain(pipeline);
    frameOf(pipeline, values);
    result = decompressLast(pipeline);
  }
  EXPECT_EQ(countMisses(values, result), 0u);
  std::free(result.values);
}

TEST(Ownership, OwnershipMayChangeBetweenCalls) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  frameOf(pipeline, values);
  const Result pooled = decompressLast(pipeline);
  pipeline.setPoolManagedDecompOutput(false);
  const Result owned = decompressLast(pipeline);
  EXPECT_EQ(countMisses(values, pooled), 0u);
  EXPECT_EQ(countMisses(values, owned), 0u);
  std::free(owned.values);
}

TEST(Ownership, APooledResultSurvivesALaterCompressAndReset) {
  for (const MemoryStrategy strategy : {MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE}) {
    Pipeline pipeline(0, strategy);
    buildRleChain(pipeline);
    const auto values = wave(kValues);
    frameOf(pipeline, values);
    const Result result = decompressLast(pipeline);
    frameOf(pipeline, wave(2 * kValues, 321.0));
    EXPECT_EQ(countMisses(values, result), 0u) << "after compress";
    pipeline.reset();
    EXPECT_EQ(countMisses(values, result), 0u) << "after reset";
  }
}

TEST(Ownership, TheNextPooledResultReplacesTheOneBefore) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  frameOf(pipeline, values);
  decompressLast(pipeline);
  const std::size_t used = pipeline.getMemoryPool().getCurrentUsage();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(countMisses(values, decompressLast(pipeline)), 0u);
    EXPECT_EQ(pipeline.getMemoryPool().getCurrentUsage(), used);
  }
}

TEST(Ownership, TheCallersBufferIsWrittenWithoutADetour) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  const FrameBytes frame = frameOf(pipeline, values);
  const std::size_t used = pipeline.getMemoryPool().getCurrentUsage();
  std::vector<float> back(values.size() + 1, -1.0f);
  std::size_t n_bytes = 0;
  pipeline.decompress(frame.data(), frame.size(), back.data(), byteCount(back), &n_bytes);
  EXPECT_LT(pipeline.getMemoryPool().getCurrentUsage(), used + byteCount(values));
  EXPECT_EQ(n_bytes, byteCount(values));
  EXPECT_EQ(back.back(), -1.0f);
  back.pop_back();
  EXPECT_EQ(fz::test::countMisses(values, back), 0u);
}

TEST(Ownership, NoBytesAreARoundTripToo) {
  for (const bool pooled : {true, false}) {
    Pipeline pipeline;
    pipeline.setPoolManagedDecompOutput(pooled);
    buildRleChain(pipeline);
    void* frame = nullptr;
    std::size_t n_frame = 0;
    pipeline.compress(nullptr, 0, &frame, &n_frame);
    EXPECT_GT(n_frame, 0u) << "a frame of nothing is still a frame";
    const Result result = decompressLast(pipeline);
    EXPECT_EQ(result.n_bytes, 0u);
    if (!pooled) {
      std::free(result.values);
    }
    const auto values = wave(100);
    EXPECT_EQ(fz::test::countMisses(values, roundTrip(pipeline, values)), 0u);
  }
}

TEST(Ownership, TheLastUncompressedSizeIsThatOfTheLastCompress) {
  Pipeline pipeline(4000);
  pipeline.setWarmupOnFinalize(true);
  buildRleChain(pipeline);
  EXPECT_EQ(pipeline.getLastUncompressedSize(), 0u) << "warmup counts for nothing";
  frameOf(pipeline, wave(1000));
  EXPECT_EQ(pipeline.getLastUncompressedSize(), 4000u);
  frameOf(pipeline, wave(999));
  EXPECT_EQ(pipeline.getLastUncompressedSize(), 3996u);
  pipeline.reset();
  EXPECT_EQ(pipeline.getLastUncompressedSize(), 3996u);
}

TEST(Ownership, AFileResultIsTheCallersOrThePoolsAsAsked) {
  const TempFolder folder;
  const auto values = wave(kValues);
  Pipeline pipeline;
  buildRleChain(pipeline);
  frameOf(pipeline, values);
  pipeline.writeToFile(folder.file("a.fzm"));
  void* out = nullptr;
  std::size_t n_bytes = 0;
  Pipeline::decompressFromFile(folder.file("a.fzm"), &out, &n_bytes);
  EXPECT_EQ(countMisses(values, Result{static_cast<float*>(out), n_bytes}), 0u);
  std::free(out);
  pipeline.decompressFromFileInstance(folder.file("a.fzm"), &out, &n_bytes);
  EXPECT_EQ(countMisses(values, Result{static_cast<float*>(out), n_bytes}), 0u);
  pipeline.setPoolManagedDecompOutput(false);
  pipeline.decompressFromFileInstance(folder.file("a.fzm"), &out, &n_bytes);
  EXPECT_EQ(countMisses(values, Result{static_cast<float*>(out), n_bytes}), 0u);
  std::free(out);
}

}  // namespace
}  // namespace fz::test
