#include "transforms/negabinary/negabinary.h"

#include <gtest/gtest.h>

#include "fz/error.h"
#include "shared/bits.h"
#include "support/stage_case.h"
#include "transforms/negabinary/negabinary_stage.h"

namespace fz::test {
namespace {

FZ_STAGE_CASE(Negabinary,
              {.stage = "Negabinary",
               .inputs = {smallNoise(), fullNoise(), extremes(), zeros(), ramp()}});

template <class T>
void expectEveryValueSurvives() {
  using Limits = std::numeric_limits<T>;
  for (int v = int{Limits::min()}; v <= int{Limits::max()}; ++v) {
    const T value = static_cast<T>(v);
    ASSERT_EQ(Negabinary<T>::decode(Negabinary<T>::encode(value)), value);
    ASSERT_EQ(Negabinary<T>::encode(value), bits::negabinary(value));
  }
}

template <class T>
void expectSampledValuesSurvive() {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 10000; ++i) {
    const T value = static_cast<T>(rng() >> (rng() % 64));
    ASSERT_EQ(Negabinary<T>::decode(Negabinary<T>::encode(value)), value);
    ASSERT_EQ(Negabinary<T>::encode(value), bits::negabinary(value));
  }
}

TEST(Negabinary, GivesTheKnownCodes) {
  EXPECT_EQ(Negabinary32::encode(0), 0u);
  EXPECT_EQ(Negabinary32::encode(1), 1u);
  EXPECT_EQ(Negabinary32::encode(-1), 3u);
  EXPECT_EQ(Negabinary32::encode(2), 6u);
  EXPECT_EQ(Negabinary32::encode(-2), 2u);
  EXPECT_EQ(Negabinary32::encode(3), 7u);
  EXPECT_EQ(Negabinary32::encode(4), 4u);
  EXPECT_EQ(Negabinary32::encode(5), 5u);
  EXPECT_EQ(Negabinary32::encode(-5), 15u);
}

TEST(Negabinary, MaskHoldsEverySecondBit) {
  EXPECT_EQ(Negabinary8::MASK, 0xAAu);
  EXPECT_EQ(Negabinary16::MASK, 0xAAAAu);
  EXPECT_EQ(Negabinary32::MASK, 0xAAAAAAAAu);
  EXPECT_EQ(Negabinary64::MASK, 0xAAAAAAAAAAAAAAAAull);
}

TEST(Negabinary, DigitsAreThoseOfBaseMinusTwo) {
  for (int v = -1000; v <= 1000; ++v) {
    const std::uint32_t code = Negabinary32::encode(v);
    int sum = 0;
    int weight = 1;
    for (int bit = 0; bit < 20; ++bit, weight *= -2) {
      sum += ((code >> bit) & 1u) != 0 ? weight : 0;
    }
    ASSERT_EQ(sum, v);
  }
}

TEST(Negabinary, CodeLengthGrowsWithMagnitude) {
  std::uint32_t longest = 0;
  for (int v = 0; v < 4096; ++v) {
    longest = std::max({longest, bits::bitWidth(Negabinary32::encode(v)),
                        bits::bitWidth(Negabinary32::encode(-v))});
    ASSERT_LE(longest, bits::bitWidth(static_cast<std::uint32_t>(v)) + 2);
  }
}

TEST(Negabinary, EveryValueOf8And16BitsSurvives) {
  expectEveryValueSurvives<std::int8_t>();
  expectEveryValueSurvives<std::int16_t>();
}

TEST(Negabinary, SampledValuesOf32And64BitsSurvive) {
  expectSampledValuesSurvive<std::int32_t>();
  expectSampledValuesSurvive<std::int64_t>();
}

TEST(Negabinary, StageGivesTheBytesOfTheHelper) {
  std::mt19937_64 rng(1);
  std::vector<std::int32_t> values(1000);
  std::vector<std::uint32_t> expected;
  for (auto& v : values) {
    v = static_cast<std::int32_t>(rng());
    expected.push_back(Negabinary32::encode(v));
  }
  NegabinaryStage<std::int32_t> stage;
  EXPECT_EQ(encode(stage, toBytes(values)).streams[0], toBytes(expected));
}

TEST(Negabinary, MissingConfigMeansInt32) {
  const Encoded encoded{{}, 1, {toBytes(std::vector<std::uint32_t>{3, 6, 2})}};
  EXPECT_EQ(decode(16, encoded), toBytes(std::vector<std::int32_t>{-1, 2, -2}));
}

TEST(Negabinary, RefusesAnInputThatIsNotAMultipleOfTheValueSize) {
  NegabinaryStage<std::int32_t> stage;
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

}  // namespace
}  // namespace fz::test
