#include <gtest/gtest.h>
#include <numeric>

#include "backends/cpu/exec_context.h"
#include "fz/error.h"
#include "predictors/lorenzo/codec.h"
#include "predictors/lorenzo/cpu/grid.h"
#include "predictors/lorenzo/lorenzo_stage.h"
#include "shared/team.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

/// Dims with y and z as wanted where n allows it.
Dims gridOf(std::size_t n, std::size_t y, std::size_t z) {
  while (y > 1 && n % y != 0) {
    --y;
  }
  while (z > 1 && n / y % z != 0) {
    --z;
  }
  return {n / y / z, y, z};
}

StageConfig blockOf(std::int64_t n) {
  return {"block " + std::to_string(n), {{"block_size", n}}};
}

StageConfig alongAxes(const std::string& axes) {
  return {"space along " + axes, {{"axes", axes}}, [](std::size_t n) { return gridOf(n, 7, 5); }};
}

FZ_STAGE_CASE(Lorenzo,
              {.stage = "Lorenzo",
               .configs = {{"default"},
                           blockOf(1),
                           blockOf(3),
                           blockOf(32),
                           blockOf(1024),
                           {"plane", {}, [](std::size_t n) { return gridOf(n, 14, 1); }},
                           {"narrow", {}, [](std::size_t n) { return gridOf(n, n / 2 + 1, 1); }},
                           {"space", {}, [](std::size_t n) { return gridOf(n, 7, 5); }},
                           {"deep", {}, [](std::size_t n) { return gridOf(n, 2, 350); }},
                           alongAxes("xz"),
                           alongAxes("y"),
                           {"no axes", {{"axes", std::string()}}}},
               .inputs = {smallNoise(), fullNoise(), extremes(), zeros(), ramp()},
               .extra_sizes = {7 * 5 * 300, 14 * 700},
               .large_values = 7 * 5 * 2000});

template <class T>
std::vector<T> codesOf(const std::vector<T>& values, const Dims& dims, std::size_t block = 0) {
  LorenzoStage<T> stage;
  stage.setDims(dims);
  stage.setBlockSize(block);
  return fromBytes<T>(encode(stage, toBytes(values)).streams[0]);
}

template <class T>
std::vector<T> randomValues(std::size_t n) {
  std::mt19937_64 rng(n);
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>(rng());
  }
  return values;
}

TEST(Lorenzo, GivesTheWorkedExamplesOfTheFormat) {
  using Values = std::vector<std::int32_t>;
  EXPECT_EQ(codesOf<std::int32_t>({5, 6, 8, 7, 9, 12}, {3, 2, 1}), (Values{5, 1, 2, 2, 1, 1}));
  EXPECT_EQ(codesOf<std::int32_t>({1, 2, 4, 8, 16, 32, 64, 128}, {2, 2, 2}),
            (Values{1, 1, 3, 3, 15, 15, 45, 45}));
}

TEST(Lorenzo, OneDimensionStartsAnewEveryBlock) {
  std::vector<std::int16_t> values(70);
  std::iota(values.begin(), values.end(), std::int16_t{100});
  const auto codes = codesOf<std::int16_t>(values, {0, 1, 1}, 32);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    ASSERT_EQ(codes[i], i % 32 == 0 ? values[i] : 1) << i;
  }
}

TEST(Lorenzo, BlocksHold256ValuesUnlessSet) {
  const std::vector<std::int32_t> values = randomValues<std::int32_t>(1000);
  EXPECT_EQ(codesOf(values, {0, 1, 1}), codesOf(values, {0, 1, 1}, 256));
  EXPECT_EQ(codesOf(values, {1000, 1, 1})[768], values[768]);
}

/// Codes by the formula with eight corners.
template <class T>
std::vector<T> byDefinition(const std::vector<T>& values, const Dims& dims) {
  std::vector<T> codes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at[] = {i % dims[0], i / dims[0] % dims[1], i / dims[0] / dims[1]};
    const std::size_t steps[] = {1, dims[0], dims[0] * dims[1]};
    T code = 0;
    for (unsigned corner = 0; corner < 8; ++corner) {
      std::size_t from = i;
      bool inside = true;
      for (unsigned axis = 0; axis < 3; ++axis) {
        const bool back = (corner >> axis & 1u) != 0;
        inside = inside && !(back && at[axis] == 0);
        from -= back ? steps[axis] : 0;
      }
      const T value = inside ? values[from] : T{0};
      code =
          bits::popCount(corner) % 2 == 0 ? bits::wrapAdd(code, value) : bits::wrapSub(code, value);
    }
    codes.push_back(code);
  }
  return codes;
}

const Dims kGrids[] = {{1, 2, 1},    {1, 1, 2},    {5, 4, 3},   {17, 1, 9},
                       {600, 70, 1}, {33, 40, 9},  {1, 100, 1}, {70000, 2, 1},
                       {300, 3, 20}, {16, 16, 16}, {1100, 2, 3}};

