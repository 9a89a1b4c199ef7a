#include "backends/cpu/exec_context.h"
#include "coders/adaptive_bitpack/tests/support.h"
#include "support/shuffled.h"

namespace fz::test::adaptive_bitpack_test {
namespace {

/// Stretches of values of every width, with a wide value where a block may begin.
InputCase mixedWidths() {
  return {"mixed widths", [](DataType type, std::size_t n, std::mt19937_64& rng) {
            const auto n_bits = static_cast<unsigned>(8 * getDataTypeSize(type));
            std::vector<std::int32_t> values(n);
            for (std::size_t i = 0; i < n; ++i) {
              const auto width = static_cast<unsigned>(i / 50 % (n_bits + 1));
              const auto wide = i % 32 == 0 ? n_bits : width;
              const std::uint64_t magnitude = rng() & ((std::uint64_t{1} << wide) - 1);
              values[i] = static_cast<std::int32_t>(rng() % 2 == 0 ? magnitude : 0 - magnitude);
            }
            if (n_bits == 32) {
              return toBytes(values);
            }
            return toBytes(Int16s(values.begin(), values.end()));
          }};
}

StageConfig config(std::int64_t block_size, bool outlier_selection) {
  return {"block " + std::to_string(block_size) + (outlier_selection ? " outlier" : ""),
          {{"block_size", block_size}, {"outlier_selection", outlier_selection}}};
}

/// Flipping every bit of long streams takes long, and mixedWidths has every width already.
InputCase notInLargeBlocks(InputCase input) {
  input.applies = [](const StageConfig& c, const std::vector<DataType>& /*types*/) {
    return c.params.empty() || std::get<std::int64_t>(c.params[0].second) < 1000;
  };
  return input;
}

FZ_STAGE_CASE(AdaptiveBitpack,
              {.stage = "AdaptiveBitpack",
               .configs = {{"default"},
                           config(32, true),
                           config(1, true),
                           config(7, true),
                           config(8, false),
                           config(64, true),
                           config(100, false),
                           config(1024, true)},
               .inputs = {mixedWidths(), notInLargeBlocks(fullNoise()),
                          notInLargeBlocks(extremes()), zeros(), notInLargeBlocks(sparse())}});

/// The stream by the text of codec.h alone.
template <class T, class Team>
Bytes streamByCodec(Team team, const std::vector<T>& values, BlockLayout layout) {
  Bytes meta;
  Bytes payload;
  for (std::size_t at = 0; at < values.size(); at += layout.block_values) {
    const auto n =
        static_cast<std::uint32_t>(std::min<std::size_t>(layout.block_values, values.size() - at));
    const BlockForm form = adaptive_bitpack::blockForm(team, values.data() + at, n, layout);
    Bytes bytes(layout.metaBytes());
    adaptive_bitpack::putForm(form, layout, bytes.data());
    meta.insert(meta.end(), bytes.begin(), bytes.end());
    bytes.assign(adaptive_bitpack::blockCost(form, layout.planeBytes()), 0xCD);
    adaptive_bitpack::encodeBlock(team, values.data() + at, n, layout, form, bytes.data());
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  }
  meta.insert(meta.end(), payload.begin(), payload.end());
  return meta;
}

template <class T, class Team>
std::vector<T> valuesByCodec(Team team, const Bytes& stream, std::size_t n, BlockLayout layout) {
  std::vector<T> values(n);
  std::size_t position = (n + layout.block_values - 1) / layout.block_values * layout.metaBytes();
  const std::uint8_t* meta = stream.data();
  for (std::size_t at = 0; at < n; at += layout.block_values, meta += layout.metaBytes()) {
    EXPECT_TRUE(adaptive_bitpack::isForm<T>(meta, layout));
    const BlockForm form = adaptive_bitpack::getForm(meta, layout);
    adaptive_bitpack::decodeBlock(
        team, stream.data() + position, form, layout,
        static_cast<std::uint32_t>(std::min<std::size_t>(layout.block_values, n - at)),
        values.data() + at);
    position += adaptive_bitpack::blockCost(form, layout.planeBytes());
  }
  EXPECT_EQ(position, stream.size());
  return values;
}

const Int32s kSmall = {0, 1, -2, 3, 0, -4, 5, 0};
const Int32s kOneLarge = {300, 1, -1, 0, 1, 0, 0, -1};

TEST(AdaptiveBitpack, PlainExamplesOfTheSpecification) {
  EXPECT_EQ(streamOf(kSmall, {8, false}), (Bytes{0x03, 0x24, 0x4a, 0x0c, 0x60}));
  EXPECT_EQ(streamOf(kOneLarge, {8, false}),
            (Bytes{0x09, 0x84, 0x96, 0x00, 0x01, 0x01, 0x00, 0x01, 0x00, 0x00, 0x01}));
}

TEST(AdaptiveBitpack, OutlierExamplesOfTheSpecification) {
  EXPECT_EQ(streamOf(kOneLarge, {8, true}), (Bytes{0x01, 0x03, 0x2c, 0x01, 0x84, 0x96}));
  const Int32s smallest = {std::numeric_limits<std::int32_t>::min(), 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(streamOf(smallest, {8, true}), (Bytes{0x00, 0x07, 0x00, 0x00, 0x00, 0x80, 0x01}));
  EXPECT_EQ(streamOf(Int32s{4, 1, 1, 1, 1, 1, 1, 1}, {8, true}),
            (Bytes{0x01, 0x01, 0x04, 0x00, 0xfe}));
}

TEST(AdaptiveBitpack, EqualCostsChoosePlain) {
  EXPECT_EQ(streamOf(Int32s{2, 1, 1, 1, 1, 1, 1, 1}, {8, true}),
            (Bytes{0x02, 0x00, 0x00, 0xfe, 0x01}));
}

TEST(AdaptiveBitpack, MetadataComesFirstAndPayloadFollowsWithoutGaps) {
  Int32s values = kSmall;
  values.insert(values.end(), 8, 0);
  values.insert(values.end(), kSmall.begin(), kSmall.end());
  values.push_back(-1);
  EXPECT_EQ(streamOf(values, {8, false}), (Bytes{0x03, 0x00, 0x03, 0x01, 0x24, 0x4a, 0x0c, 0x60,
                                                 0x24, 0x4a, 0x0c, 0x60, 0x01, 0x01}));
}

TEST(AdaptiveBitpack, AllZeroBlocksTakeOnlyTheirMetadata) {
  EXPECT_EQ(streamOf(Int32s(1000, 0), {32, false}), Bytes(32, 0));
  EXPECT_EQ(streamOf(Int32s(1000, 0), {32, true}), Bytes(64, 0));
  EXPECT_TRUE(streamOf(Int32s{}, {32, false}).empty());
}

TEST(AdaptiveBitpack, PartialLastBlockCountsAsFilledWithZeros) {
  for (const bool outlier_selection : {false, true}) {
    Int32s values = {700, -3, 2, 5, -1, 0, 4};
    const Bytes partial = streamOf(values, {32, outlier_selection});
    values.resize(32, 0);
    EXPECT_EQ(partial, streamOf(values, {32, outlier_selection}));
  }
}

template <class T>
void expectEveryRate() {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  for (std::uint32_t rate = 0; rate <= kBits; ++rate) {
    for (const bool negative : {false, true}) {
      // Only the smallest value has the last rate.
      const std::uint32_t magnitude = rate == 0 ? 0 : std::uint32_t{1} << (rate - 1);
      std::vector<T> values(64, 0);
      values[13] = static_cast<T>(negative ? 0 - magnitude : magnitude);
      values[40] = static_cast<T>(rate == 0 ? 0 : -1);
      const Encoded encoded = encodeValues(values, {32, false});
      EXPECT_EQ(encoded.streams[0][0], rate);
      EXPECT_EQ(encoded.streams[0].size(), 2 + (rate == 0 ? 0 : 4 * (1 + rate) + 8));
      EXPECT_EQ(decode(kId, encoded), toBytes(values));
    }
  }
}

TEST(AdaptiveBitpack, EveryRateFromZeroToTheFullWidthSurvives) {
  expectEveryRate<std::int16_t>();
  expectEveryRate<std::int32_t>();
}

TEST(AdaptiveBitpack, EveryOutlierByteCountIsUsedAndBeatsPlain) {
  for (std::uint32_t n_bytes = 1; n_bytes <= 4; ++n_bytes) {
    Int32s values(32, 1);
    values[0] = -static_cast<std::int32_t>(std::uint32_t{1} << (8 * n_bytes - 2));
    const Encoded encoded = encodeValues(values, {32, true});
    EXPECT_EQ(encoded.streams[0][0], 1);
    EXPECT_EQ(encoded.streams[0][1], 1 + 2 * (n_bytes - 1));
    EXPECT_EQ(encoded.streams[0].size(), 2 + n_bytes + 4 + 4);
    EXPECT_LT(encoded.streams[0].size(), streamOf(values, {32, false}).size());
    EXPECT_EQ(decode(kId, encoded), toBytes(values));
  }
}

TEST(AdaptiveBitpack, SizeFollowsTheFormulaForEveryBlockSize) {
  for (std::uint32_t block = 1; block <= 1024; block += block < 130 ? 1 : 97) {
    const Int32s values(2050, -5);
    const std::size_t n_blocks = (2050 + block - 1) / block;
    EXPECT_EQ(streamOf(values, {block, false}).size(), n_blocks * (1 + (block + 7) / 8 * 4));
  }
}

TEST(AdaptiveBitpack, SmallValuesShrinkAndBlockDeltasGainFromOutliers) {
  std::mt19937_64 rng(4);
  Int32s values(32 * 100);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int32_t>(rng() % 7) - 3 + (i % 32 == 0 ? 100'000 : 0);
  }
  EXPECT_EQ(streamOf(values, {32, false}).size(), 100 * (1 + 4 * 18));
  EXPECT_EQ(streamOf(values, {32, true}).size(), 100 * (2 + 3 + 4 * 3));
}

template <class T>
void expectTunedEqualsCodec() {
  std::mt19937_64 rng(sizeof(T));
  for (const std::uint32_t block : {1u, 2u, 7u, 8u, 9u, 16u, 24u, 31u, 32u, 33u, 40u, 63u, 64u, 96u,
                                    100u, 128u, 500u, 1023u, 1024u}) {
    for (const bool outlier_selection : {false, true}) {
      SCOPED_TRACE(block);
      const BlockLayout layout{block, outlier_selection};
      const std::size_t n = 1 + rng() % 3000;
      const auto values = fromBytes<T>(mixedWidths().make(kDataTypeOf<T>, n, rng));
      const Encoded tuned = encodeValues(values, layout);
      ASSERT_EQ(tuned.streams[0], streamByCodec(SerialTeam{}, values, layout));
      ASSERT_EQ(tuned.streams[0], streamByCodec(ShuffledTeam{&rng}, values, layout));
      ASSERT_EQ(decode(kId, tuned), toBytes(values));
      ASSERT_EQ(valuesByCodec<T>(SerialTeam{}, tuned.streams[0], n, layout), values);
      ASSERT_EQ(valuesByCodec<T>(ShuffledTeam{&rng}, tuned.streams[0], n, layout), values);
    }
  }
}

TEST(AdaptiveBitpack, TunedCodeGivesTheBytesOfTheCodecOnEveryTarget) {
  forEveryTarget([] {
    expectTunedEqualsCodec<std::int16_t>();
    expectTunedEqualsCodec<std::int32_t>();
  });
}

/// A block of every rate, and before each a first value of every width.
template <class T>
std::vector<T> everyWidth(std::uint32_t block, std::mt19937_64& rng) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  const auto withBits = [&](std::uint32_t n_bits) {
    const std::uint64_t top = n_bits == 0 ? 0 : std::uint64_t{1} << (n_bits - 1);
    const std::uint64_t magnitude = top | (rng() & (top - (top == 0 ? 0 : 1)));
    return static_cast<T>(rng() % 2 == 0 ? magnitude : 0 - magnitude);
  };
  std::vector<T> values;
  for (std::uint32_t first = 0; first <= kBits; ++first) {
    for (std::uint32_t rate = 0; rate <= kBits; ++rate) {
      values.push_back(withBits(first));
      for (std::uint32_t i = 1; i < block; ++i) {
        values.push_back(withBits(rng() % 4 == 0 ? rate : rate / 2));
      }
    }
  }
  return values;
}

TEST(AdaptiveBitpack, EveryWidthOfAFirstValueAndOfTheOthersSurvivesOnEveryTarget) {
  forEveryTarget([] {
    std::mt19937_64 rng(11);
    for (const std::uint32_t block : {32u, 64u, 128u}) {
      for (const bool outlier_selection : {false, true}) {
        SCOPED_TRACE(block);
        const BlockLayout layout{block, outlier_selection};
        const auto narrow = everyWidth<std::int16_t>(block, rng);
        const Encoded narrow_stream = encodeValues(narrow, layout);
        ASSERT_EQ(narrow_stream.streams[0], streamByCodec(SerialTeam{}, narrow, layout));
        ASSERT_EQ(decode(kId, narrow_stream), toBytes(narrow));
        const auto wide = everyWidth<std::int32_t>(block, rng);
        const Encoded wide_stream = encodeValues(wide, layout);
        ASSERT_EQ(wide_stream.streams[0], streamByCodec(SerialTeam{}, wide, layout));
        ASSERT_EQ(decode(kId, wide_stream), toBytes(wide));
      }
    }
  });
}

template <class T>
void expectForgedPayloadsDecodeAlike() {
  std::mt19937_64 rng(8);
  for (const std::uint32_t block : {5u, 8u, 32u, 64u, 100u, 128u}) {
    for (int round = 0; round < 20; ++round) {
      const BlockLayout layout{block, true};
      const std::size_t n = 4 * block - 3;
      Bytes stream(8);
      std::size_t n_bytes = 8;
      for (std::size_t b = 0; b < 4; ++b) {
        const auto rate = static_cast<std::uint32_t>(rng() % (8 * sizeof(T) + 1));
        const BlockForm form{rate, static_cast<std::uint32_t>(rng() % (sizeof(T) + 1))};
        adaptive_bitpack::putForm(form, layout, stream.data() + 2 * b);
        n_bytes += adaptive_bitpack::blockCost(form, layout.planeBytes());
      }
      while (stream.size() < n_bytes) {
        stream.push_back(static_cast<std::uint8_t>(rng()));
      }
      ASSERT_EQ(decode(kId, forged<T>(layout, n, stream)),
                toBytes(valuesByCodec<T>(SerialTeam{}, stream, n, layout)));
    }
  }
}

TEST(AdaptiveBitpack, PayloadThatNoEncoderWroteDecodesAsTheCodecSaysOnEveryTarget) {
  forEveryTarget([] {
    expectForgedPayloadsDecodeAlike<std::int16_t>();
    expectForgedPayloadsDecodeAlike<std::int32_t>();
  });
}

TEST(AdaptiveBitpack, ManyWavesOfTilesGiveTheBytesOfOneThread) {
  std::mt19937_64 rng(6);
  const Bytes values = mixedWidths().make(DataType::INT32, 300'001, rng);
  const ShuffledExecutor shuffled(1);
  const ExecContext threads{Backend::CPU, &shuffled};
  AdaptiveBitpackStage<std::int32_t> stage;
  stage.setBlockSize(1);  // the largest payload per value, hence the most tiles
  const Encoded one = encode(stage, values);
  EXPECT_TRUE(one == encode(stage, values, &threads));
  EXPECT_TRUE(values == decode(kId, one, &threads));
}

TEST(AdaptiveBitpack, CountsBeyondThirtyTwoBitsAreNotCut) {
  AdaptiveBitpackStage<std::int32_t> stage;
  const std::uint64_t n = (std::uint64_t{1} << 40) + 5;
  const Encoded big = forged<std::int32_t>({1024, false}, n, {});
  stage.deserializeHeader(big.config.data(), big.config.size());
  stage.setInverse(true);
  EXPECT_EQ(stage.estimateOutputSizes({std::size_t{1} << 31}), (std::vector<std::size_t>{4 * n}));
  EXPECT_THROW(stage.estimateOutputSizes({std::size_t{1} << 30}), Error);
}

TEST(AdaptiveBitpack, ConfigHoldsTypeModeBlockSizeAndCount) {
  const Encoded encoded = encodeValues(Int16s(70, 3), {100, true});
  Bytes expected = {0, 1, 0, 0, 100, 0, 0, 0, 70, 0, 0, 0, 0, 0, 0, 0};
  expected[0] = static_cast<std::uint8_t>(DataType::INT16);
  EXPECT_EQ(encoded.config, expected);
}

TEST(AdaptiveBitpack, BlockSizeMustBeOneTo1024) {
  AdaptiveBitpackStage<std::int32_t> stage;
  EXPECT_EQ(stage.getBlockSize(), 32u);
  EXPECT_FALSE(stage.getOutlierSelection());
  EXPECT_THROW(stage.setBlockSize(0), std::invalid_argument);
  EXPECT_THROW(stage.setBlockSize(1025), InvalidArgument);
  EXPECT_THROW(setParam(stage, "block_size", std::int64_t{-1}), std::invalid_argument);
  EXPECT_EQ(stage.getBlockSize(), 32u);
  stage.setBlockSize(1);
  stage.setBlockSize(1024);
  EXPECT_EQ(stage.getBlockSize(), 1024u);
}

TEST(AdaptiveBitpack, PortsTypesAndGraphFlags) {
  AdaptiveBitpackStage<std::int16_t> stage;
  EXPECT_EQ(stage.getOutputNames(), (std::vector<std::string>{"output"}));
  EXPECT_EQ(stage.getInputDataType(0), static_cast<std::uint8_t>(DataType::INT16));
  EXPECT_EQ(stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::UINT8));
  EXPECT_TRUE(stage.isGraphCompatible());
  stage.setInverse(true);
  EXPECT_EQ(stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::INT16));
  EXPECT_TRUE(stage.isGraphCompatible());
}

TEST(AdaptiveBitpack, RefusesAnInputThatIsNotAMultipleOfTheValueSize) {
  AdaptiveBitpackStage<std::int32_t> stage;
  const std::string message =
      messageOf(ErrorCode::kBadSize, [&] { encode(stage, Bytes(4 * 32 + 3)); });
  EXPECT_NE(message.find("size 131"), std::string::npos) << message;
}

TEST(AdaptiveBitpack, AnOutputThatIsTooSmallIsAskedForAndNotOverrun) {
  const Int32s values(1000, std::numeric_limits<std::int32_t>::min());
  const Bytes expected = streamOf(values, {32, false});
  const ShuffledExecutor shuffled(1);
  const ExecContext threads{Backend::CPU, &shuffled};
  for (const ExecContext* context : {static_cast<const ExecContext*>(nullptr), &threads}) {
    for (std::size_t n_bytes = 1; n_bytes <= expected.size(); n_bytes += 53) {
      AdaptiveBitpackStage<std::int32_t> stage;
      stage.setExecContext(context);
      Bytes out(n_bytes + 64, 0xA5);
      Bytes in = toBytes(values);
      stage.setOutputCapacities({n_bytes});
      stage.execute(nullptr, nullptr, {in.data()}, {out.data()}, {in.size()});
      EXPECT_EQ(stage.neededOutputSizes().empty(), n_bytes == expected.size());
      EXPECT_EQ(Bytes(out.begin() + static_cast<std::ptrdiff_t>(n_bytes), out.end()),
                Bytes(64, 0xA5));
    }
  }
}

TEST(AdaptiveBitpack, SettingsSurviveAStreamOfOtherSettings) {
  AdaptiveBitpackStage<std::int32_t> stage;
  stage.setBlockSize(64);
  stage.saveState();
  const Encoded other = encodeValues(Int32s(70, 3), {7, true});
  stage.deserializeHeader(other.config.data(), other.config.size());
  EXPECT_EQ(stage.getBlockSize(), 7u);
  EXPECT_TRUE(stage.getOutlierSelection());
  stage.restoreState();
  EXPECT_EQ(stage.getBlockSize(), 64u);
  EXPECT_FALSE(stage.getOutlierSelection());
}

}  // namespace
}  // namespace fz::test::adaptive_bitpack_test
