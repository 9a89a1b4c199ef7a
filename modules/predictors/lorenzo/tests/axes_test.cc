// Differences along some of the axes.
#include <gtest/gtest.h>

#include "backends/cpu/exec_context.h"
#include "backends/cpu/parallel_for.h"
#include "fz/error.h"
#include "predictors/lorenzo/codec.h"
#include "predictors/lorenzo/lorenzo_stage.h"
#include "shared/bits.h"
#include "shared/team.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

const char* const kAllAxes[] = {"", "x", "y", "z", "xy", "xz", "yz", "xyz"};
const Dims kGrids[] = {{50, 1, 1},  {1, 7, 1},   {5, 4, 3},     {17, 1, 9},
                       {600, 7, 1}, {33, 20, 9}, {70000, 2, 1}, {300, 3, 20}};

template <class T>
std::vector<T> randomValues(std::size_t n) {
  std::mt19937_64 rng(n);
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>(rng());
  }
  return values;
}

/// The values themselves, then differences along one axis after the other.
template <class T>
std::vector<T> byDefinition(const std::vector<T>& values, const Dims& dims, const Axes& axes) {
  std::vector<T> codes = values;
  const std::size_t steps[] = {1, dims[0], dims[0] * dims[1]};
  const bool wanted[] = {axes.x, axes.y, axes.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (std::size_t i = codes.size(); wanted[axis] && i-- > 0;) {
      if (i / steps[axis] % dims[axis] != 0) {
        codes[i] = bits::wrapSub(codes[i], codes[i - steps[axis]]);
      }
    }
  }
  return codes;
}

template <class T>
void expectAxes(const Dims& dims, const char* axes) {
  SCOPED_TRACE(testing::Message() << dims[0] << " x " << dims[1] << " x " << dims[2] << " along '"
                                  << axes << "'");
  const auto values = randomValues<T>(dims[0] * dims[1] * dims[2]);
  LorenzoStage<T> stage;
  stage.setDims(dims);
  stage.setBlockSize(1024);
  stage.setAxes(Axes::fromText(axes, "test"));
  const Encoded encoded = encode(stage, toBytes(values));
  EXPECT_EQ(fromBytes<T>(encoded.streams[0]), byDefinition(values, dims, stage.getAxes()));
  const auto threads = makeCpuExecutor(3, defaultThreadBackend());
  for (const CpuExecutor* executor :
       {&CpuExecutor::serial(), const_cast<const CpuExecutor*>(threads.get())}) {
    const ExecContext context{Backend::CPU, executor};
    EXPECT_EQ(fromBytes<T>(decode(12, encoded, &context)), values);
  }
}

TEST(LorenzoAxes, EverySubsetTakesDifferencesAlongItsAxesAlone) {
  for (const Dims& dims : kGrids) {
    for (const char* axes : kAllAxes) {
      expectAxes<std::int16_t>(dims, axes);
      expectAxes<std::int64_t>(dims, axes);
    }
  }
}

TEST(LorenzoAxes, TheTextOfTheCodecGivesTheSame) {
  const Dims dims = {40, 6, 1};
  const auto values = randomValues<std::int32_t>(240);
  std::vector<std::int32_t> codes(values.size());
  for (std::size_t y = 0; y < dims[1]; ++y) {
    const std::int32_t* row = values.data() + y * dims[0];
    const lorenzo::Neighbours<std::int32_t> around = {y > 0 ? row - dims[0] : nullptr, nullptr,
                                                      nullptr};
    lorenzo::encodeRow(SerialTeam{}, row, around, 40, codes.data() + y * dims[0], false);
  }
  EXPECT_EQ(codes, byDefinition(values, dims, Axes::fromText("y", "test")));
}

TEST(LorenzoAxes, AxesThatTheDataDoNotHaveChangeNoByte) {
  const auto values = toBytes(randomValues<std::int32_t>(600));
  LorenzoStage<std::int32_t> all;
  all.setDims(30, 20);
  LorenzoStage<std::int32_t> some;
  some.setDims(30, 20);
  some.setAxes(Axes::fromText("yx", "test"));
  EXPECT_TRUE(encode(all, values) == encode(some, values));
}

TEST(LorenzoAxes, ConfigHasThemAboveTheNumberOfDimensions) {
  LorenzoStage<std::int16_t> stage;
  stage.setDims(5, 2);
  stage.setAxes(Axes::fromText("y", "test"));
  EXPECT_EQ(encode(stage, Bytes(20)).config[1], 0x12) << "two dimensions, without x";
  stage.setAxes({});
  EXPECT_EQ(encode(stage, Bytes(20)).config[1], 2);
}

TEST(LorenzoAxes, ConfigsWithoutAnAxisThatIsNotThereAreRefused) {
  LorenzoStage<std::int16_t> stage;
  stage.setDims(5, 2);
  Encoded encoded = encode(stage, Bytes(20));
  for (const std::uint8_t byte : Bytes{0x42, 0x82, 0xF2}) {
    encoded.config[1] = byte;
    EXPECT_THROW(decode(12, encoded), Error) << int{byte};
  }
  encoded.config[1] = 0x32;
  EXPECT_EQ(decode(12, encoded), Bytes(20));
}

TEST(LorenzoAxes, TextIsLettersOfXyzEachOnce) {
  EXPECT_EQ(Axes::fromText("zx", "test").text(), "xz");
  EXPECT_EQ(Axes::fromText("", "test").text(), "");
  for (const char* text : {"xx", "w", "x y", "xyzx"}) {
    EXPECT_THROW(Axes::fromText(text, "test"), InvalidArgument) << text;
  }
  EXPECT_EQ(Axes{}, Axes::fromText("xyz", "test"));
  EXPECT_EQ(Axes::fromText("y", "test").leftOut(3), 5);
  EXPECT_EQ(Axes::fromText("y", "test").leftOut(2), 1);
  EXPECT_EQ(Axes::fromLeftOut(5).text(), "y");
}

TEST(LorenzoAxes, GraphsMayHaveAnySubset) {
  LorenzoStage<std::int32_t> stage;
  stage.setDims(5, 2);
  EXPECT_TRUE(stage.isGraphCompatible());
  stage.setAxes(Axes::fromText("x", "test"));
  EXPECT_TRUE(stage.isGraphCompatible());
}

}  // namespace
}  // namespace fz::test