TEST(Lorenzo, GridsFollowTheFormulaWithEightCorners) {
  for (const Dims& dims : kGrids) {
    const auto values = randomValues<std::int32_t>(dims[0] * dims[1] * dims[2]);
    EXPECT_EQ(codesOf(values, dims), byDefinition(values, dims))
        << dims[0] << " x " << dims[1] << " x " << dims[2];
  }
}

template <class T, class Team>
void expectTeamAgrees(const Team& team, const Dims& dims) {
  const auto n_x = static_cast<std::uint32_t>(dims[0]);
  const auto n_y = static_cast<std::uint32_t>(dims[1]);
  const auto n_z = static_cast<std::uint32_t>(dims[2]);
  const std::size_t plane = dims[0] * dims[1];
  const std::vector<T> values = randomValues<T>(plane * dims[2]);
  std::vector<T> codes(values.size());
  for (std::size_t z = 0; z < dims[2]; ++z) {
    for (std::size_t y = 0; y < dims[1]; ++y) {
      const T* row = values.data() + z * plane + y * dims[0];
      const lorenzo::Neighbours<T> around = {y > 0 ? row - dims[0] : nullptr,
                                             z > 0 ? row - plane : nullptr,
                                             y > 0 && z > 0 ? row - plane - dims[0] : nullptr};
      lorenzo::encodeRow(team, row, around, n_x, codes.data() + (row - values.data()));
    }
  }
  EXPECT_EQ(codes, codesOf(values, dims));
  lorenzo::sumLines(team, {n_y * n_z, n_x, dims[0], 1}, codes.data());
  for (std::size_t z = 0; z < dims[2]; ++z) {
    lorenzo::sumLines(team, {n_x, n_y, 1, dims[0]}, codes.data() + z * plane);
  }
  lorenzo::sumLines(team, {n_x * n_y, n_z, 1, plane}, codes.data());
  EXPECT_EQ(codes, values);
}

TEST(Lorenzo, TunedCodeGivesTheBytesOfTheCodec) {
  std::mt19937_64 rng(8);
  for (const Dims& dims : kGrids) {
    expectTeamAgrees<std::int8_t>(SerialTeam{}, dims);
    expectTeamAgrees<std::int16_t>(ShuffledTeam{&rng}, dims);
    expectTeamAgrees<std::int32_t>(ShuffledTeam{&rng}, dims);
    expectTeamAgrees<std::int64_t>(SerialTeam{}, dims);
  }
}

TEST(Lorenzo, ExtentsFarAbove1024ComeBackOnAnyNumberOfThreads) {
  const ShuffledExecutor shuffled(5);
  const auto threads = makeCpuExecutor(4, defaultThreadBackend());
  for (const Dims& dims : {Dims{5000, 37, 1}, Dims{37, 5000, 1}, Dims{3, 5, 5000},
                           Dims{2000, 3, 11}, Dims{300, 60, 30}, Dims{3600, 90, 1}}) {
    const auto values = randomValues<std::int16_t>(dims[0] * dims[1] * dims[2]);
    LorenzoStage<std::int16_t> stage;
    stage.setDims(dims);
    const Encoded encoded = encode(stage, toBytes(values));
    for (const CpuExecutor* executor :
         {&CpuExecutor::serial(), static_cast<const CpuExecutor*>(&shuffled),
          static_cast<const CpuExecutor*>(threads.get())}) {
      const ExecContext context{Backend::CPU, executor};
      EXPECT_EQ(fromBytes<std::int16_t>(decode(12, encoded, &context)), values)
          << dims[0] << " x " << dims[1] << " x " << dims[2];
    }
  }
}

