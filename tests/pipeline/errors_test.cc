#include <gtest/gtest.h>

#include "coders/bitpack/bitpack_stage.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "predictors/diff/diff.h"
#include "support/pipelines.h"
#include "support/test_stages.h"
#include "transforms/zigzag/zigzag_stage.h"

namespace fz::test {
namespace {

constexpr std::size_t kValues = 4096;

/// Stops in execute while armed, in either direction.
class StubbornStage : public PassThroughStage {
 public:
  void execute(cudaStream_t stream,
               MemoryPool* pool,
               const std::vector<void*>& inputs,
               const std::vector<void*>& outputs,
               const std::vector<std::size_t>& sizes) override {
    if (isInverse() ? fails_inverse : fails_forward) {
      throw Error(ErrorCode::kBadSize, "Stubborn: told to fail");
    }
    PassThroughStage::execute(stream, pool, inputs, outputs, sizes);
  }
  std::string getName() const override { return "Stubborn"; }

  bool fails_forward = false;
  bool fails_inverse = false;
};

/// Estimates one byte less than it writes; the buffer itself is never exceeded.
class UnderEstimatingStage : public PassThroughStage {
 public:
  void execute(cudaStream_t /*stream*/,
               MemoryPool* /*pool*/,
               const std::vector<void*>& inputs,
               const std::vector<void*>& outputs,
               const std::vector<std::size_t>& sizes) override {
    std::memcpy(outputs[0], inputs[0], sizes[0] - 1);
    n_bytes_ = sizes[0];
  }
  std::string getName() const override { return "UnderEstimating"; }
  std::vector<std::size_t> estimateOutputSizes(
      const std::vector<std::size_t>& input_sizes) const override {
    return {input_sizes[0] - 1};
  }
};

TEST(PipelineErrors, BuildingStopsAtFinalize) {
  Pipeline pipeline;
  auto* quantizer = addQuantizer(pipeline);
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  pipeline.connect(rle, quantizer, "codes");
  pipeline.finalize();
  const auto kState = ErrorCode::kInvalidState;
  EXPECT_EQ(codeOf([&] { pipeline.addStage<RLEStage<std::uint16_t>>(); }), kState);
  EXPECT_EQ(codeOf([&] { pipeline.connect(rle, quantizer, "codes"); }), kState);
  EXPECT_EQ(codeOf([&] { pipeline.setMemoryStrategy(MemoryStrategy::PREALLOCATE); }), kState);
  EXPECT_EQ(codeOf([&] { pipeline.enableGraphMode(true); }), kState);
  EXPECT_EQ(codeOf([&] { pipeline.setNumStreams(2); }), kState);
  EXPECT_EQ(codeOf([&] { pipeline.setDims(4, 4); }), kState);
  EXPECT_EQ(codeOf([&] { pipeline.finalize(); }), kState);
}

TEST(PipelineErrors, RunningNeedsFinalize) {
  Pipeline pipeline;
  addQuantizer(pipeline);
  const auto values = wave(10);
  void* out = nullptr;
  std::size_t n_bytes = 0;
  const auto kState = ErrorCode::kInvalidState;
  EXPECT_EQ(codeOf([&] { frameOf(pipeline, values); }), kState);
  EXPECT_EQ(codeOf([&] { pipeline.decompress(nullptr, 0, &out, &n_bytes); }), kState);
  EXPECT_EQ(codeOf([&] { pipeline.getMaxCompressedSize(40); }), kState);
  EXPECT_EQ(codeOf([&] { pipeline.warmup(); }), kState);
  EXPECT_EQ(codeOf([&] { pipeline.saveConfigText(); }), kState);
  EXPECT_NO_THROW(pipeline.reset());
}

TEST(PipelineErrors, WithoutACompressThereIsNoFrame) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  void* out = nullptr;
  std::size_t n_bytes = 0;
  const TempFolder folder;
  const auto kState = ErrorCode::kInvalidState;
  const auto check = [&] {
    EXPECT_EQ(codeOf([&] { pipeline.decompress(nullptr, 0, &out, &n_bytes); }), kState);
    EXPECT_EQ(codeOf([&] { pipeline.writeToFile(folder.file("a.fzm")); }), kState);
    EXPECT_EQ(codeOf([&] { pipeline.buildHeader(); }), kState);
    EXPECT_EQ(folder.fileCount(), 0u);
  };
  check();
  frameOf(pipeline, wave(10));
  EXPECT_NO_THROW(pipeline.buildHeader());
  pipeline.reset();
  check();
}

TEST(PipelineErrors, NullArgumentsAreRefused) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto values = wave(10);
  void* out = nullptr;
  std::size_t n_bytes = 0;
  std::array<std::uint8_t, 64> room;
  const auto kArgument = ErrorCode::kInvalidArgument;
  EXPECT_EQ(codeOf([&] { pipeline.compress(nullptr, 40, &out, &n_bytes); }), kArgument);
  EXPECT_EQ(codeOf([&] { pipeline.compress(values.data(), 40, nullptr, &n_bytes); }), kArgument);
  EXPECT_EQ(codeOf([&] { pipeline.compress(values.data(), 40, &out, nullptr); }), kArgument);
  EXPECT_EQ(codeOf([&] { pipeline.compress(values.data(), 40, nullptr, 64, &n_bytes); }),
            kArgument);
  frameOf(pipeline, values);
  EXPECT_EQ(codeOf([&] { pipeline.decompress(nullptr, 0, nullptr, &n_bytes); }), kArgument);
  EXPECT_EQ(codeOf([&] { pipeline.decompress(nullptr, 0, nullptr, 64, &n_bytes); }), kArgument);
  EXPECT_EQ(codeOf([&] { pipeline.decompress(nullptr, 0, room.data(), 64, nullptr); }), kArgument);
}

