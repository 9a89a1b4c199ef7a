#include <gtest/gtest.h>

#include "coders/bitpack/bitpack_stage.h"
#include "fz/params.h"
#include "fz/stage_descriptor.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "support/pipelines.h"
#include "support/test_stages.h"

namespace fz::test {
namespace {

const char* const kChain = R"([pipeline]
memory_strategy = "PREALLOCATE"
num_streams = 2
pool_multiplier = 4.5

[[stage]]
name = "predict"
type = "LorenzoQuant"
error_bound = 1e-2
quant_radius = 256

[[stage]]
name = "shuffle"
type = "Bitshuffle"
element_width = 2
inputs = [{ from = "predict", port = "codes" }]

[[stage]]
name = "code"
type = "RZE"
inputs = [{ from = "shuffle" }]
)";

const char* const kSingle = R"([[stage]]
name = "predict"
type = "LorenzoQuant"
error_bound = 1e-2
)";

Failure loadFailure(const std::string& text, const ConfigOverrides& overrides = {}) {
  Pipeline pipeline;
  Failure failure = failureOf([&] { pipeline.loadConfigText(text, "a.toml", overrides); });
  EXPECT_EQ(pipeline.getStages().size(), 0u);
  return failure;
}

TEST(Config, OneStageLoadsAndKeepsItsBound) {
  Pipeline pipeline;
  pipeline.loadConfigText(kSingle, "single");
  EXPECT_TRUE(pipeline.isFinalized());
  const auto values = wave(3000);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(Config, AChainLoadsWithoutASizeHintAndKeepsItsBound) {
  Pipeline pipeline;
  pipeline.loadConfigText(kChain, "chain");
  EXPECT_EQ(pipeline.getStages().size(), 3u);
  EXPECT_EQ(pipeline.getMemoryStrategy(), MemoryStrategy::PREALLOCATE);
  EXPECT_EQ(pipeline.getNumStreams(), 2);
  const auto values = wave(30000);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(Config, TheConstructorTheFileAndTheTextGiveTheSameFrame) {
  const TempFolder folder;
  writeAll(folder.file("a.toml"), std::string(kChain));
  Pipeline constructed(folder.file("a.toml"));
  Pipeline from_file;
  from_file.loadConfig(folder.file("a.toml"));
  Pipeline from_text;
  from_text.loadConfigText(kChain, "text");
  const auto values = wave(5000);
  const FrameBytes frame = frameOf(constructed, values);
  EXPECT_EQ(frameOf(from_file, values), frame);
  EXPECT_EQ(frameOf(from_text, values), frame);
}

TEST(Config, SaveAndLoadGiveTheSameTextAndTheSameFrame) {
  const TempFolder folder;
  Pipeline first;
  first.setDims(100, 50);
  first.loadConfigText(kChain, "chain");
  first.saveConfig(folder.file("saved.toml"));
  Pipeline second(folder.file("saved.toml"));
  EXPECT_EQ(second.saveConfigText(), first.saveConfigText());
  EXPECT_EQ(second.getDims(), first.getDims());
  const auto values = wave(5000);
  EXPECT_EQ(frameOf(first, values), frameOf(second, values));
}

TEST(Config, SavedTextHasEveryKeyAndPort) {
  Pipeline pipeline;
  pipeline.loadConfigText(kChain, "chain");
  const std::string text = pipeline.saveConfigText();
  for (const std::string part :
       {"memory_strategy = \"PREALLOCATE\"", "num_streams = 2", "pool_multiplier = 4.5",
        "input_size = 0", "dims = [0, 1, 1]", "name = \"predict\"", "error_bound = 0.01",
        "quant_radius = 256", "element_width = 2",
        "inputs = [{ from = \"predict\", port = \"codes\" }]",
        "inputs = [{ from = \"shuffle\" }]"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  const std::size_t source = text.find("name = \"predict\"");
  EXPECT_EQ(text.substr(source, text.find("[[stage]]", source) - source).find("inputs"),
            std::string::npos);
}

TEST(Config, NamesNeedNoCareAboutQuotes) {
  Pipeline first;
  first.loadConfigText("[[stage]]\nname = 'a \"b\" \\ c'\ntype = \"RLE\"\n", "quotes");
  Pipeline second;
  second.loadConfigText(first.saveConfigText(), "saved");
  EXPECT_EQ(second.getStageName(second.getStages()[0]), "a \"b\" \\ c");
}

TEST(Config, EveryStageTypeAndCombinationSurvivesSaveAndLoad) {
  for (const StageDescriptor* descriptor : allStages()) {
    auto combinations = descriptor->type_combinations;
    if (combinations.empty()) {
      combinations.emplace_back();
    }
    for (const auto& types : combinations) {
      SCOPED_TRACE(std::string(descriptor->name));
      Pipeline first;
      first.addStage(descriptor->make(types));
      first.finalize();
      const std::string text = first.saveConfigText();
      Pipeline second;
      second.loadConfigText(text, "saved");
      EXPECT_EQ(second.saveConfigText(), text);
      ASSERT_EQ(second.getStages().size(), 1u);
      EXPECT_EQ(second.getStages()[0]->getStageTypeId(), descriptor->id);
      EXPECT_EQ(second.getStages()[0]->elementTypes(), types);
    }
  }
}

TEST(Config, EveryStageTypeLoadsWithItsDefaults) {
  for (const StageDescriptor* descriptor : allStages()) {
    Pipeline pipeline;
    EXPECT_NO_THROW(pipeline.loadConfigText(
        "[[stage]]\nname = \"a\"\ntype = \"" + std::string(descriptor->name) + "\"\n", "defaults"))
        << descriptor->name;
  }
}

TEST(Config, AConsumerMayBeListedBeforeItsProducer) {
  const std::string reversed = R"([[stage]]
name = "code"
type = "RLE"
inputs = [{ from = "predict", port = "codes" }]
[[stage]]
name = "predict"
type = "LorenzoQuant"
error_bound = 1e-2
)";
  Pipeline pipeline;
  pipeline.loadConfigText(reversed, "reversed");
  const auto values = wave(3000);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

TEST(ConfigErrors, UnknownKeysNameTheFileTheLineAndTheKeysThatExist) {
  Failure failure = loadFailure("[[stage]]\nname = \"a\"\ntype = \"RZE\"\nchunk_sise = 4096\n");
  EXPECT_EQ(failure.code, ErrorCode::kConfig);
  EXPECT_TRUE(failure.mentions("a.toml:4:")) << failure.message;
  EXPECT_TRUE(failure.mentions("chunk_sise") && failure.mentions("chunk_size")) << failure.message;
  failure = loadFailure("[pipeline]\nstreams = 3\n[[stage]]\nname = \"a\"\ntype = \"RZE\"\n");
  EXPECT_EQ(failure.code, ErrorCode::kConfig);
  EXPECT_TRUE(failure.mentions("a.toml:2:") && failure.mentions("num_streams")) << failure.message;
  failure = loadFailure("[[stages]]\nname = \"a\"\ntype = \"RZE\"\n");
  EXPECT_EQ(failure.code, ErrorCode::kConfig);
  failure = loadFailure(
      "[[stage]]\nname = \"a\"\ntype = \"RLE\"\n[[stage]]\nname = \"b\"\ntype = \"RLE\"\n"
      "inputs = [{ from = \"a\", input_port = \"output\" }]\n");
  EXPECT_EQ(failure.code, ErrorCode::kConfig);
  EXPECT_TRUE(failure.mentions("input_port")) << failure.message;
}

TEST(ConfigErrors, UnknownKeysAreLetThroughOnRequest) {
  ConfigOverrides overrides;
  overrides.allow_unknown_keys = true;
  Pipeline pipeline;
  EXPECT_NO_THROW(pipeline.loadConfigText(
      "[[stage]]\nname = \"a\"\ntype = \"RZE\"\nchunk_sise = 4096\n", "old", overrides));
}

TEST(ConfigErrors, WrongTypesAndValuesNameTheLineAndWhatIsAllowed) {
  const auto check = [](const std::string& line, const std::string& allowed) {
    const Failure failure =
        loadFailure("[[stage]]\nname = \"a\"\ntype = \"LorenzoQuant\"\n" + line + "\n");
    EXPECT_EQ(failure.code, ErrorCode::kConfig) << line;
    EXPECT_TRUE(failure.mentions("a.toml:4:")) << failure.message;
    EXPECT_TRUE(failure.mentions(allowed)) << allowed << " in: " << failure.message;
  };
  check("error_bound = \"1e-3\"", "a number");
  check("error_bound = -1.0", "-1");
  check("error_bound = nan", "nan");
  check("quant_radius = 1.5", "an integer");
  check("quant_radius = 0", "0");
  check("quant_radius = 1000000", "1000000");
  check("zigzag_codes = 1", "true or false");
  check("error_bound_mode = \"abs\"", "one of ABS, REL, NOA");
  check("outlier_capacity = 1.5", "1.5");
  check("input_type = \"float\"", "element type");
  check("code_type = \"uint64\"", "available: ");
  check("error_bound = [1, 2]", "error_bound");
}

TEST(ConfigErrors, PipelineKeysAreCheckedToo) {
  const auto check = [](const std::string& line) {
    const Failure failure =
        loadFailure("[pipeline]\n" + line + "\n[[stage]]\nname = \"a\"\ntype = \"RLE\"\n");
    EXPECT_EQ(failure.code, ErrorCode::kConfig) << line;
    EXPECT_TRUE(failure.mentions("a.toml:2:")) << failure.message;
  };
  check("input_size = -1");
  check("input_size = 1.5");
  check("dims = [1, 2, 3, 4]");
  check("dims = []");
  check("dims = 100");
  check("dims = [100, 0]");
  check("dims = [100, \"a\"]");
  check("memory_strategy = \"minimal\"");
  check("memory_strategy = 1");
  check("num_streams = 0");
  check("pool_multiplier = \"3\"");
  check("pool_multiplier = 0.0");
}

TEST(ConfigErrors, ABadStructureIsRefused) {
  const auto kConfig = ErrorCode::kConfig;
  const std::string stage = "[[stage]]\nname = \"a\"\ntype = \"RLE\"\n";
  EXPECT_EQ(loadFailure("").code, kConfig) << "no stage";
  EXPECT_EQ(loadFailure("[pipeline]\n").code, kConfig) << "no stage";
  EXPECT_EQ(loadFailure("[[stage]\n").code, kConfig) << "no TOML";
  EXPECT_EQ(loadFailure("[[stage]]\ntype = \"RLE\"\n").code, kConfig) << "no name";
  EXPECT_EQ(loadFailure("[[stage]]\nname = \"a\"\n").code, kConfig) << "no type";
  EXPECT_EQ(loadFailure(stage + stage).code, kConfig) << "a name twice";
  Failure failure = loadFailure("[[stage]]\nname = \"a\"\ntype = \"Lorenzo1D\"\n");
  EXPECT_EQ(failure.code, kConfig);
  EXPECT_TRUE(failure.mentions("a.toml:3:") && failure.mentions("TiledLorenzo")) << failure.message;
  failure = loadFailure(stage + "inputs = [{ from = \"nobody\" }]\n");
  EXPECT_EQ(failure.code, kConfig);
  EXPECT_TRUE(failure.mentions("a.toml:4:") && failure.mentions("nobody")) << failure.message;
  EXPECT_EQ(loadFailure(stage + "inputs = [{ port = \"output\" }]\n").code, kConfig);
  EXPECT_EQ(loadFailure(stage + "inputs = \"a\"\n").code, kConfig);
  failure = loadFailure(std::string(kSingle) +
                        "[[stage]]\nname = \"b\"\ntype = \"RLE\"\ninputs = [{ from = "
                        "\"predict\", port = \"outlier_count\" }]\n");
  EXPECT_EQ(failure.code, kConfig);
  EXPECT_TRUE(failure.mentions("a.toml:8:") && failure.mentions("outlier_errors"))
      << failure.message;
}

// Characters that the parser's tables of spaces once denied; found by fuzz_toml, seen under UBSan.
TEST(ConfigErrors, LettersOfOtherAlphabetsAreErrorsOfTheirPlace) {
  for (const char* letter : {"\xC2\xA1", "\xC3\xA9", "\xCF\x98", "\xD2\x99", "\xE2\x82\xAC"}) {
    const std::string text = std::string("[[stage]]\nerror_bound = ") + letter + "-3\n";
    Pipeline pipeline;
    EXPECT_EQ(codeOf([&] { pipeline.loadConfigText(text, "a.toml"); }), ErrorCode::kConfig)
        << letter;
  }
}

TEST(ConfigErrors, FilesAndStatesThatDoNotFitAreRefused) {
  const TempFolder folder;
  Pipeline pipeline;
  EXPECT_EQ(codeOf([&] { pipeline.loadConfig(folder.file("missing.toml")); }), ErrorCode::kIo);
  EXPECT_THROW(Pipeline(folder.file("missing.toml")), std::runtime_error);
  EXPECT_EQ(codeOf([&] { pipeline.saveConfig(folder.file("a.toml")); }), ErrorCode::kInvalidState);
  pipeline.loadConfigText(kSingle, "single");
  EXPECT_EQ(codeOf([&] { pipeline.loadConfigText(kSingle, "single"); }), ErrorCode::kInvalidState);
  EXPECT_EQ(codeOf([&] { pipeline.saveConfig(folder.file("missing/a.toml")); }), ErrorCode::kIo);
  Pipeline custom;
  custom.addStage<PassThroughStage>();
  EXPECT_EQ(codeOf([&] { custom.loadConfigText(kSingle, "single"); }), ErrorCode::kInvalidState);
  custom.finalize();
  EXPECT_EQ(codeOf([&] { custom.saveConfigText(); }), ErrorCode::kUnsupported)
      << "a file that would not load back";
}

TEST(ConfigErrors, AFailedLoadLeavesThePipelineAsItWas) {
  const std::string mismatch = R"([pipeline]
input_size = 16
dims = [2, 2]
memory_strategy = "PREALLOCATE"
num_streams = 7
pool_multiplier = 9.0
[[stage]]
name = "predict"
type = "LorenzoQuant"
[[stage]]
name = "code"
type = "RLE"
data_type = "uint32"
inputs = [{ from = "predict", port = "codes" }]
)";
  Pipeline pipeline;
  EXPECT_EQ(codeOf([&] { pipeline.loadConfigText(mismatch, "a.toml"); }), ErrorCode::kTypeMismatch);
  EXPECT_FALSE(pipeline.isFinalized());
  EXPECT_EQ(pipeline.getStages().size(), 0u);
  EXPECT_EQ(pipeline.getMemoryStrategy(), MemoryStrategy::MINIMAL);
  EXPECT_EQ(pipeline.getNumStreams(), 1);
  EXPECT_EQ(pipeline.getDims(), (std::array<std::size_t, 3>{0, 1, 1}));
  pipeline.loadConfigText(kSingle, "single");
  const auto values = wave(3000);
  EXPECT_EQ(countMisses(values, roundTrip(pipeline, values)), 0u);
}

}  // namespace
}  // namespace fz::test