TEST(Lorenzo, ConfigHasTypeDimsAndBlock) {
  LorenzoStage<std::int16_t> stage;
  stage.setBlockSize(32);
  EXPECT_EQ(encode(stage, Bytes(20)).config,
            (Bytes{5, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0}));
  stage.setDims(5, 2);
  stage.setBlockSize(0);
  EXPECT_EQ(encode(stage, Bytes(20)).config,
            (Bytes{5, 2, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Lorenzo, AnOpenExtentIsStoredAsWhatItCameTo) {
  LorenzoStage<std::int8_t> stage;
  stage.setDims(0, 2, 3);
  const Encoded encoded = encode(stage, Bytes(24));
  EXPECT_EQ(encoded.config[4], 4);
}

TEST(Lorenzo, ConfigOf16BytesMeansBlocksOf256) {
  const std::vector<std::int32_t> values = randomValues<std::int32_t>(700);
  LorenzoStage<std::int32_t> stage;
  Encoded encoded = encode(stage, toBytes(values));
  encoded.config.resize(16);
  EXPECT_EQ(fromBytes<std::int32_t>(decode(12, encoded)), values);
}

TEST(Lorenzo, DimsBeyondNdimCountAsOne) {
  const Bytes config = {6, 1, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0};
  const Encoded encoded{config, 1, {toBytes(std::vector<std::int32_t>{4, 1, -2})}};
  EXPECT_EQ(fromBytes<std::int32_t>(decode(12, encoded)), (std::vector<std::int32_t>{4, 5, 3}));
}

ErrorCode codeOfDecoding(const Bytes& config, std::size_t n_bytes) {
  try {
    decode(12, {config, 1, {Bytes(n_bytes)}});
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::kInternal;
}

TEST(Lorenzo, BadConfigsAreCorrupt) {
  const Bytes good = {4, 2, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(codeOfDecoding(good, 11), ErrorCode::kCorrupt);
  EXPECT_EQ(codeOfDecoding(good, 0), ErrorCode::kCorrupt);
  const auto changed = [&](std::size_t at, std::uint8_t value) {
    Bytes config = good;
    config[at] = value;
    return config;
  };
  EXPECT_EQ(codeOfDecoding(changed(1, 0), 10), ErrorCode::kCorrupt);
  EXPECT_EQ(codeOfDecoding(changed(1, 3), 10), ErrorCode::kCorrupt);
  EXPECT_EQ(codeOfDecoding(changed(1, 9), 10), ErrorCode::kCorrupt);
  EXPECT_EQ(codeOfDecoding(changed(8, 1), 5), ErrorCode::kCorrupt);
  EXPECT_EQ(codeOfDecoding(changed(18, 1), 10), ErrorCode::kCorrupt);
  EXPECT_EQ(codeOfDecoding(Bytes(good.begin(), good.begin() + 15), 10), ErrorCode::kCorrupt);
  EXPECT_EQ(codeOfDecoding({}, 10), ErrorCode::kUnsupported);
}

TEST(Lorenzo, ExtentsWhoseProductOverflowsAreCorrupt) {
  EXPECT_EQ(codeOfDecoding({4,    3,    0,    0,    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                            0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0,    0,    0,    0},
                           10),
            ErrorCode::kCorrupt);
}

TEST(Lorenzo, DimsThatDoNotHoldTheInputAreRefusedWithBothCounts) {
  LorenzoStage<std::int32_t> stage;
  stage.setDims(5, 4, 3);
  try {
    encode(stage, Bytes(4 * 59));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadSize);
    EXPECT_STREQ(e.what(), "Lorenzo: dims 5 x 4 x 3 hold 60 values, but the input has 59");
  }
}

TEST(Lorenzo, DimsOfTheStageWinOverThoseOfThePipeline) {
  LorenzoStage<std::int32_t> stage;
  stage.setPipelineDims({8, 4, 1});
  EXPECT_EQ(stage.ndim(), 2);
  stage.setDims(4, 4, 2);
  stage.setPipelineDims({8, 4, 1});
  EXPECT_EQ(stage.getDims(), (Dims{4, 4, 2}));
  EXPECT_EQ(stage.ndim(), 3);
}

TEST(Lorenzo, ABlockSizeMeansOneLineWhateverThePipelineHas) {
  LorenzoStage<std::int32_t> stage;
  stage.setPipelineDims({4, 4, 1});
  EXPECT_EQ(stage.ndim(), 2);
  stage.setBlockSize(2);
  EXPECT_EQ(stage.ndim(), 1);
  const std::vector<std::int32_t> values = {5, 7, 1, 2, 9, 9, 3, 4, 5, 7, 1, 2, 9, 9, 3, 4};
  const std::vector<std::int32_t> codes = {5, 2, 1, 1, 9, 0, 3, 1, 5, 2, 1, 1, 9, 0, 3, 1};
  const Encoded encoded = encode(stage, toBytes(values));
  EXPECT_EQ(encoded.streams[0], toBytes(codes));
  EXPECT_EQ(decode(stage.getStageTypeId(), encoded), toBytes(values));
  stage.setDims(4, 4);
  EXPECT_EQ(stage.ndim(), 2);
}

TEST(Lorenzo, BlockSizeIsAtMost1024) {
  LorenzoStage<std::int32_t> stage;
  stage.setBlockSize(1024);
  EXPECT_THROW(stage.setBlockSize(1025), InvalidArgument);
  EXPECT_EQ(stage.getBlockSize(), 1024u);
  EXPECT_THROW(setParam(stage, "block_size", std::int64_t{-1}), InvalidArgument);
}

TEST(Lorenzo, RefusesAnInputThatIsNotAMultipleOfTheValueSize) {
  LorenzoStage<std::int32_t> stage;
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

TEST(StageDims, OpenExtentIsFilledIn) {
  StageDims dims;
  EXPECT_EQ(dims.resolve(17, "X"), (Dims{17, 1, 1}));
  dims.setFromPipeline({0, 4, 0});
  EXPECT_EQ(dims.ndim(), 2);
  EXPECT_EQ(dims.resolve(12, "X"), (Dims{3, 4, 1}));
  EXPECT_EQ(dims.resolve(0, "X"), (Dims{0, 4, 1}));
  EXPECT_THROW(dims.resolve(13, "X"), Error);
}

}  // namespace
}  // namespace fz::test
