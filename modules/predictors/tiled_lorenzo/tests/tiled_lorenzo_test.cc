#include <gtest/gtest.h>

#include "fz/error.h"
#include "predictors/tiled_lorenzo/codec.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"
#include "shared/team.h"
#include "stage/stage_factory.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

using I32 = TiledLorenzoStage<std::int32_t>;
using Params = std::vector<std::pair<std::string, ParamValue>>;

/// Extents whose product is n, as even as its divisors allow.
Dims splitDims(std::size_t n, int ndim) {
  Dims dims = {n, 1, 1};
  for (int axis = ndim - 1; axis > 0 && n != 0; --axis) {
    std::size_t best = 1;
    for (std::size_t d = 1; d * d <= dims[0] && (axis == 1 || d * d * d <= dims[0]); ++d) {
      best = dims[0] % d == 0 ? d : best;
    }
    dims[static_cast<std::size_t>(axis)] = best;
    dims[0] /= best;
  }
  return dims;
}
Dims plane(std::size_t n) {
  return splitDims(n, 2);
}
Dims volume(std::size_t n) {
  return splitDims(n, 3);
}
Params tile(std::int64_t x, std::int64_t y, std::int64_t z) {
  return {{"tile_x", x}, {"tile_y", y}, {"tile_z", z}};
}

FZ_STAGE_CASE(TiledLorenzo,
              {.stage = "TiledLorenzo",
               .tile_values = 64,
               .configs = {{"default"},
                           {"2d", {}, plane},
                           {"3d", {}, volume},
                           {"3d in 2d tiles", tile(8, 8, 1), volume},
                           {"1x1x1", tile(1, 1, 1), volume},
                           {"2x2", tile(2, 2, 1), plane},
                           {"16x3", tile(16, 3, 0), plane},
                           {"3x5x7", tile(3, 5, 7), volume},
                           {"255x4", tile(255, 4, 1), plane},
                           {"1d in 2d tiles", tile(8, 8, 1)},
                           {"column",
                            {},
                            [](std::size_t n) {
                              return Dims{n == 0 ? 0u : 1u, n, 1};
                            }}},
               .inputs = {smallNoise(), fullNoise(), extremes()},
               .extra_sizes = {67 * 45, 17 * 11 * 13, 1100 * 9},
               .large_values = 270 * 40 * 9});

template <class T>
std::vector<T> encoded(TiledLorenzoStage<T>& stage, const std::vector<T>& values) {
  return fromBytes<T>(encode(stage, toBytes(values)).streams[0]);
}

TEST(TiledLorenzo, WorkedExampleOfTheFormat) {
  I32 stage;
  stage.setDims(3, 3);
  stage.setTileShape(2, 2);
  EXPECT_EQ(encoded(stage, {10, 11, 13, 20, 22, 25, 30, 33, 37}),
            (std::vector<std::int32_t>{10, 1, 10, 2, 13, 0, 12, 0, 30, 3, 0, 0, 37, 0, 0, 0}));
}

TEST(TiledLorenzo, OneDimensionIsADeltaInBlocksOf64) {
  I32 stage;
  std::vector<std::int32_t> values(70, 5);
  std::vector<std::int32_t> expected(128, 0);
  expected[0] = 5;
  expected[64] = 5;
  EXPECT_EQ(encoded(stage, values), expected);
}

TEST(TiledLorenzo, EdgesPredictDownYAndZ) {
  I32 stage;
  stage.setDims(2, 2, 2);
  stage.setTileShape(2, 2, 2);
  EXPECT_EQ(encoded(stage, {100, 101, 110, 112, 1000, 1003, 1100, 1104}),
            (std::vector<std::int32_t>{100, 1, 10, 2, 900, 3, 100, 4}));
}

TEST(TiledLorenzo, DeltasWrap) {
  TiledLorenzoStage<std::int16_t> stage;
  stage.setTileShape(2);
  EXPECT_EQ(encoded(stage, {-32768, 32767}), (std::vector<std::int16_t>{-32768, -1}));
}

TEST(TiledLorenzo, DefaultTilesHold64ValuesInEveryDimensionality) {
  I32 stage;
  EXPECT_EQ(stage.getTileShape(), (Dims{64, 1, 1}));
  stage.setDims(100, 100);
  EXPECT_EQ(stage.getTileShape(), (Dims{8, 8, 1}));
  stage.setDims(30, 30, 30);
  EXPECT_EQ(stage.getTileShape(), (Dims{4, 4, 4}));
  EXPECT_EQ(stage.getTileElems(), 64u);
}

