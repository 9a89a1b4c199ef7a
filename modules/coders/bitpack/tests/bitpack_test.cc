#include <cstring>
#include <gtest/gtest.h>

#include "coders/bitpack/bitpack_stage.h"
#include "coders/bitpack/codec.h"
#include "fz/error.h"
#include "shared/team.h"
#include "stage/stage_factory.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

StageConfig nbits(std::int64_t n_bits) {
  return {.label = "nbits " + std::to_string(n_bits),
          .params = {{"nbits", n_bits}},
          .applies = [n_bits](const std::vector<DataType>& types) {
            return static_cast<std::size_t>(n_bits) <= 8 * getDataTypeSize(types[0]);
          }};
}

/// Values of at most as many bits as the config allows.
InputCase fitting(const std::string& label) {
  const auto limit = [](const StageConfig& config, const std::vector<DataType>& types) {
    return config.params.empty() || config.params[0].first != "nbits"
               ? 8 * getDataTypeSize(types[0])
               : static_cast<std::size_t>(std::get<std::int64_t>(config.params[0].second));
  };
  const std::size_t n_bits = std::stoul(label);
  return {label + " bit noise",
          [n_bits](DataType type, std::size_t n, std::mt19937_64& rng) {
            const std::size_t width = getDataTypeSize(type);
            Bytes bytes(n * width);
            for (std::size_t i = 0; i < n; ++i) {
              const std::uint64_t value = rng() & ((std::uint64_t{1} << n_bits) - 1);
              std::memcpy(bytes.data() + i * width, &value, width);
            }
            return bytes;
          },
          [n_bits, limit](const StageConfig& config, const std::vector<DataType>& types) {
            return n_bits <= limit(config, types);
          }};
}

FZ_STAGE_CASE(Bitpack,
              {.stage = "Bitpack",
               .tile_values = bitpack::kTileValues,
               .configs = {{"default"},
                           nbits(1),
                           nbits(2),
                           nbits(4),
                           nbits(8),
                           nbits(16),
                           nbits(32),
                           {"auto", {{"auto_detect", true}}}},
               .inputs = {fitting("32"), fitting("16"), fitting("8"), fitting("4"), fitting("2"),
                          fitting("1"), zeros()},
               .extra_sizes = {3, 7, 8, 9, 2047, 2049}});

template <class T>
Bytes packed(const std::vector<T>& values, std::uint32_t n_bits) {
  BitpackStage<T> stage;
  stage.setNBits(n_bits);
  return encode(stage, toBytes(values)).streams[0];
}

TEST(Bitpack, GivesTheBytesOfTheWorkedExamples) {
  const std::vector<std::uint16_t> values = {1, 2, 3, 0, 1, 1, 2, 3};
  EXPECT_EQ(packed(values, 2), (Bytes{0x39, 0xE5}));
  EXPECT_EQ(packed(values, 4), (Bytes{0x21, 0x03, 0x11, 0x32}));
  EXPECT_EQ(packed<std::uint32_t>({1, 0, 0, 0, 0, 0, 0, 1, 1}, 1), (Bytes{0x81, 0x01}));
  EXPECT_EQ(packed<std::uint32_t>({0x1234, 0xFFFF}, 16), (Bytes{0x34, 0x12, 0xFF, 0xFF}));
}

TEST(Bitpack, SizeIsTheBitsRoundedUpToBytes) {
  for (const std::size_t n : {0u, 1u, 7u, 8u, 9u, 1000u}) {
    EXPECT_EQ(packed(std::vector<std::uint16_t>(n, 1), 1).size(), (n + 7) / 8);
    EXPECT_EQ(packed(std::vector<std::uint16_t>(n, 1), 4).size(), (n + 1) / 2);
    EXPECT_EQ(packed(std::vector<std::uint16_t>(n, 1), 16).size(), 2 * n);
  }
}

TEST(Bitpack, RefusesBitsThatAreNoPowerOfTwoOrTooMany) {
  BitpackStage<std::uint16_t> stage;
  for (const std::uint32_t bad : {0u, 3u, 12u, 15u, 17u, 32u, 0x80000000u}) {
    EXPECT_THROW(stage.setNBits(bad), std::invalid_argument) << bad;
  }
  EXPECT_EQ(stage.getNBits(), 16u);
  EXPECT_THROW(BitpackStage<std::uint8_t>().setNBits(16), std::invalid_argument);
  EXPECT_THROW(setParam(stage, "nbits", ParamValue(std::int64_t{12})), std::invalid_argument);
  EXPECT_THROW(setParam(stage, "nbits", ParamValue(std::int64_t{32})), std::invalid_argument);
}

