#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

#include "fz/byte_io.h"
#include "fz/error.h"
#include "stage/stage_factory.h"
#include "support/stage_case.h"
#include "transforms/mask/codec.h"
#include "transforms/mask/mask_stage.h"

namespace fz::test {
namespace {

constexpr std::uint16_t kMaskId = 20481;
constexpr double kFill = -9999.0;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
T nanWith(unsigned payload) {
  constexpr auto kQuiet = std::bit_cast<BitsOf<T>>(std::numeric_limits<T>::quiet_NaN());
  return std::bit_cast<T>(static_cast<BitsOf<T>>(kQuiet | payload));
}

/// A family whose value i is missing where `is_missing(i, n)` says so, as `value(i)`.
template <class IsMissing, class Missing>
InputCase masked(std::string label, IsMissing is_missing, Missing missing) {
  return {std::move(label), [=](DataType type, std::size_t n, std::mt19937_64& rng) {
            const auto make = [&]<class T>(T /*type*/) {
              std::vector<T> values(n);
              for (std::size_t i = 0; i < n; ++i) {
                values[i] = is_missing(i, n, rng)
                                ? static_cast<T>(missing(T{}, i))
                                : static_cast<T>(std::sin(0.01 * static_cast<double>(i)));
              }
              return toBytes(values);
            };
            return type == DataType::FLOAT32 ? make(float{}) : make(double{});
          }};
}

const auto kNan = []<class T>(T /*type*/, std::size_t /*i*/) { return nanWith<T>(0); };
const auto kPayloads = []<class T>(T /*type*/, std::size_t i) {
  return nanWith<T>(static_cast<unsigned>(i % 5));
};
const auto kManyPayloads = []<class T>(T /*type*/, std::size_t i) {
  return nanWith<T>(static_cast<unsigned>(i % 1000));
};
const auto kFillOrInfinity = []<class T>(T /*type*/, std::size_t i) {
  return i % 3 == 0 ? static_cast<T>(kFill) : std::numeric_limits<T>::infinity();
};

bool rarely(std::size_t /*i*/, std::size_t /*n*/, std::mt19937_64& rng) {
  return rng() % 100 == 0;
}
bool inBlocks(std::size_t i, std::size_t /*n*/, std::mt19937_64& /*rng*/) {
  return i / 200 % 3 == 1;
}

FZ_STAGE_CASE(
    Mask,
    {.stage = "Mask",
     .tile_values = 4096,
     .configs = {{"default"},
                 {"fill", {{"fill", std::string("-9999 1e20")}}},
                 {"units", {{"fill", std::string("-9999")}, {"hold", std::string("32")}}},
                 {.label = "grid",
                  .dims =
                      [](std::size_t n) {
                        return n % 12 == 0 ? Dims{n / 12, 4, 3} : Dims{n, 1, 1};
                      }},
                 {.label = "tiles",
                  .params = {{"hold", std::string("8x4x2")}},
                  .dims =
                      [](std::size_t n) {
                        return n % 12 == 0 ? Dims{n / 12, 4, 3} : Dims{n, 1, 1};
                      }},
                 {.label = "plane",
                  .dims =
                      [](std::size_t n) {
                        return n > 0 && n % 7 == 0 ? Dims{7, n / 7, 1} : Dims{n};
                      }}},
     .inputs = {masked(
                    "none", [](auto...) { return false; }, kNan),
                masked(
                    "all", [](auto...) { return true; }, kNan),
                masked("blocks", inBlocks, kFillOrInfinity), masked("scattered", rarely, kPayloads),
                masked(
                    "odd", [](std::size_t i, auto...) { return i % 2 == 1; }, kManyPayloads),
                masked(
                    "first", [](std::size_t i, auto...) { return i == 0; }, kNan),
                masked(
                    "last", [](std::size_t i, std::size_t n, auto&) { return i + 1 == n; }, kNan),
                fullNoise()},
     .extra_sizes = {63, 64, 65, 84, 1200, 8400}});

template <class T>
Encoded encodeWith(MaskStage<T>& stage, const std::vector<T>& values) {
  return encode(stage, toBytes(values));
}

TEST(Mask, WorkedExample) {
  MaskStage<float> stage;
  stage.setFill({kFill});
  const float nan = nanWith<float>(0);
  const Encoded e = encodeWith(stage, {1.f, nan, -9999.f, 2.f, 3.f, nan, 4.f, 5.f});
  EXPECT_EQ(e.streams[0], toBytes(std::vector<float>{1.f, 1.f, 1.f, 2.f, 3.f, 3.f, 4.f, 5.f}));
  // Two patterns, 7fc00000 and c61c3c00; one raw brick 00100110; one raw brick 00000100.
  EXPECT_EQ(e.streams[1], Bytes({2, 0, 0, 0, 0, 0, 0xc0, 0x7f, 0, 0x3c, 0x1c, 0xc6,  //
                                 2, 2, 0, 0, 0, 3, 0x26, 2,    2, 0,    0,    0,    3, 0x04}));
  EXPECT_EQ(stage.getMissingCount(), 3u);
  EXPECT_EQ(stage.getFilledCount(), 1u);
}

TEST(Mask, BricksOfAPlaneHaveEightRows) {
  std::vector<float> values(32 * 16, 1.f);
  std::fill_n(values.begin(), 32 * 8, nanWith<float>(0));
  MaskStage<float> stage;
  stage.setDims(32, 16);
  // One pattern; bricks; the only group ends behind a byte of kinds, all one and all zero.
  EXPECT_EQ(encodeWith(stage, values).streams[1],
            Bytes({1, 0, 0, 0, 0, 0, 0xc0, 0x7f, 2, 1, 0, 0, 0, 0x01}));
}

TEST(Mask, HoldsTheValueBeforeAcrossTilesAndThreads) {
  std::vector<float> values(100'000, nanWith<float>(0));
  values[7] = 7.f;
  values[50'000] = 8.f;
  MaskStage<float> stage;
  const auto filled = fromBytes<float>(encodeWith(stage, values).streams[0]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(filled[i], i < 50'000 ? 7.f : 8.f) << i;
  }
}

TEST(Mask, FillsUnitsOnTheirOwn) {
  std::vector<float> values(96, nanWith<float>(0));
  values[40] = 7.f;
  MaskStage<float> stage;
  stage.setHold({32, 1, 1});
  const auto filled = fromBytes<float>(encodeWith(stage, values).streams[0]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(filled[i], i / 32 == 1 ? 7.f : 0.f) << i;
  }
}

TEST(Mask, FillsUnitsOfSeveralWordsOnTheirOwn) {
  std::vector<float> values(1000, nanWith<float>(0));
  values[300] = 3.f;
  values[700] = 7.f;
  values[702] = 8.f;
  MaskStage<float> stage;
  stage.setHold({128, 1, 1});
  const auto filled = fromBytes<float>(encodeWith(stage, values).streams[0]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float expected = i / 128 == 2 ? 3.f : i / 128 != 5 ? 0.f : i < 702 ? 7.f : 8.f;
    ASSERT_EQ(filled[i], expected) << i;
  }
}

TEST(Mask, FillsTilesOnTheirOwn) {
  // Four tiles of 2 x 2: valid, half missing, missing but one, missing.
  const float nan = nanWith<float>(0);
  MaskStage<float> stage;
  stage.setDims(4, 4);
  stage.setHold({2, 2, 1});
  const Encoded e =
      encodeWith(stage, {1, 2, nan, 3, 4, 5, nan, 6, nan, nan, nan, nan, nan, 7, nan, nan});
  EXPECT_EQ(e.streams[0],
            toBytes(std::vector<float>{1, 2, 3, 3, 4, 5, 3, 6, 7, 7, 0, 0, 7, 7, 0, 0}));
}

TEST(Mask, HoldComesBackAsText) {
  MaskStage<float> stage;
  for (const char* text : {"", "32", "8x8", "4x4x4", "4x1x2"}) {
    stage.setHoldText(text);
    EXPECT_EQ(stage.getHoldText(), text);
  }
}

TEST(Mask, AFieldWithoutMissingValuesHasAnEmptyMask) {
  MaskStage<double> stage;
  const std::vector<double> values = {1.0, -0.0, 1e300, 5e-324};
  const Encoded e = encodeWith(stage, values);
  EXPECT_EQ(e.streams[0], toBytes(values));
  EXPECT_TRUE(e.streams[1].empty());
}

TEST(Mask, AllMissingTakesTenBytes) {
  MaskStage<float> stage;
  const std::vector<float> values(1'000'000, nanWith<float>(0));
  EXPECT_EQ(encodeWith(stage, values).streams[1].size(), 9u);
  EXPECT_EQ(stage.getMissingCount(), values.size());
}

TEST(Mask, FillValuesCompareAsNumbers) {
  MaskStage<float> stage;
  stage.setFill({0.0, 1e20, 1e300});  // the last is no float
  const std::vector<float> values = {-0.f, 0.f, 1e20f, 1.f};
  const Encoded e = encodeWith(stage, values);
  EXPECT_EQ(stage.getFilledCount(), 3u);
  EXPECT_EQ(decode(kMaskId, e), toBytes(values));  // both zeros keep their sign
}

TEST(Mask, KeepsTheFillValuesInItsConfig) {
  MaskStage<float> stage;
  stage.setFill({1e20, kFill, std::numeric_limits<double>::quiet_NaN(), 1e20});
  const Encoded e = encodeWith(stage, {1.f, 1e20f});
  const auto copy = makeStage(kMaskId, e.config.data(), e.config.size(), e.version);
  EXPECT_EQ(dynamic_cast<const MaskStage<float>&>(*copy).getFill(),
            (std::vector<double>{1e20, kFill}));
  EXPECT_EQ(std::get<std::string>(getParam(*copy, "fill")), "1e+20 -9999");
  EXPECT_EQ(dynamic_cast<const MaskStage<float>&>(*copy).getMissingCount(), 1u);
}

TEST(Mask, RefusesFillValuesThatAreNoNumbersOrTooMany) {
  MaskStage<float> stage;
  EXPECT_THROW(stage.setFillText("1e20 land"), InvalidArgument);
  EXPECT_THROW(stage.setFill({1, 2, 3, 4, 5, 6, 7, 8, 9}), InvalidArgument);
  for (const char* text : {"65537", "65x65", "8x", "x8", "8x8x8x8", "8x0", "tile"}) {
    EXPECT_THROW(stage.setHoldText(text), InvalidArgument) << text;
  }
}

/// A mask whose stream was changed must be refused, since its checksum could be right.
class LyingMask : public ::testing::Test {
 protected:
  LyingMask() {
    MaskStage<float> stage;
    stage.setFill({kFill});
    stage.setDims(64, 64, 4);
    std::vector<float> values(64 * 64 * 4, 1.f);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 64 > 20 + i / 64 % 9) {
        values[i] = i % 2 == 0 ? nanWith<float>(0) : -9999.f;
      }
    }
    good_ = encodeWith(stage, values);
  }
  void expectCorrupt(const Encoded& e) {
    try {
      decode(kMaskId, e);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
    }
  }
  Encoded good_;
};

TEST_F(LyingMask, AboutItsCounts) {
  for (const std::size_t offset : {8u, 16u}) {
    for (const int change : {-1, 1}) {
      Encoded e = good_;
      storeLe(e.config.data() + offset,
              loadLe<std::uint64_t>(e.config.data() + offset) + static_cast<std::uint64_t>(change));
      expectCorrupt(e);
    }
  }
}

TEST_F(LyingMask, AboutItsDims) {
  Encoded e = good_;
  storeLe<std::uint64_t>(e.config.data() + 24, 32);
  expectCorrupt(e);
  storeLe<std::uint64_t>(e.config.data() + 24, std::uint64_t{1} << 62);
  expectCorrupt(e);
}

TEST_F(LyingMask, AboutItsPatterns) {
  Encoded e = good_;
  storeLe(e.streams[1].data() + 4, 0x3f800000u);  // 1.0 was never declared
  expectCorrupt(e);
  e = good_;
  std::swap_ranges(e.streams[1].begin() + 4, e.streams[1].begin() + 8, e.streams[1].begin() + 8);
  expectCorrupt(e);
  e = good_;
  storeLe(e.streams[1].data(), 257u);
  expectCorrupt(e);
}

TEST_F(LyingMask, AboutItsFillValues) {
  Encoded e = good_;
  storeLe(e.config.data() + 48, 5.0);
  expectCorrupt(e);
}

TEST_F(LyingMask, WithBytesBehindIt) {
  Encoded e = good_;
  e.streams[1].push_back(0);
  expectCorrupt(e);
}

TEST(MaskCodec, BricksOfAnyShapeComeBack) {
  std::mt19937_64 rng(5);
  mask::Chances chances;
  chances.reset();
  for (const auto& [x, y, z] : {std::array<std::uint64_t, 3>{1, 1, 1},
                                {64, 16, 16},
                                {65, 17, 17},
                                {3, 300, 1},
                                {130, 5, 1},
                                {1, 1, 20'000},
                                {7, 1, 900}}) {
    const mask::Grid grid = mask::makeGrid(x, y, z);
    std::vector<std::uint64_t> words(grid.n_bits / 64 + 2);
    for (std::uint64_t i = 0; i < grid.n_bits; ++i) {
      const bool is_set = (i / 37 + rng() % 50 / 49) % 2 == 0;
      words[i / 64] |= std::uint64_t{is_set} << (i % 64);
    }
    std::uint64_t n_bits = 0;
    for (std::uint64_t b = 0; b < grid.bricks(); ++b) {
      const mask::Brick brick = mask::brickAt(grid, b);
      n_bits += brick.bits(grid);
      std::uint32_t rows[mask::kBrickRows];
      std::uint32_t back[mask::kBrickRows] = {};
      for (std::uint32_t row = 0; row < brick.rows(); ++row) {
        rows[row] =
            mask::loadRow(words.data(), brick.rowStart(grid, row), brick.rowBits(grid, row));
      }
      Bytes bytes(4 * mask::kMaxRawBytes);
      mask::BitEncoder encoder(chances, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
      codeBrick(encoder, grid, brick, rows);
      mask::BitDecoder decoder(chances, bytes.data(), encoder.finish());
      codeBrick(decoder, grid, brick, back);
      EXPECT_TRUE(decoder.isAtEnd());
      EXPECT_TRUE(std::equal(rows, rows + brick.rows(), back)) << x << " " << y << " " << z;
    }
    EXPECT_EQ(n_bits, grid.n_bits);
  }
}

}  // namespace
}  // namespace fz::test
