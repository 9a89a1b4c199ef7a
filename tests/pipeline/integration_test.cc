#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>

#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "coders/bitpack/bitpack_stage.h"
#include "coders/huffman/huffman_stage.h"
#include "coders/rze/rze_stage.h"
#include "fused/bitplane_rze/bitplane_rze_stage.h"
#include "predictors/diff/diff.h"
#include "predictors/lorenzo/lorenzo_stage.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "support/pipelines.h"
#include "transforms/zigzag/zigzag_stage.h"

namespace fz::test {
namespace {

constexpr std::size_t kValues = 16 * 1024;

std::vector<std::int32_t> steps(std::size_t n) {
  std::vector<std::int32_t> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<std::int32_t>(i / 7) - 500;
  }
  return values;
}

TEST(Pipeline, LorenzoQuantAloneKeepsTheBoundAndShrinksSmoothData) {
  Pipeline pipeline;
  addQuantizer(pipeline);
  pipeline.finalize();
  const auto values = wave(kValues);
  const FrameBytes frame = frameOf(pipeline, values);
  EXPECT_LT(frame.size(), byteCount(values));
  EXPECT_EQ(countMisses(values, decoded<float>(pipeline, frame)), 0u);
}

TEST(Pipeline, LorenzoQuantToDifferenceKeepsTheBound) {
  Pipeline pipeline;
  auto* quantizer = addQuantizer(pipeline);
  auto* difference = pipeline.addStage<DifferenceStage<std::uint16_t>>();
  pipeline.connect(difference, quantizer, "codes");
  pipeline.finalize();
  const auto values = wave(kValues);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(Pipeline, LorenzoQuantToRleKeepsTheBound) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(Pipeline, LorenzoQuantToDifferenceToRleKeepsTheBound) {
  Pipeline pipeline;
  auto* quantizer = addQuantizer(pipeline);
  auto* difference = pipeline.addStage<DifferenceStage<std::uint16_t>>();
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  pipeline.connect(difference, quantizer, "codes");
  pipeline.connect(rle, difference);
  pipeline.finalize();
  const auto values = wave(kValues);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(Pipeline, LongCoderChainsKeepTheBound) {
  const auto values = wave(kValues);
  {
    Pipeline pipeline;
    auto* quantizer = addQuantizer(pipeline);
    auto* shuffle = pipeline.addStage<BitshuffleStage>();
    shuffle->setElementWidth(2);
    auto* rze = pipeline.addStage<RZEStage>();
    pipeline.connect(shuffle, quantizer, "codes");
    pipeline.connect(rze, shuffle);
    pipeline.finalize();
    EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u) << "Bitshuffle, RZE";
  }
  {
    Pipeline pipeline;
    auto* huffman = pipeline.addStage<HuffmanStage<std::uint16_t>>();
    pipeline.connect(huffman, addQuantizer(pipeline), "codes");
    pipeline.finalize();
    EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u) << "Huffman";
  }
  {
    Pipeline pipeline;
    auto* pack = pipeline.addStage<BitpackStage<std::uint16_t>>();
    pipeline.connect(pack, addQuantizer(pipeline), "codes");
    pipeline.finalize();
    EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u) << "Bitpack";
  }
  {
    Pipeline pipeline;
    auto* planes = pipeline.addStage<BitplaneRZEStage>();
    pipeline.connect(planes, addQuantizer(pipeline), "codes");
    pipeline.finalize();
    EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u) << "BitplaneRZE";
  }
}

TEST(Pipeline, IntegerChainsAreLossless) {
  const auto values = steps(60 * 50);
  {
    Pipeline pipeline;
    auto* lorenzo = pipeline.addStage<LorenzoStage<std::int32_t>>();
    auto* pack = pipeline.addStage<AdaptiveBitpackStage<std::int32_t>>();
    pipeline.connect(pack, lorenzo);
    pipeline.finalize();
    EXPECT_EQ(roundTrip(pipeline, values), values);
  }
  {
    Pipeline pipeline;
    pipeline.setDims(60, 50);
    auto* tiles = pipeline.addStage<TiledLorenzoStage<std::int32_t>>();
    auto* zigzag = pipeline.addStage<ZigzagStage<std::int32_t>>();
    auto* rle = pipeline.addStage<RLEStage<std::uint32_t>>();
    pipeline.connect(zigzag, tiles);
    pipeline.connect(rle, zigzag);
    pipeline.finalize();
    EXPECT_EQ(roundTrip(pipeline, values), values);
  }
}