TEST(PipelineErrors, InputAboveTheHintIsRefusedWithBothSizes) {
  Pipeline pipeline(400);
  buildRleChain(pipeline);
  const Failure failure = failureOf([&] { frameOf(pipeline, wave(101)); });
  EXPECT_EQ(failure.code, ErrorCode::kBadSize);
  EXPECT_TRUE(failure.mentions("404") && failure.mentions("400")) << failure.message;
  EXPECT_EQ(countMisses(wave(100), roundTrip(pipeline, wave(100))), 0u);
}

TEST(PipelineErrors, InputThatDoesNotFillTheDimsIsRefused) {
  Pipeline pipeline;
  pipeline.setDims(64, 64);
  buildRleChain(pipeline);
  EXPECT_EQ(codeOf([&] { frameOf(pipeline, wave(64 * 63)); }), ErrorCode::kBadSize);
  const auto values = wave(std::size_t{64} * 64);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(PipelineErrors, DimsThatDoNotHoldTheInputAreRefusedByEveryPreset) {
  const auto values = wave(1200);
  const std::size_t huge = std::size_t{1} << 33;
  for (const Preset& preset : allPresets()) {
    SCOPED_TRACE(std::string(preset.name));
    CompressOptions options;
    options.preset = preset.name;
    options.config_toml = preset.toml;
    for (const std::array<std::size_t, 3>& dims :
         std::vector<std::array<std::size_t, 3>>{{10, 10, 1}, {huge, huge, 1}, {0, 7, 1}, {600}}) {
      options.dims = {dims[0], std::max<std::size_t>(1, dims[1]),
                      std::max<std::size_t>(1, dims[2])};
      const Failure failure = failureOf([&] { compress(std::span(values), options); });
      EXPECT_EQ(failure.code, ErrorCode::kBadSize);
      EXPECT_TRUE(failure.mentions("1200") && failure.mentions(std::to_string(dims[0])))
          << failure.message;
    }
    options.dims = {0, 30, 1};
    EXPECT_EQ(decompress(compress(std::span(values), options)).bytes().size(), byteCount(values));
  }
}

TEST(PipelineErrors, ATooSmallBufferIsRefusedWithBothSizes) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  const FrameBytes frame = frameOf(pipeline, values);
  FrameBytes room(frame.size());
  std::size_t n_bytes = 0;
  Failure failure = failureOf([&] {
    pipeline.compress(values.data(), byteCount(values), room.data(), frame.size() - 1, &n_bytes);
  });
  EXPECT_EQ(failure.code, ErrorCode::kBufferTooSmall);
  EXPECT_TRUE(failure.mentions(std::to_string(frame.size()))) << failure.message;
  EXPECT_TRUE(failure.mentions(std::to_string(frame.size() - 1))) << failure.message;
  pipeline.compress(values.data(), byteCount(values), room.data(), room.size(), &n_bytes);
  EXPECT_EQ(room, frame);

  std::vector<float> back(values.size());
  failure = failureOf([&] {
    pipeline.decompress(frame.data(), frame.size(), back.data(), byteCount(back) - 1, &n_bytes);
  });
  EXPECT_EQ(failure.code, ErrorCode::kBufferTooSmall);
  EXPECT_TRUE(failure.mentions(std::to_string(byteCount(back)))) << failure.message;
  pipeline.decompress(frame.data(), frame.size(), back.data(), byteCount(back), &n_bytes);
  EXPECT_EQ(n_bytes, byteCount(values));
  EXPECT_EQ(countMisses(values, back), 0u);
}

