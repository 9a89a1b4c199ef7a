#include <gtest/gtest.h>

#include "fz/host_api.h"
#include "predictors/lorenzo/lorenzo_stage.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"
#include "support/pipelines.h"
#include "transforms/zigzag/zigzag_stage.h"

namespace fz::test {
namespace {

using Dims = std::array<std::size_t, 3>;

const std::vector<std::int32_t> kIntegers(32 * 8 * 4, 7);

/// What the frame says of the integers' shape.
FrameInfo described(Pipeline& pipeline) {
  pipeline.finalize();
  return inspect(frameOf(pipeline, kIntegers));
}

TEST(FrameDims, AreThoseOfTheStageWhenThePipelineHasNone) {
  Pipeline pipeline;
  pipeline.addStage<LorenzoStage<std::int32_t>>()->setDims(32, 8, 4);
  const FrameInfo info = described(pipeline);
  EXPECT_EQ(info.dims, (Dims{32, 8, 4}));
  EXPECT_EQ(info.ndim, 3);

  Pipeline tiled;
  tiled.addStage<TiledLorenzoStage<std::int32_t>>()->setDims(32, 32);
  EXPECT_EQ(described(tiled).dims, (Dims{32, 32, 1}));

  Pipeline fused;
  addQuantizer(fused)->setDims(100, 10);
  fused.finalize();
  EXPECT_EQ(inspect(frameOf(fused, wave(1000))).dims, (Dims{100, 10, 1}));
}

TEST(FrameDims, ComeFromTheFirstStageThatHasAny) {
  Pipeline pipeline;
  auto* quantizer = addQuantizer(pipeline);
  auto* second = pipeline.addStage<LorenzoStage<std::int16_t>>();
  auto* third = pipeline.addStage<LorenzoStage<std::int16_t>>();
  second->setDims(50, 20);
  third->setDims(20, 50);
  pipeline.connect(second, quantizer, "codes");
  pipeline.connect(third, second);
  pipeline.finalize();
  const FrameInfo info = inspect(frameOf(pipeline, wave(1000)));
  EXPECT_EQ(info.dims, (Dims{50, 20, 1}));
  EXPECT_EQ(info.ndim, 2);
}

/// Bytes have no type of their own, so the caller's word is all there is.
TEST(FrameDims, AndTypeAreTheCallersWhereTheFirstStageTakesAnyBytes) {
  CompressOptions options;
  options.preset = "bytes";
  options.config_toml =
      "[[stage]]\nname = \"s\"\ntype = \"Bitshuffle\"\nelement_width = 4\n"
      "[[stage]]\nname = \"c\"\ntype = \"RZE\"\ninputs = [{ from = \"s\" }]\n";
  options.backend = Backend::CPU;
  options.dims = {100, 10, 1};
  const std::vector<float> values = wave(1000);
  const Frame frame = compress(std::span<const float>(values), options);
  const FrameInfo info = inspect(frame);
  EXPECT_EQ(info.type, DataType::FLOAT32);
  EXPECT_EQ(info.dims, (Dims{100, 10, 1}));
  EXPECT_EQ(info.ndim, 2);
  EXPECT_TRUE(info.lossless);
  const Array decoded = decompress(frame);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), decoded.as<float>().begin(),
                         decoded.as<float>().end()));
  options.dims = {100, 11, 1};
  EXPECT_THROW(compress(std::span<const float>(values), options), Error);
}

TEST(FrameDims, OfThePipelineWinOverThoseOfAStage) {
  Pipeline pipeline;
  pipeline.setDims(64, 16);
  pipeline.addStage<LorenzoStage<std::int32_t>>()->setDims(32, 8, 4);
  EXPECT_EQ(described(pipeline).dims, (Dims{64, 16, 1}));
}

TEST(FrameDims, AnOpenFirstExtentIsFilledIn) {
  Pipeline by_stage;
  by_stage.addStage<LorenzoStage<std::int32_t>>()->setDims(0, 8, 4);
  EXPECT_EQ(described(by_stage).dims, (Dims{32, 8, 4}));

  Pipeline by_pipeline;
  by_pipeline.setDims(0, 8, 4);
  by_pipeline.addStage<LorenzoStage<std::int32_t>>();
  EXPECT_EQ(described(by_pipeline).dims, (Dims{32, 8, 4}));
}

TEST(FrameDims, ThatDoNotHoldTheDataAreRefusedAlsoByStagesThatNeedNone) {
  Pipeline pipeline;
  pipeline.setDims(10, 10);
  pipeline.addStage<ZigzagStage<std::int32_t>>();
  EXPECT_EQ(codeOf([&] { described(pipeline); }), ErrorCode::kBadSize);
}

}  // namespace
}  // namespace fz::test