TEST(TiledLorenzo, TileShapesOutsideTheLimitsAreRefused) {
  I32 stage;
  EXPECT_THROW(stage.setTileShape(256), std::invalid_argument);
  EXPECT_THROW(stage.setTileShape(0, 8), std::invalid_argument);
  EXPECT_THROW(stage.setTileShape(33, 32), std::invalid_argument);
  EXPECT_NO_THROW(stage.setTileShape(32, 32));
  EXPECT_EQ(stage.getTileElems(), 1024u);
  EXPECT_NO_THROW(stage.setTileShape(255, 4));
  EXPECT_THROW(setParam(stage, "tile_z", ParamValue(std::int64_t{2})), std::invalid_argument);
  I32 mixed;  // 255 in x and the default 8 in y is too much, known only with the dims
  setParam(mixed, "tile_x", ParamValue(std::int64_t{255}));
  mixed.setDims(4, 4);
  EXPECT_THROW(encode(mixed, Bytes(64)), Error);
}

TEST(TiledLorenzo, ConfigHasTheLayoutOfTheFormat) {
  TiledLorenzoStage<std::int16_t> stage;
  stage.setDims(300, 2, 3);
  const Encoded e = encode(stage, Bytes(2 * 300 * 2 * 3));
  EXPECT_EQ(e.config, (Bytes{5, 3, 4, 4, 4, 0, 0, 0, 0x2c, 1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}));
  const auto copy = makeStage(25, e.config.data(), e.config.size());
  EXPECT_EQ(dynamic_cast<const TiledLorenzoStage<std::int16_t>&>(*copy).getDims(),
            (Dims{300, 2, 3}));
}

TEST(TiledLorenzo, UnsetDimsAreStoredAsTheExtentOfTheInput) {
  I32 stage;
  const Encoded e = encode(stage, Bytes(4 * 70));
  EXPECT_EQ(fromBytes<std::uint32_t>(ByteView(e.config).subspan(8)),
            (std::vector<std::uint32_t>{70, 1, 1}));
  encode(stage, Bytes(4 * 90));  // and do not stick
}

TEST(TiledLorenzo, OwnDimsWinOverThoseOfThePipeline) {
  I32 stage;
  stage.setPipelineDims({6, 6, 1});
  EXPECT_EQ(stage.ndim(), 2);
  stage.setDims({4, 3, 3});
  stage.setPipelineDims({6, 6, 1});
  EXPECT_EQ(stage.ndim(), 3);
}

TEST(TiledLorenzo, DimsThatDoNotHoldTheInputAreRefusedWithBothNumbers) {
  I32 stage;
  stage.setDims(8, 4);
  try {
    encode(stage, Bytes(4 * 33));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadSize);
    EXPECT_NE(std::string(error.what()).find("32"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("33"), std::string::npos) << error.what();
  }
}

TEST(TiledLorenzo, AStreamThatDoesNotFitItsDimsIsCorrupt) {
  I32 stage;
  stage.setDims(9, 9);
  Encoded e = encode(stage, Bytes(4 * 81));
  e.streams[0].resize(e.streams[0].size() - 4);
  EXPECT_THROW(decode(25, e), Error);
  e.config = {6, 3, 1, 1, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
  EXPECT_THROW(decode(25, e), Error);
}

template <class T, class Team>
void expectCodecBytes(const std::vector<T>& values,
                      const Dims& dims,
                      const Dims& shape,
                      Team team) {
  TiledLorenzoStage<T> stage;
  stage.setDims(dims);
  stage.setTileShape(shape[0], shape[1], shape[2]);
  const tiled_lorenzo::Grid grid{
      dims[0],
      dims[1],
      dims[2],
      {static_cast<std::uint32_t>(shape[0]), static_cast<std::uint32_t>(shape[1]),
       static_cast<std::uint32_t>(shape[2])}};
  const std::size_t n = grid.tile.values();
  std::vector<T> expected(grid.tileCount() * n, T{1});
  for (std::uint64_t t = 0; t < grid.tileCount(); ++t) {
    tiled_lorenzo::encodeTile(team, grid, t, values.data(), expected.data() + t * n);
  }
  EXPECT_EQ(encoded(stage, values), expected);
  std::vector<T> decoded(values.size());
  for (std::uint64_t t = 0; t < grid.tileCount(); ++t) {
    tiled_lorenzo::decodeTile(team, grid, t, expected.data() + t * n, decoded.data());
  }
  EXPECT_EQ(decoded, values);
}

TEST(TiledLorenzo, StageGivesTheBytesOfTheCodecTextInAnyOrder) {
  std::mt19937_64 rng(3);
  for (const Dims& dims :
       {Dims{5000, 1, 1}, Dims{2100, 21, 1}, Dims{37, 19, 11}, Dims{1, 1, 1100}}) {
    std::vector<std::int32_t> wide(dims[0] * dims[1] * dims[2]);
    std::vector<std::int16_t> narrow(wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      wide[i] = static_cast<std::int32_t>(rng());
      narrow[i] = static_cast<std::int16_t>(rng());
    }
    for (const Dims& shape : {Dims{64, 1, 1}, Dims{8, 8, 1}, Dims{4, 4, 4}, Dims{5, 3, 2}}) {
      expectCodecBytes(wide, dims, shape, SerialTeam{});
      expectCodecBytes(narrow, dims, shape, ShuffledTeam{&rng});
    }
  }
}

}  // namespace
}  // namespace fz::test
