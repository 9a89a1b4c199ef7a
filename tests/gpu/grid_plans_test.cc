// Which grids LorenzoQuant decodes by the chunk; needs no device.
#include "fused/lorenzo_quant/lorenzo_quant_config_impl.h"
#include "fz/byte_io.h"
#include "gpu/grid_decoding.h"

namespace fz::test {
namespace {

/// What the decoder of a grid asks for.
TileOp decodingOpOf(const Dims& dims) {
  LorenzoQuantConfig config;
  config.abs_error_bound = config.user_error_bound = 0.5f;
  config.input_type = static_cast<std::uint8_t>(DataType::FLOAT32);
  config.code_type = static_cast<std::uint8_t>(DataType::UINT16);
  config.ndim = dims[2] > 1 ? 3 : 2;
  config.dim_x = static_cast<std::uint32_t>(dims[0]);
  config.dim_y = static_cast<std::uint32_t>(dims[1]);
  config.dim_z = static_cast<std::uint32_t>(dims[2]);
  std::array<std::uint8_t, sizeof(LorenzoQuantConfig)> bytes = {};
  ByteWriter writer(bytes);
  lorenzo_quant::writeConfig(config, writer);
  LorenzoQuantStage<float, std::uint16_t> stage;
  stage.deserializeHeader(bytes.data(), bytes.size());
  stage.setInverse(true);
  return stage.tileOp(Backend::CUDA);
}

TEST(DeviceGridPlans, ChunksAreTakenWhereTheirTilesAreWhole) {
  const WithSlowGroups with_slow_groups;
  for (const Dims& dims :
       {Dims{256, 40, 1}, Dims{3600, 40, 1}, Dims{8192, 40, 1}, Dims{16384, 9, 1}, Dims{128, 64, 9},
        Dims{512, 48, 2}, Dims{1024, 8, 8}}) {
    EXPECT_EQ(decodingOpOf(dims).chunk_bytes, 16384u) << nameOf(dims);
  }
  for (const Dims& dims :
       {Dims{255, 40, 1}, Dims{3602, 40, 1}, Dims{8196, 40, 1}, Dims{16416, 9, 1}, Dims{64, 128, 9},
        Dims{96, 256, 9}, Dims{512, 24, 9}, Dims{2048, 8, 8}}) {
    const TileOp op = decodingOpOf(dims);
    EXPECT_EQ(op.chunk_bytes, 0u) << nameOf(dims);
    EXPECT_TRUE(op.has_runs) << nameOf(dims);
    EXPECT_NE(op.why[0], '\0') << nameOf(dims);  // `explain()` says it
  }
  EXPECT_FALSE(decodingOpOf({256, 40, 1}) ==
               decodingOpOf({255, 40, 1}));  // groups are planned anew
}

/// 528 at a time; four fifths of those that fit, or nine tenths where rows are no whole tiles.
TEST(DeviceGridPlans, ChunksAreTakenWhereTheyKeepADeviceBusy) {
  for (const Dims& dims : {Dims{8192, 16384, 1}, Dims{8192, 32 * 423, 1}, Dims{8192, 32 * 845, 1},
                           Dims{256, 32 * 100'000, 1}, Dims{3600, 16384, 1}, Dims{512, 512, 512},
                           Dims{512, 512, 128}}) {
    EXPECT_EQ(decodingOpOf(dims).chunk_bytes, 16384u) << nameOf(dims);
  }
  for (const Dims& dims : {Dims{3600, 1800, 1}, Dims{500, 100'000, 1}, Dims{8192, 8192, 1},
                           Dims{8192, 32 * 422, 1}, Dims{8192, 32 * 529, 1},
                           Dims{8192, 32 * 844, 1}, Dims{256, 256, 256}, Dims{512, 512, 64}}) {
    EXPECT_EQ(decodingOpOf(dims).chunk_bytes, 0u) << nameOf(dims);
  }
}

}  // namespace
}  // namespace fz::test
