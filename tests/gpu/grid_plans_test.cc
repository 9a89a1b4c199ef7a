// How LorenzoQuant of grids takes part in groups; needs no device.
#include "core/stage_access.h"
#include "fused/lorenzo_quant/config.h"
#include "fused/lorenzo_quant/cuda/policy.h"
#include "fz/byte_io.h"
#include "gpu/grid_decoding.h"

namespace fz::test {
namespace {

/// What the decoder of a grid asks for.
template <class TCode>
TileOp decodingOpOf(const Dims& dims) {
  LorenzoQuantConfig config;
  config.abs_error_bound = config.user_error_bound = 0.5f;
  config.input_type = static_cast<std::uint8_t>(DataType::FLOAT32);
  config.code_type = static_cast<std::uint8_t>(kDataTypeOf<TCode>);
  config.ndim = dims[2] > 1 ? 3 : dims[1] > 1 ? 2 : 1;
  config.dim_x = static_cast<std::uint32_t>(dims[0]);
  config.dim_y = static_cast<std::uint32_t>(dims[1]);
  config.dim_z = static_cast<std::uint32_t>(dims[2]);
  std::array<std::uint8_t, sizeof(LorenzoQuantConfig)> bytes = {};
  ByteWriter writer(bytes);
  lorenzo_quant::writeConfig(config, writer);
  LorenzoQuantStage<float, TCode> stage;
  stage.deserializeHeader(bytes.data(), bytes.size());
  stage.setInverse(true);
  return stage.tileOp(Backend::CUDA);
}

TEST(DeviceGridPlans, DecodersOfGridsTakeRunsOfCodes) {
  for (const Dims& dims : {Dims{256, 40, 1}, Dims{255, 40, 1}, Dims{128, 64, 9}, Dims{1, 1, 9}}) {
    const TileOp op = decodingOpOf<std::uint16_t>(dims);
    ASSERT_TRUE(std::holds_alternative<RowsOp>(op)) << nameOf(dims);
    EXPECT_EQ(std::get<RowsOp>(op).reach, RowsReach::kRuns) << nameOf(dims);
    EXPECT_TRUE(std::holds_alternative<NoOp>(decodingOpOf<std::uint8_t>(dims))) << nameOf(dims);
  }
  // Groups are planned anew where the number of dimensions changes, and only there.
  EXPECT_TRUE(decodingOpOf<std::uint16_t>({256, 40, 1}) ==
              decodingOpOf<std::uint16_t>({255, 9, 1}));
  EXPECT_FALSE(decodingOpOf<std::uint16_t>({256, 40, 1}) ==
               decodingOpOf<std::uint16_t>({256, 40, 2}));
}

TEST(DeviceGridPlans, DecodersOfLinesGoAlongThem) {
  const TileOp op = decodingOpOf<std::uint16_t>({1000, 1, 1});
  ASSERT_TRUE(std::holds_alternative<RowsOp>(op));
  EXPECT_EQ(std::get<RowsOp>(op).reach, RowsReach::kLines);
}

TEST(DeviceGridPlans, EncodersAreFusedWhereThatWasMeasuredToBeFaster) {
  const auto isFused = [](std::size_t value_bytes, int ndim, std::size_t nx) {
    return lorenzo_quant::device::fusedEncodeObstacle(value_bytes, ndim, nx) == nullptr;
  };
  for (const std::size_t nx : {0u, 1u, 8u, 127u, 128u, 384u, 501u, 504u, 1024u, 2048u, 8191u}) {
    EXPECT_TRUE(isFused(4, 1, nx) && isFused(8, 1, nx)) << nx;
    EXPECT_TRUE(isFused(4, 2, nx)) << nx;
    EXPECT_EQ(isFused(8, 2, nx), nx % 2 == 0) << nx;
    EXPECT_EQ(isFused(4, 3, nx), nx % 8 == 0) << nx;
    EXPECT_EQ(isFused(8, 3, nx), nx == 128 || nx == 1024) << nx;
  }
}

}  // namespace
}  // namespace fz::test
