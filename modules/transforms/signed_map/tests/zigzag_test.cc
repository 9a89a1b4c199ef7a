#include "transforms/zigzag/zigzag.h"

#include <gtest/gtest.h>

#include "fz/error.h"
#include "support/stage_case.h"
#include "transforms/zigzag/zigzag_stage.h"

namespace fz::test {
namespace {

FZ_STAGE_CASE(Zigzag,
              {.stage = "Zigzag",
               .inputs = {smallNoise(), fullNoise(), extremes(), zeros(), ramp()}});

TEST(Zigzag, SmallMagnitudesBecomeSmallCodes) {
  EXPECT_EQ(Zigzag32::encode(0), 0u);
  EXPECT_EQ(Zigzag32::encode(-1), 1u);
  EXPECT_EQ(Zigzag32::encode(1), 2u);
  EXPECT_EQ(Zigzag32::encode(-2), 3u);
  EXPECT_EQ(Zigzag16::encode(-32768), 65535u);
}

TEST(Zigzag, EveryValueOf16BitsSurvives) {
  for (int v = -32768; v <= 32767; ++v) {
    ASSERT_EQ(Zigzag16::decode(Zigzag16::encode(static_cast<std::int16_t>(v))), v);
  }
}

TEST(Zigzag, StageGivesTheBytesOfTheHelper) {
  std::mt19937_64 rng(1);
  std::vector<std::int32_t> values(1000);
  std::vector<std::uint32_t> expected;
  for (auto& v : values) {
    v = static_cast<std::int32_t>(rng());
    expected.push_back(Zigzag32::encode(v));
  }
  ZigzagStage<std::int32_t> stage;
  EXPECT_EQ(encode(stage, toBytes(values)).streams[0], toBytes(expected));
}

TEST(Zigzag, RefusesAnInputThatIsNotAMultipleOfTheValueSize) {
  ZigzagStage<std::int32_t> stage;
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

}  // namespace
}  // namespace fz::test
