#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>

#include "support/stage_case.h"

namespace fz::test {
namespace {

class RoundTrip : public testing::TestWithParam<std::size_t> {
 protected:
  static StageSetup setup() { return allSetups()[GetParam()]; }
};

TEST_P(RoundTrip, DecodedEqualsOriginalForEverySizeAndInput) {
  const StageSetup s = setup();
  const std::size_t value_bytes = getDataTypeSize(s.inputType());
  for (const std::size_t n : conformanceSizes(*s.stage_case)) {
    for (const InputCase& input : s.stage_case->inputs) {
      if (input.applies && !input.applies(*s.config, s.types)) {
        continue;
      }
      SCOPED_TRACE(s.text() + ", " + input.label + ", " + std::to_string(n) + " values");
      std::mt19937_64 rng(n + 1);
      const Bytes original = input.make(s.inputType(), n, rng);
      ASSERT_EQ(original.size(), n * value_bytes);
      const std::unique_ptr<Stage> stage = s.makeStage(n);
      const Encoded encoded = encode(*stage, original);
      const Bytes decoded = decode(stage->getStageTypeId(), encoded);
      if (s.stage_case->verify) {
        s.stage_case->verify(*stage, original, decoded);
      } else {
        ASSERT_EQ(decoded.size(), original.size());
        ASSERT_TRUE(decoded == original);
      }
      if (testing::Test::HasFailure()) {
        return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Stages, RoundTrip, testing::Range(std::size_t{0}, allSetups().size()), [](const auto& param) {
      std::string name = allSetups()[param.param].text();
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
      return name + "_" + std::to_string(param.param);
    });

}  // namespace
}  // namespace fz::test