TEST(Bitpack, DefaultIsTheFullWidthOfEachType) {
  EXPECT_EQ(BitpackStage<std::uint8_t>().getNBits(), 8u);
  EXPECT_EQ(BitpackStage<std::uint16_t>().getNBits(), 16u);
  EXPECT_EQ(BitpackStage<std::uint32_t>().getNBits(), 32u);
  EXPECT_EQ(BitpackStage<std::uint8_t>::params().find("nbits")->default_value,
            ParamValue(std::int64_t{8}));
  EXPECT_EQ(BitpackStage<std::uint32_t>::params().find("nbits")->default_value,
            ParamValue(std::int64_t{32}));
}

template <class T>
void expectNamed(std::uint32_t n_bits, std::size_t index, T value) {
  std::vector<T> values(3 * bitpack::kTileValues + 5, T{1});
  values[index] = value;
  values.back() = static_cast<T>(~T{0});  // a later one that must not be the one named
  BitpackStage<T> stage;
  stage.setNBits(n_bits);
  try {
    encode(stage, toBytes(values));
    FAIL() << n_bits;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBoundViolation);
    EXPECT_EQ(std::string(e.what()), "Bitpack: value " + std::to_string(value) + " at index " +
                                         std::to_string(index) + " does not fit into " +
                                         std::to_string(n_bits) + " bits");
  }
}

TEST(Bitpack, AValueThatDoesNotFitIsNamedAndNeverTruncated) {
  for (const std::size_t index : {0u, 5u, 20'000u, 40'000u}) {
    expectNamed<std::uint8_t>(1, index, 2);
    expectNamed<std::uint8_t>(4, index, 16);
    expectNamed<std::uint16_t>(1, index, 256);
    expectNamed<std::uint16_t>(2, index, 4);
    expectNamed<std::uint16_t>(8, index, 300);
    expectNamed<std::uint32_t>(4, index, 0x10000);
    expectNamed<std::uint32_t>(8, index, 0x80000000u);
    expectNamed<std::uint32_t>(16, index, 65536);
  }
}

template <class T>
std::uint32_t detected(std::vector<T> values) {
  BitpackStage<T> stage;
  stage.setAutoDetect(true);
  const Encoded encoded = encode(stage, toBytes(values));
  EXPECT_EQ(decode(7, encoded), toBytes(values));
  EXPECT_EQ(encoded.config[1], stage.getNBits());
  EXPECT_TRUE(stage.isAutoDetect());
  return stage.getNBits();
}

TEST(Bitpack, AutoDetectTakesTheSmallestPowerOfTwoThatHoldsAll) {
  EXPECT_EQ(detected<std::uint16_t>({0, 0, 0, 0}), 1u);
  EXPECT_EQ(detected<std::uint16_t>({0, 1, 1}), 1u);
  EXPECT_EQ(detected<std::uint16_t>({2}), 2u);
  EXPECT_EQ(detected<std::uint16_t>({3, 4}), 4u);
  EXPECT_EQ(detected<std::uint16_t>({15}), 4u);
  EXPECT_EQ(detected<std::uint16_t>({16}), 8u);
  EXPECT_EQ(detected<std::uint16_t>({256}), 16u);
  EXPECT_EQ(detected<std::uint16_t>({65535}), 16u);
  EXPECT_EQ(detected<std::uint32_t>({65535}), 16u);
  EXPECT_EQ(detected<std::uint32_t>({65536}), 32u);
  EXPECT_EQ(detected<std::uint8_t>({255}), 8u);
  EXPECT_EQ(detected<std::uint8_t>({}), 1u);
}

TEST(Bitpack, AutoDetectIsDoneAnewForEveryRunAndLeavesTheSettingAlone) {
  BitpackStage<std::uint16_t> stage;
  stage.setNBits(8);
  stage.setAutoDetect(true);
  EXPECT_EQ(stage.getNBits(), 8u);  // nothing found yet
  encode(stage, toBytes(std::vector<std::uint16_t>{3}));
  EXPECT_EQ(stage.getNBits(), 2u);
  encode(stage, toBytes(std::vector<std::uint16_t>{3000}));
  EXPECT_EQ(stage.getNBits(), 16u);
  EXPECT_EQ(getParam(stage, "nbits"), ParamValue(std::int64_t{8}));
  stage.setAutoDetect(false);
  EXPECT_EQ(stage.getNBits(), 8u);
}

TEST(Bitpack, AutoDetectReservesTheWholeInput) {
  BitpackStage<std::uint32_t> stage;
  stage.setNBits(2);
  EXPECT_EQ(stage.estimateOutputSizes({400}), (std::vector<std::size_t>{25}));
  stage.setAutoDetect(true);
  EXPECT_EQ(stage.estimateOutputSizes({400}), (std::vector<std::size_t>{400}));
  EXPECT_TRUE(stage.isGraphCompatible());
}

