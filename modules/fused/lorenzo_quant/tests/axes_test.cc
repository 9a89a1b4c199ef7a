// Prediction along some of the axes.
#include <cmath>
#include <gtest/gtest.h>

#include "fused/lorenzo_quant/lorenzo_quant.h"
#include "fused/lorenzo_quant/tests/support.h"
#include "fz/error.h"
#include "shared/team.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

template <class T>
std::vector<T> field(const Dims& dims, std::mt19937_64& rng) {
  std::vector<T> values(dims[0] * dims[1] * dims[2]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        static_cast<T>(std::sin(0.001 * static_cast<double>(i)) * 5 +
                       static_cast<double>(rng() % 1000) * 1e-3 + (rng() % 97 == 0 ? 1e9 : 0.0));
  }
  return values;
}

template <class T, class TCode, class Team>
void expectCodecBytes(const Dims& dims, const Axes& axes, Team team) {
  std::mt19937_64 rng(dims[0]);
  const std::vector<T> values = field<T>(dims, rng);
  LorenzoQuantStage<T, TCode> stage;
  stage.setErrorBound(0.02);
  stage.setQuantRadius(100);
  stage.setDims(dims);
  stage.setAxes(axes);
  const Encoded e = encode(stage, toBytes(values));
  const std::uint8_t left_out = axes.leftOut(stage.ndim());
  const Reference<T, TCode> reference = encodeByTiles<T, TCode>(
      values, dims, static_cast<float>(stage.boundInfo()->absolute), 100, team, left_out);
  EXPECT_EQ(fromBytes<TCode>(e.streams[0]), reference.codes);
  EXPECT_EQ(e.streams[1], toBytes(reference.list_values));
  EXPECT_EQ(fromBytes<std::uint32_t>(e.streams[2]), reference.list_indices);
  EXPECT_EQ(decode(1, e), toBytes(decodeByTiles(reference, dims, team, left_out)));
  EXPECT_EQ(e.config[41], left_out);
  const bool has_exact = reference.list_values.size() > reference.n_range;
  EXPECT_EQ(e.version, left_out != 0 ? 3 : has_exact ? 2 : 1);
}

TEST(LorenzoQuantAxes, EverySubsetGivesTheBytesOfTheCodecText) {
  std::mt19937_64 rng(8);
  for (const Dims& dims :
       {Dims{3000, 1, 1}, Dims{1100, 40, 1}, Dims{1, 500, 1}, Dims{37, 19, 21}, Dims{3, 1, 110}}) {
    for (std::uint8_t left_out = 0; left_out < 8; ++left_out) {
      SCOPED_TRACE(testing::Message() << dims[0] << " x " << dims[1] << " x " << dims[2]
                                      << " without " << int{left_out});
      const Axes axes = Axes::fromLeftOut(left_out);
      expectCodecBytes<float, std::uint16_t>(dims, axes, SerialTeam{});
      expectCodecBytes<double, std::uint32_t>(dims, axes, ShuffledTeam{&rng});
    }
  }
}

TEST(LorenzoQuantAxes, SeriesOfUnrelatedRowsAreSmallerWithoutY) {
  // Each row goes its own way, so the row above says nothing.
  constexpr std::size_t kRows = 64;
  constexpr std::size_t kValues = 512;
  std::mt19937_64 rng(3);
  std::vector<float> values;
  for (std::size_t row = 0; row < kRows; ++row) {
    double at = 0;
    for (std::size_t i = 0; i < kValues; ++i) {
      at += static_cast<double>(rng() % 2001) - 1000.0;
      values.push_back(static_cast<float>(at));
    }
  }
  const auto spread = [&](const char* axes) {
    LorenzoQuantStage<float, std::uint16_t> stage;
    stage.setErrorBound(0.5);
    stage.setDims(kValues, kRows);
    stage.setAxes(Axes::fromText(axes, "test"));
    double sum = 0;
    for (const std::uint16_t code :
         fromBytes<std::uint16_t>(encode(stage, toBytes(values)).streams[0])) {
      sum += std::abs(static_cast<std::int16_t>(code));
    }
    return sum;
  };
  EXPECT_LT(spread("x"), 0.8 * spread("xy"));
}

TEST(LorenzoQuantAxes, StreamsWithAxesNeedTheirVersion) {
  std::mt19937_64 rng(4);
  const Dims dims = {40, 30, 1};
  LorenzoQuantStage<float, std::uint16_t> stage;
  stage.setDims(dims);
  stage.setAxes(Axes::fromText("x", "test"));
  Encoded e = encode(stage, toBytes(field<float>(dims, rng)));
  ASSERT_EQ(e.version, 3);
  const Bytes right = decode(1, e);
  e.config[41] = 4;  // two dimensions have no z
  EXPECT_THROW(decode(1, e), Error);
  e.config[41] = 2;
  e.version = 4;
  EXPECT_THROW(decode(1, e), Error);
  e.version = 2;  // in which the byte means nothing
  EXPECT_NE(decode(1, e), right);
}

TEST(LorenzoQuantAxes, SubsetsRunOnTheHostSoNoGraphHasThem) {
  LorenzoQuantStage<float, std::uint16_t> stage;
  EXPECT_TRUE(stage.isGraphCompatible());
  stage.setAxes(Axes::fromText("yz", "test"));
  EXPECT_FALSE(stage.isGraphCompatible());
}

}  // namespace
}  // namespace fz::test
