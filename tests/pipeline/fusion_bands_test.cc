// Grids whose rows of tiles and whose coder's chunks do not meet run in bands, as their stages do.
#include <random>

#include "fz/fusion.h"
#include "pipeline/fusion_outcome.h"
#include "pipeline/run/engine.h"

namespace fz::test::fusion {
namespace {

// Rows of tiles have no small multiple in common with the chunks of these coders, or are long.
constexpr Dims kBandedGrids[] = {{37, 20, 60}, {301, 45, 33}, {2003, 130, 1}, {259, 67, 63}};

TEST(FusionInBands, GridsWhoseTilesAndChunksDoNotMeetRunInBands) {
  ASSERT_EQ(gridChains().size(), 3u);
  for (const FusionChain& chain : gridChains()) {
    for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
      for (const Dims& dims : kBandedGrids) {
        SCOPED_TRACE(chain.name + " " + std::string(dataTypeToString(type)) + " " +
                     std::to_string(dims[0]) + "x" + std::to_string(dims[1]) + "x" +
                     std::to_string(dims[2]));
        Pipeline pipeline;
        load(pipeline, {chain, type, dims});
        ASSERT_EQ(pipeline.getFusedGroups().size(), 1u) << pipeline.explain();
        const Step& step = *pipeline.getDAG()->engine().plan.fusedSteps().front();
        EXPECT_EQ(step.chain.size(), pipeline.getStages().size()) << pipeline.explain();
        EXPECT_NE(step.tile_values % step.coder_values, 0u);
        const std::size_t n = dims[0] * dims[1] * dims[2];
        for (const Kind kind : {Kind::kSmooth, Kind::kRandom}) {
          expectSame({chain, type, dims}, dataOf(type, kind, n), {1, 3});
          ASSERT_FALSE(HasFatalFailure());
        }
      }
    }
  }
}

TEST(FusionInBands, FewLongRowsOfTilesAreLeftToTheStages) {
  const FusionChain chain = gridChains().front();
  Pipeline pipeline;
  load(pipeline, {.chain = chain, .dims = {259, 67, 56}});
  EXPECT_TRUE(pipeline.getFusedGroups().empty());
  EXPECT_NE(pipeline.explain().find("few and long rows of tiles"), std::string::npos)
      << pipeline.explain();
}

TEST(TileCut, BandsEncodeEachUnitOnceAndDecodeAllThatTheyNeed) {
  for (const std::size_t tile_values : {5u, 8u, 24u, 100u}) {
    for (const std::size_t coder_values : {1u, 3u, 8u, 32u}) {
      for (const std::uint64_t n_values : {1u, 7u, 100u, 101u, 250u}) {
        const TileCut cut{n_values, tile_values, 1, coder_values};
        std::uint64_t end = 0;
        for (std::size_t tile = 0; tile < cut.tileCount(); ++tile) {
          const TileRange front = cut.at(tile);
          const TileRange encoded = cut.encodedAt(tile);
          const TileRange decoded = cut.decodedAt(tile);
          EXPECT_EQ(encoded.first, end);
          EXPECT_TRUE(encoded.first % coder_values == 0 || encoded.n_values == 0);
          EXPECT_GE(encoded.first, front.first);
          end = encoded.first + encoded.n_values;
          EXPECT_EQ(decoded.first % coder_values, 0u);
          EXPECT_LE(decoded.first, front.first);
          EXPECT_GE(decoded.first + decoded.n_values, front.first + front.n_values);
          EXPECT_LE(decoded.first + decoded.n_values, n_values);
          EXPECT_LE(decoded.n_values, cut.maxTileValues());
          // What the first op writes: its tile, and what it encodes ahead.
          EXPECT_LE(std::max(end, front.first + front.n_values) - front.first, cut.maxTileValues());
        }
        EXPECT_EQ(end, n_values);
      }
    }
  }
}

TEST(FusionInBands, BandsTakeNoMemoryForTheCodesOfAGrid) {
  const Dims dims = {129, 128, 128};
  const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, dims[0] * dims[1] * dims[2]);
  std::array<std::size_t, 2> peaks = {};
  for (const Fusion fusion : {Fusion::Off, Fusion::Auto}) {
    Pipeline pipeline(0, MemoryStrategy::PREALLOCATE);
    load(pipeline, {.chain = gridChains().front(), .dims = dims, .fusion = fusion});
    frameOf(pipeline, data);
    peaks[fusion == Fusion::Auto ? 1 : 0] = pipeline.getPeakMemoryUsage();
  }
  const std::size_t n_codes = data.size() / 2;
  const std::size_t band = 8 * dims[0] * dims[1] * 2;
  EXPECT_LE(peaks[1] + n_codes, peaks[0] + 3 * band);
}

TEST(FusionInBands, DamageOfBandsEndsInTheSameWay) {
  const Dims dims = {37, 20, 60};
  for (const FusionChain& chain : gridChains()) {
    SCOPED_TRACE(chain.name);
    const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kRandom, dims[0] * dims[1] * dims[2]);
    const FrameBytes frame = compressed(Settings{.chain = chain, .dims = dims}, data).bytes;
    const FrameHeader header = readHeader(frame, frame.size());
    std::mt19937_64 random(11);
    for (int i = 0; i < 100; ++i) {
      FrameBytes damaged = frame;
      const std::size_t begin = header.core.header_size;
      const std::size_t at = begin + random() % (frame.size() - begin);
      damaged[at] ^= static_cast<std::uint8_t>(1 + random() % 255);
      expectSameEnd(sealed(header, damaged));
      ASSERT_FALSE(HasFatalFailure()) << "payload byte " << at;
    }
  }
}

}  // namespace
}  // namespace fz::test::fusion