TEST(Bitpack, BothSidesAreByteTransparent) {
  BitpackStage<std::uint16_t> stage;
  EXPECT_EQ(stage.getInputDataType(0), static_cast<std::uint8_t>(DataType::UNKNOWN));
  EXPECT_EQ(stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::UNKNOWN));
}

TEST(Bitpack, ConfigIsTypeBitsAndCount) {
  BitpackStage<std::uint16_t> stage;
  stage.setNBits(4);
  const Encoded encoded = encode(stage, toBytes(std::vector<std::uint16_t>(300, 5)));
  EXPECT_EQ(encoded.config, (Bytes{1, 4, 0x2C, 1, 0, 0, 0, 0, 0, 0}));
  BitpackStage<std::uint16_t> reader;
  reader.deserializeHeader(encoded.config.data(), encoded.config.size());
  EXPECT_EQ(reader.getNBits(), 4u);
  EXPECT_FALSE(reader.isAutoDetect());
}

TEST(Bitpack, SavedStateComesBackAfterAnotherConfigWasRead) {
  BitpackStage<std::uint16_t> stage;
  stage.setNBits(8);
  const Encoded encoded = encode(stage, toBytes(std::vector<std::uint16_t>(10, 5)));
  stage.saveState();
  const Bytes other = {1, 2, 1, 0, 0, 0, 0, 0, 0, 0};
  stage.deserializeHeader(other.data(), other.size());
  EXPECT_EQ(stage.getNBits(), 2u);
  stage.restoreState();
  EXPECT_EQ(stage.getNBits(), 8u);
  Bytes config(128);
  config.resize(stage.serializeHeader(0, config.data(), config.size()));
  EXPECT_EQ(config, encoded.config);
}

TEST(Bitpack, CountsThatContradictTheSizeAreCorrupt) {
  BitpackStage<std::uint16_t> stage;
  stage.setNBits(2);
  const Encoded good = encode(stage, toBytes(std::vector<std::uint16_t>(9, 3)));
  ASSERT_EQ(good.streams[0].size(), 3u);
  for (const std::uint64_t n : {std::uint64_t{8}, std::uint64_t{13}, std::uint64_t{1} << 62,
                                ~std::uint64_t{0}, std::uint64_t{0}}) {
    Encoded bad = good;
    std::memcpy(bad.config.data() + 2, &n, 8);
    EXPECT_THROW(decode(7, bad), Error) << n;
  }
  Encoded bad_bits = good;
  bad_bits.config[1] = 3;
  EXPECT_THROW(decode(7, bad_bits), Error);
  bad_bits.config[1] = 32;
  EXPECT_THROW(decode(7, bad_bits), Error);
}

TEST(Bitpack, AnAbsentConfigMeansWholeSixteenBitValues) {
  Encoded encoded;
  encoded.streams = {{1, 2, 3, 4}};
  EXPECT_EQ(decode(7, encoded), (Bytes{1, 2, 3, 4}));
  encoded.streams = {{1, 2, 3}};
  EXPECT_THROW(decode(7, encoded), Error);
}

TEST(Bitpack, RefusesAnInputThatIsNoWholeNumberOfValues) {
  BitpackStage<std::uint32_t> stage;
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

template <class T>
void expectBytesOfTheCodecText(std::uint32_t n_bits, std::uint32_t n) {
  std::mt19937_64 rng(n_bits + n);
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>(rng() & ((std::uint64_t{1} << n_bits) - 1));
  }
  Bytes serial(bitpack::packedBytes(n, n_bits));
  Bytes shuffled(serial.size());
  bitpack::packTile(SerialTeam{}, values.data(), n, n_bits, serial.data());
  bitpack::packTile(ShuffledTeam{&rng}, values.data(), n, n_bits, shuffled.data());
  EXPECT_EQ(packed(values, n_bits), serial);
  EXPECT_EQ(shuffled, serial);
  std::vector<T> back(n);
  bitpack::unpackTile(ShuffledTeam{&rng}, serial.data(), n, n_bits, back.data());
  EXPECT_EQ(back, values);
}

TEST(Bitpack, StageGivesTheBytesOfTheCodecText) {
  for (const std::uint32_t n : {1u, 7u, 64u, 2049u, 5003u}) {
    for (std::uint32_t n_bits = 1; n_bits <= 32; n_bits *= 2) {
      if (n_bits <= 8) {
        expectBytesOfTheCodecText<std::uint8_t>(n_bits, n);
      }
      if (n_bits <= 16) {
        expectBytesOfTheCodecText<std::uint16_t>(n_bits, n);
      }
      expectBytesOfTheCodecText<std::uint32_t>(n_bits, n);
    }
  }
}

}  // namespace
}  // namespace fz::test