TEST(Pipeline, OutliersTravelWithoutBeingConnected) {
  Pipeline pipeline;
  auto* quantizer = addQuantizer(pipeline, 4);
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  pipeline.connect(rle, quantizer, "codes");
  pipeline.finalize();
  auto values = wave(kValues);
  for (std::size_t i = 0; i < values.size(); i += 3) {
    values[i] += 1000.0f;
  }
  values[5] = std::numeric_limits<float>::quiet_NaN();
  values[6] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
  EXPECT_GT(quantizer->getActualOutputSizesByName().at("outlier_indices"), 0u);
}

TEST(Pipeline, AFileOfOnePipelineIsDecodedByAnother) {
  const TempFolder folder;
  const auto values = wave(kValues);
  {
    Pipeline writer;
    buildRleChain(writer);
    frameOf(writer, values);
    writer.writeToFile(folder.file("a.fzm"));
  }
  Pipeline reader;
  void* out = nullptr;
  std::size_t n_bytes = 0;
  reader.decompressFromFileInstance(folder.file("a.fzm"), &out, &n_bytes);
  ASSERT_EQ(n_bytes, byteCount(values));
  EXPECT_EQ(countBoundViolations(values.data(), static_cast<float*>(out), values.size(), kBound),
            0u);
}

TEST(Pipeline, AFrameIsDecodedByAnInstanceThatNeverCompressed) {
  Pipeline encoder;
  buildRleChain(encoder);
  const auto values = wave(1000);
  const FrameBytes frame = frameOf(encoder, values);

  Pipeline fresh;
  EXPECT_EQ(countMisses(values, decoded<float>(fresh, frame)), 0u) << "not finalized";
  Pipeline other;
  other.addStage<ZigzagStage<std::int32_t>>();
  other.finalize();
  EXPECT_EQ(countMisses(values, decoded<float>(other, frame)), 0u) << "another graph";
}

TEST(Pipeline, AnOldFrameIsDecodedAfterALaterCompress) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto first = wave(3000);
  const auto second = wave(500, 777.0);
  const FrameBytes frame = frameOf(pipeline, first);
  frameOf(pipeline, second);
  EXPECT_EQ(countMisses(first, decoded<float>(pipeline, frame)), 0u);
}

TEST(Pipeline, AFrameAtAnyAddressIsDecoded) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto values = wave(1001);
  const FrameBytes frame = frameOf(pipeline, values);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    FrameBytes moved(shift + frame.size());
    std::copy(frame.begin(), frame.end(), moved.begin() + static_cast<std::ptrdiff_t>(shift));
    EXPECT_EQ(countMisses(values, decoded<float>(pipeline, ByteView(moved).subspan(shift))), 0u);
  }
}

class EveryStrategy : public testing::TestWithParam<MemoryStrategy> {};

TEST_P(EveryStrategy, ThreeDataSetsWithAndWithoutResetInBetween) {
  for (const bool with_reset : {true, false}) {
    Pipeline pipeline(kValues * sizeof(float), GetParam());
    buildRleChain(pipeline);
    for (int i = 0; i < 3; ++i) {
      const auto values = wave(kValues, 1000.0 * i);
      EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u) << "data set " << i;
      if (with_reset) {
        pipeline.reset();
      }
    }
  }
}

TEST_P(EveryStrategy, RepeatsGiveTheSameFrameAndTheSameValues) {
  Pipeline pipeline(kValues * sizeof(float), GetParam());
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  const FrameBytes frame = frameOf(pipeline, values);
  const auto back = decoded<float>(pipeline, frame);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(frameOf(pipeline, values), frame);
    EXPECT_EQ(decoded<float>(pipeline, frame), back);
  }
}

TEST_P(EveryStrategy, SizesMayGoDownAndUpAgain) {
  Pipeline pipeline(kValues * sizeof(float), GetParam());
  buildRleChain(pipeline);
  for (const std::size_t n : {kValues, kValues / 2, kValues, std::size_t{1}, kValues}) {
    const auto values = wave(n);
    EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u) << n << " values";
  }
}

