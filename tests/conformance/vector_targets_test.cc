#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "support/stage_case.h"

// The tuned code is compiled once per vector target and chosen at run time. The machine that runs
// the tests would only ever take its own best one, so here every other is forced in turn.

namespace fz::test {
namespace {

class ForcedTarget {
 public:
  explicit ForcedTarget(std::int64_t target) { hwy::SetSupportedTargetsForTest(target); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;
  ~ForcedTarget() { hwy::SetSupportedTargetsForTest(0); }
};

/// Targets of this machine, one bit each, and the baseline, which no bit here names.
std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> all = {HWY_STATIC_TARGET};
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    all.push_back(left & -left);
  }
  return all;
}

TEST(VectorTargets, AllGiveTheSameBytesAndTheSameValues) {
  for (const StageSetup& s : allSetups()) {
    for (const InputCase& input : s.stage_case->inputs) {
      if (input.applies && !input.applies(*s.config, s.types)) {
        continue;
      }
      const std::size_t n = 3 * s.stage_case->tile_values + 7;
      std::mt19937_64 rng(n);
      const Bytes original = input.make(s.inputType(), n, rng);
      const auto stage = s.makeStage(n);
      const Encoded expected = encode(*stage, original);
      const Bytes decoded = decode(stage->getStageTypeId(), expected);
      for (const std::int64_t target : targets()) {
        const ForcedTarget forced(target);
        SCOPED_TRACE(s.text() + ", " + input.label + ", " + hwy::TargetName(target));
        const auto other = s.makeStage(n);
        EXPECT_TRUE(encode(*other, original) == expected);
        EXPECT_TRUE(decode(other->getStageTypeId(), expected) == decoded);
      }
      if (testing::Test::HasFailure()) {
        return;
      }
    }
  }
}

}  // namespace
}  // namespace fz::test
