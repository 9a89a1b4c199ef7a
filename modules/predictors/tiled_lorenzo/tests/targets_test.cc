#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "predictors/tiled_lorenzo/codec.h"
#include "predictors/tiled_lorenzo/cpu/rows.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"
#include "shared/team.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

/// The stream by the text of codec.h alone.
template <class T>
std::vector<T> streamByCodec(const tiled_lorenzo::Grid& grid, const std::vector<T>& field) {
  std::vector<T> stream(grid.tileCount() * grid.tile.values());
  for (std::uint64_t tile = 0; tile < grid.tileCount(); ++tile) {
    tiled_lorenzo::encodeTile(SerialTeam{}, grid, tile, field.data(),
                              stream.data() + tile * grid.tile.values());
  }
  return stream;
}

template <class T>
void expectCodecOf(const Dims& dims, const Dims& tile) {
  SCOPED_TRACE(testing::PrintToString(dims) + " in tiles " + testing::PrintToString(tile));
  std::mt19937_64 rng(dims[0]);
  std::vector<T> field(dims[0] * dims[1] * dims[2]);
  for (T& value : field) {
    value = static_cast<T>(rng());
  }
  TiledLorenzoStage<T> stage;
  stage.setDims(dims);
  stage.setTileShape(tile[0], tile[1], tile[2]);
  const Encoded encoded = encode(stage, toBytes(field));
  const auto expected = streamByCodec(tiled_lorenzo::gridOf(dims, tile), field);
  ASSERT_EQ(fromBytes<T>(encoded.streams[0]), expected);
  ASSERT_EQ(decode(stage.getStageTypeId(), encoded), toBytes(field));
}

/// Rows that are whole vectors, that end within one, and fields that end within a tile.
TEST(TiledLorenzo, EveryTargetGivesTheBytesOfTheCodec) {
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    SCOPED_TRACE(hwy::TargetName(left & -left));
    hwy::SetSupportedTargetsForTest(left & -left);
    hwy::GetChosenTarget().DeInit();
    for (const Dims& dims : {Dims{64, 16, 8}, Dims{37, 10, 7}, Dims{80, 24, 1}, Dims{300, 9, 2},
                             Dims{15, 8, 4}, Dims{1, 33, 5}}) {
      for (const Dims& tile : {Dims{4, 4, 4}, Dims{8, 8, 1}, Dims{4, 6, 2}, Dims{8, 2, 3},
                               Dims{4, 1, 2}, Dims{8, 3, 1}, Dims{16, 2, 2}}) {
        expectCodecOf<std::int16_t>(dims, tile);
        expectCodecOf<std::int32_t>(dims, tile);
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace
}  // namespace fz::test
