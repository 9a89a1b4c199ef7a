#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>

#include "fz/error.h"
#include "fzm_format.h"
#include "stage/stage_factory.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

TEST(Registry, IdsAndNamesAreUnique) {
  std::set<std::uint16_t> ids;
  std::set<std::string_view> names;
  for (const StageDescriptor* d : allStages()) {
    EXPECT_TRUE(ids.insert(d->id).second) << d->name;
    EXPECT_TRUE(names.insert(d->name).second) << d->name;
    for (const std::string_view alias : d->aliases) {
      EXPECT_TRUE(names.insert(alias).second) << alias;
    }
    EXPECT_EQ(findStage(d->id), d);
    EXPECT_EQ(findStage(d->name), d);
    EXPECT_FALSE(d->summary.empty());
  }
}

TEST(Registry, EveryListedTypeCombinationCanBeMadeAndNoOther) {
  for (const StageDescriptor* d : allStages()) {
    for (const auto& types : d->type_combinations) {
      ASSERT_EQ(types.size(), d->type_keys.size()) << d->name;
      const auto stage = d->make(types);
      ASSERT_NE(stage, nullptr) << d->name;
      EXPECT_EQ(stage->elementTypes(), types) << d->name;
      EXPECT_EQ(stage->getStageTypeId(), d->id);
    }
    const std::vector<DataType> wrong(d->type_keys.size() + 1, DataType::UNKNOWN);
    EXPECT_EQ(d->make(wrong), nullptr) << d->name;
  }
}

TEST(Registry, AConfigurationWithoutTypesMeansTypesThatExist) {
  for (const StageDescriptor* d : allStages()) {
    const auto& all = d->type_combinations;
    EXPECT_EQ(std::count(all.begin(), all.end(), defaultTypes(*d)), d->type_keys.empty() ? 0 : 1)
        << d->name;
    EXPECT_FALSE(defaultPorts(*d).empty()) << d->name;
  }
}

TEST(Registry, EveryStageHasACase) {
  for (const StageDescriptor* d : allStages()) {
    const bool found = std::any_of(stageCases().begin(), stageCases().end(),
                                   [&](const StageCase& c) { return c.stage == d->name; });
    EXPECT_TRUE(found) << d->name << " has no FZ_STAGE_CASE";
  }
}

TEST(Registry, DefaultsMatchANewStage) {
  for (const StageDescriptor* d : allStages()) {
    std::vector<std::vector<DataType>> combinations = d->type_combinations;
    if (combinations.empty()) {
      combinations.emplace_back();
    }
    const auto stage = d->make(combinations.front());
    for (const Param& param : stage->paramTable().rows()) {
      EXPECT_EQ(toTomlText(param.get(*stage)), toTomlText(param.default_value))
          << d->name << "." << param.key;
      EXPECT_FALSE(param.help.empty()) << d->name << "." << param.key;
    }
    EXPECT_EQ(d->params().rows().size(), stage->paramTable().rows().size()) << d->name;
  }
}

TEST(Registry, ParametersRefuseWhatIsOutOfRange) {
  for (const StageDescriptor* d : allStages()) {
    const auto stage =
        d->make(d->type_combinations.empty() ? std::vector<DataType>{} : d->type_combinations[0]);
    for (const Param& param : stage->paramTable().rows()) {
      EXPECT_THROW(setParam(*stage, param.key, ParamValue(std::string("nonsense"))),
                   std::invalid_argument)
          << d->name << "." << param.key;
    }
    EXPECT_THROW(setParam(*stage, "no_such_key", ParamValue(true)), std::invalid_argument);
  }
}

TEST(Registry, ConfigBytesSurviveAnotherStage) {
  for (const StageSetup& s : allSetups()) {
    SCOPED_TRACE(s.text());
    for (const InputCase& input : s.stage_case->inputs) {
      if (input.applies && !input.applies(*s.config, s.types)) {
        continue;
      }
      std::mt19937_64 rng(3);
      const auto stage = s.makeStage(70);
      const Encoded encoded = encode(*stage, input.make(s.inputType(), 70, rng));
      ASSERT_LE(encoded.config.size(), FZM_STAGE_CONFIG_SIZE);
      const auto copy = makeStage(stage->getStageTypeId(), encoded.config.data(),
                                  encoded.config.size(), encoded.version);
      EXPECT_EQ(copy->elementTypes(), s.types);
      Bytes again(FZM_STAGE_CONFIG_SIZE);
      again.resize(copy->serializeHeader(0, again.data(), again.size()));
      EXPECT_EQ(again, encoded.config);
      break;
    }
  }
}

TEST(Registry, UnknownIdsAreATypedError) {
  EXPECT_THROW(makeStage(999, nullptr, 0), Error);
}

}  // namespace
}  // namespace fz::test
