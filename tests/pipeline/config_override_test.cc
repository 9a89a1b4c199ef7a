#include <gtest/gtest.h>

#include "support/pipelines.h"

namespace fz::test {
namespace {

const char* const kText = R"([pipeline]
input_size = 4000
dims = [100, 10]

[[stage]]
name = "predict"
type = "LorenzoQuant"
error_bound = 0.5

[[stage]]
name = "code"
type = "Huffman"
bklen = 65536
inputs = [{ from = "predict", port = "codes" }]
)";

TEST(ConfigOverrides, ReplaceSettingsOfNamedAndUnnamedStages) {
  ConfigOverrides overrides;
  overrides.params = {{"error_bound", "1e-2"}, {"code.encode_mode", "Fine"}};
  Pipeline pipeline;
  pipeline.loadConfigText(kText, "a.toml", overrides);
  EXPECT_EQ(getParam(*pipeline.getStages()[0], "error_bound"), ParamValue(1e-2));
  EXPECT_EQ(getParam(*pipeline.getStages()[1], "encode_mode"), ParamValue(std::string("Fine")));
  const auto values = wave(1000);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(ConfigOverrides, ReplaceTheTypeOfTheSource) {
  ConfigOverrides overrides;
  overrides.input_type = DataType::FLOAT64;
  Pipeline pipeline;
  pipeline.loadConfigText(kText, "a.toml", overrides, false);
  EXPECT_EQ(pipeline.getStages()[0]->elementTypes()[0], DataType::FLOAT64);
  EXPECT_EQ(pipeline.getStages()[1]->elementTypes()[0], DataType::UINT16);
}

TEST(ConfigOverrides, ReplaceTheDims) {
  ConfigOverrides overrides;
  overrides.dims = {50, 20, 1};
  Pipeline pipeline;
  pipeline.loadConfigText(kText, "a.toml", overrides);
  EXPECT_EQ(pipeline.getDims(), (std::array<std::size_t, 3>{50, 20, 1}));
}

TEST(ConfigOverrides, WhatTheProgramSetGoesBeforeTheFile) {
  Pipeline pipeline(8000);
  pipeline.setDims(200, 10);
  pipeline.loadConfigText(kText, "a.toml");
  EXPECT_EQ(pipeline.getDims(), (std::array<std::size_t, 3>{200, 10, 1}));
  const auto values = wave(2000);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values), 0.5), 0u);
}

TEST(ConfigOverrides, SettingsMayChangeBetweenLoadAndFinalize) {
  Pipeline pipeline;
  pipeline.loadConfigText(kText, "a.toml", {}, false);
  EXPECT_FALSE(pipeline.isFinalized());
  setParam(*pipeline.getStages()[0], "error_bound", kBound);
  pipeline.finalize();
  const auto values = wave(1000);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(ConfigOverrides, ThatFitNoStageAreRefused) {
  for (const auto& [target, text] :
       std::vector<std::pair<std::string, std::string>>{{"no_such_key", "1"},
                                                        {"code.error_bound", "1e-3"},
                                                        {"nobody.error_bound", "1e-3"},
                                                        {"error_bound", "small"},
                                                        {"error_bound", "-1"},
                                                        {"error_bound", ""}}) {
    ConfigOverrides overrides;
    overrides.params = {{target, text}};
    Pipeline pipeline;
    const Failure failure = failureOf([&] { pipeline.loadConfigText(kText, "a.toml", overrides); });
    EXPECT_EQ(failure.code, ErrorCode::kInvalidArgument) << target << " = " << text;
    EXPECT_EQ(pipeline.getStages().size(), 0u);
    pipeline.loadConfigText(kText, "a.toml");
  }
}

}  // namespace
}  // namespace fz::test