TEST(PipelineErrors, AnUnderEstimatingStageIsCaught) {
  Pipeline pipeline;
  pipeline.addStage<UnderEstimatingStage>();
  pipeline.enableBoundsCheck(true);
  pipeline.finalize();
  const Failure failure = failureOf([&] { frameOf(pipeline, wave(100)); });
  EXPECT_EQ(failure.code, ErrorCode::kInternal);
  EXPECT_TRUE(failure.mentions("UnderEstimating")) << failure.message;
}

TEST(PipelineErrors, OldCatchBlocksStillCatch) {
  Pipeline pipeline;
  EXPECT_THROW(pipeline.finalize(), std::runtime_error);
  EXPECT_THROW(CompressionDAG(nullptr), std::invalid_argument);
  BitpackStage<std::uint16_t> pack;
  EXPECT_THROW(pack.setNBits(12), std::invalid_argument);
}

TEST(PipelineErrors, OneHandlerOfStdExceptionTakesErrorsAndWrongSettings) {
  const auto isTaken = [](auto&& call) {
    try {
      call();
    } catch (const std::exception& e) {
      return e.what()[0] != '\0';
    } catch (...) {
    }
    return false;
  };
  EXPECT_TRUE(isTaken([] { Pipeline().finalize(); }));
  EXPECT_TRUE(isTaken([] { BitpackStage<std::uint16_t>().setNBits(12); }));
}

TEST(PipelineErrors, AValidPipelineThrowsNothing) {
  Pipeline pipeline;
  const auto values = wave(kValues);
  EXPECT_NO_THROW(buildRleChain(pipeline));
  EXPECT_NO_THROW(roundTrip(pipeline, values));
  EXPECT_NO_THROW(roundTrip(pipeline, values));
}

/// PassThrough -> Stubborn -> RLE, on a strategy.
struct StubbornPipeline {
  explicit StubbornPipeline(MemoryStrategy strategy) : pipeline(kValues * 4, strategy) {
    auto* first = pipeline.addStage<ZigzagStage<std::int32_t>>();
    stage = pipeline.addStage<StubbornStage>();
    auto* last = pipeline.addStage<RLEStage<std::uint32_t>>();
    pipeline.connect(stage, first);
    pipeline.connect(last, stage);
    pipeline.finalize();
  }
  Pipeline pipeline;
  StubbornStage* stage = nullptr;
  std::vector<std::int32_t> values = std::vector<std::int32_t>(kValues, -7);
};

class Recovery : public testing::TestWithParam<MemoryStrategy> {};

TEST_P(Recovery, AFailedCompressLeavesAUsablePipelineAndNoStaleFrame) {
  StubbornPipeline p(GetParam());
  frameOf(p.pipeline, p.values);
  p.stage->fails_forward = true;
  EXPECT_EQ(codeOf([&] { frameOf(p.pipeline, p.values); }), ErrorCode::kBadSize);
  void* out = nullptr;
  std::size_t n_bytes = 0;
  EXPECT_EQ(codeOf([&] { p.pipeline.decompress(nullptr, 0, &out, &n_bytes); }),
            ErrorCode::kInvalidState);
  p.stage->fails_forward = false;
  EXPECT_EQ(roundTrip(p.pipeline, p.values), p.values);
}

TEST_P(Recovery, AFailedFirstCompressLeavesAUsablePipeline) {
  StubbornPipeline p(GetParam());
  p.stage->fails_forward = true;
  EXPECT_EQ(codeOf([&] { frameOf(p.pipeline, p.values); }), ErrorCode::kBadSize);
  EXPECT_EQ(p.pipeline.getLastUncompressedSize(), 0u);
  p.stage->fails_forward = false;
  EXPECT_EQ(roundTrip(p.pipeline, p.values), p.values);
}

