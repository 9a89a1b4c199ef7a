#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

#include "coders/bitpack/bitpack_stage.h"
#include "coders/huffman/huffman_stage.h"
#include "predictors/diff/diff.h"
#include "predictors/lorenzo/lorenzo_stage.h"
#include "support/pipelines.h"
#include "support/test_stages.h"
#include "transforms/zigzag/zigzag_stage.h"

namespace fz::test {
namespace {

/// Makes the nodes of a graph in any order, then connects them.
struct GraphRecipe {
  struct Edge {
    std::size_t to;
    std::size_t from;
    std::string port;
  };
  std::vector<std::function<Stage*(Pipeline&)>> nodes;
  std::vector<Edge> edges;

  void build(Pipeline& pipeline, const std::vector<std::size_t>& order) const {
    std::vector<Stage*> made(nodes.size());
    for (const std::size_t i : order) {
      made[i] = nodes[i](pipeline);
    }
    for (const Edge& edge : edges) {
      pipeline.connect(made[edge.to], made[edge.from], edge.port);
    }
    pipeline.finalize();
  }
};

template <class StageT>
Stage* add(Pipeline& pipeline) {
  return pipeline.addStage<StageT>();
}
Stage* addSource(Pipeline& pipeline) {
  return addQuantizer(pipeline);
}

/// Frames of every order of addition are the same, and they decode.
void expectOneFrame(const GraphRecipe& recipe, const std::vector<float>& values) {
  std::vector<std::size_t> order(recipe.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  FrameBytes expected;
  do {
    Pipeline pipeline;
    recipe.build(pipeline, order);
    const FrameBytes frame = frameOf(pipeline, values);
    if (expected.empty()) {
      expected = frame;
      EXPECT_EQ(countMisses(values, decoded<float>(pipeline, frame)), 0u);
    }
    EXPECT_EQ(frame, expected);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(GraphOrder, AConsumerMayBeAddedBeforeItsProducer) {
  Pipeline pipeline;
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  auto* difference = pipeline.addStage<DifferenceStage<std::uint16_t>>();
  auto* quantizer = addQuantizer(pipeline);
  pipeline.connect(rle, difference);
  pipeline.connect(difference, quantizer, "codes");
  pipeline.finalize();
  const auto values = wave(5000);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(GraphOrder, AChainGivesTheSameFrameInEveryOrderOfAddition) {
  expectOneFrame({{&addSource, &add<DifferenceStage<std::uint16_t>>, &add<RLEStage<std::uint16_t>>},
                  {{1, 0, "codes"}, {2, 1, "output"}}},
                 wave(3000));
}

TEST(GraphOrder, BranchesGiveTheSameFrameInEveryOrderOfAddition) {
  expectOneFrame({{&addSource, &add<RLEStage<std::uint16_t>>, &add<RLEStage<std::uint32_t>>,
                   &add<HuffmanStage<std::uint16_t>>},
                  {{1, 0, "codes"}, {2, 0, "outlier_indices"}, {3, 0, "codes"}}},
                 wave(2000));
}

TEST(GraphOrder, TwinStagesAreToldApartByWhatFollowsThem) {
  expectOneFrame(
      {{&addSource, &add<DifferenceStage<std::uint16_t>>, &add<DifferenceStage<std::uint16_t>>,
        &add<RLEStage<std::uint16_t>>, &add<BitpackStage<std::uint16_t>>},
       {{1, 0, "codes"}, {2, 0, "codes"}, {3, 1, "output"}, {4, 2, "output"}}},
      wave(2000));
}

TEST(GraphOrder, TwinStagesAreToldApartByTheInputTheyFill) {
  GraphRecipe recipe{
      {&add<SplitStage>, &add<PassThroughStage>, &add<PassThroughStage>, &add<MergeStage>},
      {{1, 0, "first"}, {2, 0, "first"}, {3, 2, "output"}, {3, 1, "output"}}};
  const auto values = wave(100);
  std::vector<std::size_t> order = {0, 1, 2, 3};
  FrameBytes expected;
  do {
    Pipeline pipeline;
    recipe.build(pipeline, order);
    const FrameBytes frame = frameOf(pipeline, values);
    expected = expected.empty() ? frame : expected;
    EXPECT_EQ(frame, expected);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(GraphOrder, TwoObjectsGiveTheSameFrame) {
  const auto values = wave(5000);
  FrameBytes expected;
  for (int i = 0; i < 5; ++i) {
    auto pipeline = std::make_unique<Pipeline>();
    buildRleChain(*pipeline);
    const FrameBytes frame = frameOf(*pipeline, values);
    expected = expected.empty() ? frame : expected;
    EXPECT_EQ(frame, expected);
  }
}

TEST(GraphErrors, APipelineWithoutStagesIsRefused) {
  Pipeline pipeline;
  EXPECT_EQ(codeOf([&] { pipeline.finalize(); }), ErrorCode::kGraph);
}

TEST(GraphErrors, TwoStagesThatFeedEachOtherAreRefused) {
  Pipeline pipeline;
  auto* a = pipeline.addStage<PassThroughStage>();
  auto* b = pipeline.addStage<PassThroughStage>();
  pipeline.connect(a, b);
  pipeline.connect(b, a);
  const Failure failure = failureOf([&] { pipeline.finalize(); });
  EXPECT_EQ(failure.code, ErrorCode::kGraph);
  EXPECT_TRUE(failure.mentions("cycle")) << failure.message;
}

TEST(GraphErrors, ACycleBehindTheSourceIsRefusedWithItsStages) {
  Pipeline pipeline;
  auto* source = pipeline.addStage<ZigzagStage<std::int32_t>>();
  auto* merge = pipeline.addStage<MergeStage>();
  auto* pass = pipeline.addStage<PassThroughStage>();
  pipeline.connect(merge, {source, pass});
  pipeline.connect(pass, merge);
  const Failure failure = failureOf([&] { pipeline.finalize(); });
  EXPECT_EQ(failure.code, ErrorCode::kGraph);
  EXPECT_TRUE(failure.mentions("Merge") && failure.mentions("PassThrough")) << failure.message;
  EXPECT_FALSE(failure.mentions("Zigzag")) << failure.message;
}

TEST(GraphErrors, AnIsolatedStageAmongConnectedOnesIsRefusedByName) {
  Pipeline pipeline;
  auto* quantizer = addQuantizer(pipeline);
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  pipeline.addStage<HuffmanStage<std::uint16_t>>();
  pipeline.connect(rle, quantizer, "codes");
  const Failure failure = failureOf([&] { pipeline.finalize(); });
  EXPECT_EQ(failure.code, ErrorCode::kGraph);
  EXPECT_TRUE(failure.mentions("Huffman")) << failure.message;
}

TEST(GraphErrors, SeveralSourcesAreRefusedByName) {
  Pipeline unconnected;
  addQuantizer(unconnected);
  unconnected.addStage<RLEStage<std::uint16_t>>();
  Failure failure = failureOf([&] { unconnected.finalize(); });
  EXPECT_EQ(failure.code, ErrorCode::kGraph);
  EXPECT_TRUE(failure.mentions("LorenzoQuant") && failure.mentions("RLE")) << failure.message;

  Pipeline merged;
  auto* a = merged.addStage<ZigzagStage<std::int32_t>>();
  auto* b = merged.addStage<ZigzagStage<std::int32_t>>();
  auto* merge = merged.addStage<MergeStage>();
  merged.connect(merge, {a, b});
  failure = failureOf([&] { merged.finalize(); });
  EXPECT_EQ(failure.code, ErrorCode::kGraph);
  EXPECT_TRUE(failure.mentions("Zigzag1")) << failure.message;
}

TEST(GraphErrors, AMissingOrSurplusInputIsRefused) {
  Pipeline missing;
  auto* split = missing.addStage<SplitStage>();
  auto* merge = missing.addStage<MergeStage>();
  missing.connect(merge, split, "first");
  const Failure failure = failureOf([&] { missing.finalize(); });
  EXPECT_EQ(failure.code, ErrorCode::kGraph);
  EXPECT_TRUE(failure.mentions("Merge")) << failure.message;
  missing.connect(merge, split, "second");
  EXPECT_NO_THROW(missing.finalize());

  Pipeline surplus;
  auto* two = surplus.addStage<SplitStage>();
  auto* pass = surplus.addStage<PassThroughStage>();
  surplus.connect(pass, two, "first");
  surplus.connect(pass, two, "second");
  EXPECT_EQ(codeOf([&] { surplus.finalize(); }), ErrorCode::kGraph);
}

TEST(GraphErrors, AnUnknownPortIsRefusedWithThePortsThatExist) {
  Pipeline pipeline;
  auto* quantizer = addQuantizer(pipeline);
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  for (const std::string port : {"output", "kodes", ""}) {
    const Failure failure = failureOf([&] { pipeline.connect(rle, quantizer, port); });
    EXPECT_EQ(failure.code, ErrorCode::kGraph);
    EXPECT_TRUE(failure.mentions("codes, outlier_errors, outlier_indices")) << failure.message;
  }
  pipeline.connect(rle, quantizer, "codes");
  EXPECT_NO_THROW(pipeline.finalize()) << "failed connects leave no trace";
}

TEST(GraphErrors, TheFormerPortOutlierCountIsAnsweredWithItsReplacement) {
  Pipeline pipeline;
  auto* quantizer = addQuantizer(pipeline);
  auto* rle = pipeline.addStage<RLEStage<std::uint32_t>>();
  const Failure failure = failureOf([&] { pipeline.connect(rle, quantizer, "outlier_count"); });
  EXPECT_EQ(failure.code, ErrorCode::kGraph);
  EXPECT_TRUE(failure.mentions("getActualOutputSizesByName")) << failure.message;
}

TEST(GraphErrors, StagesOfOtherPipelinesAndNullAreRefused) {
  Pipeline pipeline;
  Pipeline other;
  auto* mine = pipeline.addStage<PassThroughStage>();
  auto* theirs = other.addStage<PassThroughStage>();
  const auto kArgument = ErrorCode::kInvalidArgument;
  EXPECT_EQ(codeOf([&] { pipeline.connect(mine, theirs); }), kArgument);
  EXPECT_EQ(codeOf([&] { pipeline.connect(theirs, mine); }), kArgument);
  EXPECT_EQ(codeOf([&] { pipeline.connect(mine, static_cast<Stage*>(nullptr)); }), kArgument);
  EXPECT_EQ(codeOf([&] { pipeline.connect(nullptr, mine); }), kArgument);
  EXPECT_EQ(codeOf([&] { pipeline.addStage(std::unique_ptr<Stage>()); }), kArgument);
}

template <class From, class To>
Failure connectTypes(const std::string& port) {
  Pipeline pipeline;
  auto* from = pipeline.addStage<From>();
  auto* to = pipeline.addStage<To>();
  pipeline.connect(to, from, port);
  return failureOf([&] { pipeline.finalize(); });
}

TEST(GraphErrors, ATypeMismatchNamesBothStagesThePortAndTheTypes) {
  const Failure failure = connectTypes<LorenzoQuantF32, RLEStage<std::uint32_t>>("codes");
  EXPECT_EQ(failure.code, ErrorCode::kTypeMismatch);
  for (const std::string text : {"LorenzoQuant", "codes", "uint16", "RLE", "uint32"}) {
    EXPECT_TRUE(failure.mentions(text)) << text << " in: " << failure.message;
  }
}

TEST(GraphErrors, EqualWidthsConnectAndOtherTypesDoNot) {
  const auto kMismatch = ErrorCode::kTypeMismatch;
  EXPECT_FALSE((connectTypes<LorenzoQuantF32, RLEStage<std::uint16_t>>("codes").code));
  EXPECT_FALSE(
      (connectTypes<LorenzoQuantF32, DifferenceStage<std::int16_t, std::uint16_t>>("codes").code));
  EXPECT_FALSE((connectTypes<LorenzoQuantF32, BitpackStage<std::uint8_t>>("codes").code));
  EXPECT_FALSE((connectTypes<PassThroughStage, LorenzoQuantF32>("output").code));
  EXPECT_EQ((connectTypes<LorenzoQuantF32, LorenzoStage<std::int32_t>>("outlier_errors").code),
            kMismatch)
      << "float32 to int32";
  EXPECT_EQ((connectTypes<DifferenceStage<double>, LorenzoQuantF32>("output").code), kMismatch)
      << "float64 to float32";
}

}  // namespace
}  // namespace fz::test