TEST_P(EveryStrategy, WithoutASizeHintAnySizeWorks) {
  Pipeline pipeline(0, GetParam());
  buildRleChain(pipeline);
  for (const std::size_t n : {std::size_t{10}, kValues, std::size_t{100}, 4 * kValues}) {
    const auto values = wave(n);
    EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u) << n << " values";
  }
}

TEST_P(EveryStrategy, TwoAndThreeDimensionsKeepTheBound) {
  for (const std::array<std::size_t, 3>& dims :
       {std::array<std::size_t, 3>{64, 64, 1}, std::array<std::size_t, 3>{16, 16, 16}}) {
    Pipeline pipeline(0, GetParam());
    pipeline.setDims(dims);
    buildRleChain(pipeline);
    const auto values = wave(dims[0] * dims[1] * dims[2]);
    EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Pipeline,
                         EveryStrategy,
                         testing::Values(MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE),
                         [](const auto& row) {
                           return row.param == MemoryStrategy::MINIMAL ? "Minimal" : "Preallocate";
                         });

TEST(Pipeline, DimsReachAStageAtOnceWhetherSetBeforeOrAfterIt) {
  using Dims = std::array<std::size_t, 3>;
  for (const auto& [dims, ndim] :
       {std::pair<Dims, int>{{100, 1, 1}, 1}, {{64, 32, 1}, 2}, {{8, 16, 4}, 3}}) {
    Pipeline before;
    before.setDims(dims);
    const auto* stage = addQuantizer(before);
    EXPECT_EQ(stage->ndim(), ndim);
    EXPECT_EQ(stage->getDims(), dims);
    Pipeline after;
    stage = addQuantizer(after);
    after.setDims(dims);
    EXPECT_EQ(stage->ndim(), ndim);
    EXPECT_EQ(stage->getDims(), dims);
  }
}

TEST(Pipeline, DimsOfAStageWinOverThoseOfThePipeline) {
  const std::array<std::size_t, 3> own = {32, 8, 1};
  Pipeline pipeline;
  pipeline.setDims(256);
  auto* from_config =
      pipeline.addStage<LorenzoQuantF32>(LorenzoQuantF32::Config(kBound, 512, 0.2, own));
  pipeline.setDims(256, 1, 1);
  pipeline.finalize();
  EXPECT_EQ(from_config->getDims(), own);

  Pipeline second;
  auto* by_setter = addQuantizer(second);
  by_setter->setDims(own);
  second.setDims(256);
  second.finalize();
  EXPECT_EQ(by_setter->getDims(), own);
}

TEST(Pipeline, ResetGivesTheBuffersUpAndTheNextCompressIsCorrect) {
  Pipeline pipeline;
  buildRleChain(pipeline);
  const auto values = wave(kValues);
  frameOf(pipeline, values);
  EXPECT_GT(pipeline.getCurrentMemoryUsage(), 0u);
  pipeline.reset();
  EXPECT_EQ(pipeline.getCurrentMemoryUsage(), 0u);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
  EXPECT_GT(pipeline.getCurrentMemoryUsage(), 0u);
}

TEST(Pipeline, ABranchThatDecodingDoesNotNeedIsStoredAndHarmless) {
  Pipeline pipeline;
  auto* quantizer = addQuantizer(pipeline);
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  auto* shuffle = pipeline.addStage<BitshuffleStage>();
  shuffle->setElementWidth(2);
  pipeline.connect(rle, quantizer, "codes");
  pipeline.connect(shuffle, quantizer, "codes");
  pipeline.finalize();
  const auto values = wave(5000);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
  EXPECT_EQ(pipeline.buildHeader().buffers.size(), 4u);
}

TEST(Pipeline, AHundredMegabytesKeepTheBound) {
  std::vector<float> values(25'000'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i / 64 % 1000) * 0.25f;
  }
  Pipeline pipeline(byteCount(values), MemoryStrategy::PREALLOCATE);
  buildRleChain(pipeline);
  const CompressedView frame = pipeline.compress(values.data(), byteCount(values));
  EXPECT_LT(frame.n_bytes, byteCount(values));
  void* out = nullptr;
  std::size_t n_bytes = 0;
  pipeline.decompress(frame.data, frame.n_bytes, &out, &n_bytes);
  ASSERT_EQ(n_bytes, byteCount(values));
  EXPECT_EQ(countBoundViolations(values.data(), static_cast<float*>(out), values.size(), kBound),
            0u);
}

}  // namespace
}  // namespace fz::test