TEST_P(Recovery, AFailedDecompressLeavesStagesForwardAndTheFrameDecodable) {
  StubbornPipeline p(GetParam());
  const FrameBytes frame = frameOf(p.pipeline, p.values);
  p.stage->fails_inverse = true;
  EXPECT_EQ(codeOf([&] { decoded<std::int32_t>(p.pipeline, frame); }), ErrorCode::kBadSize);
  EXPECT_FALSE(p.stage->isInverse());
  EXPECT_EQ(frameOf(p.pipeline, p.values), frame);
  p.stage->fails_inverse = false;
  EXPECT_EQ(decoded<std::int32_t>(p.pipeline, frame), p.values);
}

TEST_P(Recovery, ADamagedFrameIsRefusedAndTheNextOneDecodes) {
  Pipeline pipeline(kValues * sizeof(float), GetParam());
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  const FrameBytes frame = frameOf(pipeline, values);
  FrameBytes damaged = frame;
  damaged[damaged.size() - 5] ^= 0x10;
  EXPECT_EQ(codeOf([&] { decoded<float>(pipeline, damaged); }), ErrorCode::kCorrupt);
  EXPECT_EQ(codeOf([&] { decoded<float>(pipeline, ByteView(frame).first(100)); }),
            ErrorCode::kCorrupt);
  EXPECT_EQ(countMisses(values, decoded<float>(pipeline, frame)), 0u);
}

TEST_P(Recovery, FailedCallsDoNotGrowMemory) {
  StubbornPipeline p(GetParam());
  const FrameBytes frame = frameOf(p.pipeline, p.values);
  decoded<std::int32_t>(p.pipeline, frame);
  p.pipeline.reset();
  const MemoryPool& pool = p.pipeline.getMemoryPool();
  const std::size_t used = pool.getCurrentUsage();
  const std::size_t n_blocks = pool.getAllocationCount();
  const std::size_t n_system = pool.getSystemAllocationCount();
  p.stage->fails_forward = true;
  p.stage->fails_inverse = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(codeOf([&] { frameOf(p.pipeline, p.values); }), ErrorCode::kBadSize);
    EXPECT_EQ(codeOf([&] { decoded<std::int32_t>(p.pipeline, frame); }), ErrorCode::kBadSize);
    EXPECT_EQ(pool.getCurrentUsage(), used);
    EXPECT_EQ(pool.getAllocationCount(), n_blocks);
    EXPECT_EQ(pool.getSystemAllocationCount(), n_system);
  }
}

TEST_P(Recovery, CompressDecompressCompressNeedsNoReset) {
  Pipeline pipeline(kValues * sizeof(float), GetParam());
  buildRleChain(pipeline);
  const auto first = wave(kValues);
  const auto second = wave(kValues, 99.0);
  EXPECT_EQ(countMisses(first, roundTrip(pipeline, first)), 0u);
  EXPECT_EQ(countMisses(second, roundTrip(pipeline, second)), 0u);
}

INSTANTIATE_TEST_SUITE_P(PipelineErrors,
                         Recovery,
                         testing::Values(MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE),
                         [](const auto& row) {
                           return row.param == MemoryStrategy::MINIMAL ? "Minimal" : "Preallocate";
                         });

TEST(PipelineErrors, AFailedFinalizeCanBeRepaired) {
  Pipeline pipeline;
  auto* quantizer = addQuantizer(pipeline);
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  EXPECT_EQ(codeOf([&] { pipeline.finalize(); }), ErrorCode::kGraph);
  EXPECT_FALSE(pipeline.isFinalized());
  pipeline.connect(rle, quantizer, "codes");
  pipeline.finalize();
  const auto values = wave(100);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(PipelineErrors, DecodingOtherFramesBeforeFinalizeDoesNotForgetCustomStages) {
  Pipeline other;
  buildRleChain(other);
  const auto values = wave(100);
  const FrameBytes frame = frameOf(other, values);

  Pipeline pipeline;
  EXPECT_EQ(countMisses(values, decoded<float>(pipeline, frame)), 0u);
  pipeline.addStage<PassThroughStage>();
  pipeline.finalize();
  EXPECT_EQ(roundTrip(pipeline, values), values);
}

}  // namespace
}  // namespace fz::test
