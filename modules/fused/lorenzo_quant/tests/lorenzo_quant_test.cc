#include "fused/lorenzo_quant/lorenzo_quant.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "fused/lorenzo_quant/tests/support.h"
#include "fz/error.h"
#include "stage/stage_factory.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

using F32 = LorenzoQuantStage<float, std::uint16_t>;
using F64 = LorenzoQuantStage<double, std::uint16_t>;

template <class F>
InputCase floats(const char* label, F f) {
  return {label, [f](DataType type, std::size_t n, std::mt19937_64& rng) {
            std::vector<float> singles(n);
            std::vector<double> doubles(n);
            for (std::size_t i = 0; i < n; ++i) {
              doubles[i] = f(i, rng);
              singles[i] = static_cast<float>(doubles[i]);
            }
            return type == DataType::FLOAT32 ? toBytes(singles) : toBytes(doubles);
          }};
}

InputCase smooth() {
  return floats("smooth", [](std::size_t i, std::mt19937_64& rng) {
    const auto x = static_cast<double>(i);
    return 30.0 * std::sin(0.01 * x) + 1e-3 * static_cast<double>(rng() % 100);
  });
}
InputCase noise() {
  return floats("noise", [](std::size_t, std::mt19937_64& rng) {
    return static_cast<double>(rng() % 2'000'001) * 1e-4 - 100.0;
  });
}
InputCase halves() {
  return floats("halves", [](std::size_t i, std::mt19937_64&) {
    return 1e-3 * (static_cast<double>(i % 41) - 20.0);
  });
}
InputCase specials() {
  return floats("specials", [](std::size_t i, std::mt19937_64& rng) {
    using L = std::numeric_limits<double>;
    const double values[] = {L::quiet_NaN(), L::infinity(),          -L::infinity(), -0.0, 1e-42,
                             -9999.0,        static_cast<double>(i), 3e38,           1e30, 1e-30};
    return i % 3 == 0 ? values[rng() % 10] : std::cos(static_cast<double>(i));
  });
}
InputCase patterns() {
  return {"all bit patterns", [](DataType type, std::size_t n, std::mt19937_64& rng) {
            Bytes bytes(n * getDataTypeSize(type));
            for (auto& b : bytes) {
              b = static_cast<std::uint8_t>(rng());
            }
            return bytes;
          }};
}
InputCase constantOf() {
  return floats("constant", [](std::size_t, std::mt19937_64&) { return 3.25; });
}

void verify(const Stage& encoder, ByteView original, ByteView decoded) {
  ASSERT_EQ(decoded.size(), original.size());
  const double bound = encoder.boundInfo()->absolute;
  if (encoder.elementTypes()[0] == DataType::FLOAT32) {
    expectWithin(fromBytes<float>(original), fromBytes<float>(decoded), bound);
  } else {
    expectWithin(fromBytes<double>(original), fromBytes<double>(decoded), bound);
  }
}

/// The hostile-input suite tries every bit of every stream: some inputs meet one config only.
InputCase onlyFor(const std::vector<std::string>& labels, InputCase input) {
  input.applies = [labels](const StageConfig& config, const std::vector<DataType>&) {
    return std::find(labels.begin(), labels.end(), config.label) != labels.end();
  };
  return input;
}

bool hasU16Codes(const std::vector<DataType>& types) {
  return types[1] == DataType::UINT16;
}

FZ_STAGE_CASE(
    LorenzoQuant,
    {.stage = "LorenzoQuant",
     .configs = {{"default"},
                 {"zigzag", {{"zigzag_codes", true}, {"error_bound", 1e-2}}},
                 {"tight", {{"error_bound", 1e-9}}},
                 {"loose", {{"error_bound", 10.0}, {"outlier_capacity", 0.0}}},
                 {"radius 1", {{"quant_radius", std::int64_t{1}}}},
                 {"radius 512", {{"quant_radius", std::int64_t{512}}}, nullptr, hasU16Codes},
                 {"noa", {{"error_bound_mode", std::string("NOA")}}},
                 {"rel", {{"error_bound_mode", std::string("REL")}, {"error_bound", 1e-4}}},
                 {"2d", {}, [](std::size_t n) { return splitDims(n, 2); }},
                 {"3d", {{"zigzag_codes", true}}, [](std::size_t n) { return splitDims(n, 3); }},
                 {"2d along x",
                  {{"axes", std::string("x")}},
                  [](std::size_t n) { return splitDims(n, 2); }},
                 {"3d along yz",
                  {{"axes", std::string("yz")}},
                  [](std::size_t n) { return splitDims(n, 3); }},
                 {"no axes", {{"axes", std::string()}}},
                 {"column",
                  {},
                  [](std::size_t n) {
                    return Dims{n == 0 ? 0u : 1u, n, 1};
                  }},
                 {"inferred x",
                  {},
                  [](std::size_t n) {
                    return Dims{0, splitDims(n, 2)[1], 1};
                  }}},
     .inputs = {smooth(), specials(), onlyFor({"default", "loose", "3d"}, noise()),
                onlyFor({"default", "2d"}, patterns()), onlyFor({"zigzag"}, halves()),
                onlyFor({"noa", "rel"}, constantOf()), onlyFor({"noa", "default"}, zeros())},
     .verify = verify,
     .extra_sizes = {67 * 45, 17 * 11 * 13, 300 * 40},
     .large_values = 270 * 40 * 9});

TEST(LorenzoQuant, EncodesTheExampleOfItsOwnDocument) {
  F32 stage(F32::Config(0.5, 4));
  const Encoded e = encode(stage, toBytes(std::vector<float>{0, 1, 100, std::nanf("")}));
  EXPECT_EQ(e.version, 2);
  EXPECT_EQ(e.streams[0], (Bytes{0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(e.streams[1], toBytes(std::vector<float>{99, -100, std::nanf("")}));
  EXPECT_EQ(fromBytes<std::uint32_t>(e.streams[2]), (std::vector<std::uint32_t>{2, 3, 3}));
}

TEST(LorenzoQuant, EncodesTheWorkedExampleButKeepsTheValueThatMissesTheBoundExactly) {
  F32 stage(F32::Config(0.1f, 512));
  const Encoded e = encode(stage, toBytes(std::vector<float>{0, .3f, .5f, .5f, .5f, 1, 1, 7000}));
  // 0.5 lies on a half: bin 3 gives 0.6000000238, too far from 0.5 by 2e-8.
  EXPECT_EQ(e.version, 2);
  EXPECT_EQ(fromBytes<std::uint32_t>(ByteView(e.config).subspan(8, 8)),
            (std::vector<std::uint32_t>{8, 1}));
  EXPECT_EQ(fromBytes<float>(e.streams[1]), (std::vector<float>{34995, .5f, .5f, .5f}));
  EXPECT_EQ(fromBytes<std::uint32_t>(e.streams[2]), (std::vector<std::uint32_t>{7, 2, 3, 4}));
  const auto decoded = fromBytes<float>(decode(1, e));
  EXPECT_EQ(decoded[2], .5f);
}

TEST(LorenzoQuant, ConfigHasTheLayoutOfTheFormat) {
  F32 stage;
  stage.setErrorBound(0.25);
  stage.setQuantRadius(256);
  stage.setZigzagCodes(true);
  stage.setDims(3, 2);
  const Encoded e = encode(stage, toBytes(std::vector<float>(6, 1.0f)));
  const Bytes expected = {0, 0, 0x80, 0x3e, 0,    1,    0, 0, 6, 0, 0, 0, 0, 0, 0,
                          0, 8, 1,    2,    0,    3,    0, 0, 0, 2, 0, 0, 0, 1, 0,
                          0, 0, 0,    0,    0x80, 0x3e, 0, 0, 0, 0, 1, 0, 0, 0};
  EXPECT_EQ(e.config, expected);
  EXPECT_EQ(e.version, 1);
  const auto copy = makeStage(1, e.config.data(), e.config.size());
  const auto& read = dynamic_cast<const F32&>(*copy);
  EXPECT_EQ(read.getQuantRadius(), 256);
  EXPECT_EQ(read.getErrorBound(), 0.25);
  EXPECT_TRUE(read.getZigzagCodes());
  EXPECT_EQ(read.ndim(), 2);
  EXPECT_EQ(read.getDims(), (Dims{3, 2, 1}));
}

TEST(LorenzoQuant, HalvesGoAwayFromZero) {
  F32 stage(F32::Config(0.5));
  const Encoded e = encode(stage, toBytes(std::vector<float>{0.5f, -0.5f, 1.5f, -2.5f}));
  EXPECT_EQ(fromBytes<float>(decode(1, e)), (std::vector<float>{1, -1, 2, -3}));
  EXPECT_EQ(fromBytes<std::int16_t>(e.streams[0]), (std::vector<std::int16_t>{1, -2, 3, -5}));
}

TEST(LorenzoQuant, NotANumberAndInfinityKeepTheirBitsAndHarmNoOtherValue) {
  std::vector<float> values(3000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 100);
  }
  const std::uint32_t payload = 0xffc12345u;
  std::memcpy(&values[5], &payload, 4);
  values[1500] = -std::numeric_limits<float>::infinity();
  values[1501] = 1e20f;
  F32 stage(F32::Config(0.1));
  const Encoded e = encode(stage, toBytes(values));
  EXPECT_EQ(e.version, 2);
  const auto decoded = fromBytes<float>(decode(1, e));
  EXPECT_EQ(fp::bits(decoded[5]), payload);
  expectWithin(values, decoded, 0.1);
  EXPECT_EQ(e.streams[2].size(), 4u * 3u);  // the leap to bin 0 and back is no range outlier
}

TEST(LorenzoQuant, BoundHoldsWhereBinsLeaveTheExactIntegers) {
  std::vector<float> values;
  std::vector<double> doubles;
  for (int i = 0; i < 5000; ++i) {
    doubles.push_back(1.0 + 1e-7 * i * i);
    values.push_back(static_cast<float>(doubles.back()));
  }
  F32 single(F32::Config(1e-9));
  expectWithin(values, fromBytes<float>(decode(1, encode(single, toBytes(values)))), 1e-9);
  F64 twice(F64::Config(1e-15));
  expectWithin(doubles, fromBytes<double>(decode(1, encode(twice, toBytes(doubles)))), 1e-15);
}

TEST(LorenzoQuant, BoundInUseIsAFloatNotAboveTheOneAskedFor) {
  F64 stage(F64::Config(0.1));
  EXPECT_EQ(stage.boundInfo()->requested, 0.1);
  encode(stage, toBytes(std::vector<double>{1, 2, 3}));
  EXPECT_LE(stage.boundInfo()->absolute, 0.1);
  EXPECT_EQ(static_cast<float>(stage.boundInfo()->absolute), std::nextafter(0.1f, 0.0f));
  EXPECT_EQ(stage.boundInfo()->mode, ErrorBoundMode::ABS);
}

TEST(LorenzoQuant, BoundsThatNoFloatCanDoubleOrHoldStillWork) {
  const std::vector<double> values = {0.0, 1e-300, -1e308, 1e308, 5.0};
  for (const double eb : {1e-60, 1e38, 1e300}) {
    F64 stage(F64::Config{eb});
    expectWithin(values, fromBytes<double>(decode(1, encode(stage, toBytes(values)))), eb);
  }
}

TEST(LorenzoQuant, RangeIsThatOfTheFiniteValues) {
  const std::vector<float> values = {std::nanf(""), 1, 5, -3, INFINITY, 2};
  F32 stage(F32::Config(0.125));
  stage.setErrorBoundMode(ErrorBoundMode::NOA);
  const Encoded noa = encode(stage, toBytes(values));
  EXPECT_EQ(stage.boundInfo()->absolute, 0.125 * 8);
  stage.setErrorBoundMode(ErrorBoundMode::REL);
  encode(stage, toBytes(values));
  EXPECT_EQ(stage.boundInfo()->absolute, 0.125 * 5);
  stage.setErrorBoundMode(ErrorBoundMode::NOA);
  stage.setValueBase(8.0);
  EXPECT_EQ(encode(stage, toBytes(values)), noa);
  stage.setValueBase(0.0);
  encode(stage, toBytes(std::vector<float>(7, 4.0f)));
  EXPECT_EQ(stage.boundInfo()->absolute, 0.125);  // no range: the bound itself
}

TEST(LorenzoQuant, OutliersAreInIndexOrderInEveryDimensionality) {
  std::mt19937_64 rng(4);
  std::vector<float> values(60 * 50 * 12);
  for (float& v : values) {
    v = static_cast<float>(rng() % 100000);
  }
  for (const Dims& dims : {Dims{0, 1, 1}, Dims{600, 60, 1}, Dims{60, 50, 12}}) {
    F32 stage(F32::Config(0.5, 1000));
    stage.setDims(dims);
    const Encoded e = encode(stage, toBytes(values));
    const auto indices = fromBytes<std::uint32_t>(e.streams[2]);
    ASSERT_GT(indices.size(), values.size() / 2);  // far above the capacity of a fifth
    EXPECT_TRUE(std::is_sorted(indices.begin(), indices.end()));
    expectWithin(values, fromBytes<float>(decode(1, e)), 0.5);
  }
}

TEST(LorenzoQuant, RadiusFitsTheCodes) {
  using U8 = LorenzoQuantStage<float, std::uint8_t>;
  EXPECT_EQ(F32().getQuantRadius(), 32768);
  EXPECT_EQ(U8().getQuantRadius(), 128);
  EXPECT_EQ((LorenzoQuantStage<double, std::uint32_t>().getQuantRadius()), 32768);
  U8 stage;
  EXPECT_THROW(stage.setQuantRadius(129), std::invalid_argument);
  EXPECT_THROW(stage.setQuantRadius(32768), std::invalid_argument);
  EXPECT_THROW(stage.setQuantRadius(0), std::invalid_argument);
  EXPECT_THROW(F32().setQuantRadius(65536), std::invalid_argument);
  EXPECT_THROW(U8(U8::Config(1e-3, 32768)), std::invalid_argument);
}

TEST(LorenzoQuant, SettingsOutsideTheirRangeAreRefused) {
  F32 stage;
  for (const double eb : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    EXPECT_THROW(stage.setErrorBound(eb), std::invalid_argument);
  }
  EXPECT_THROW(stage.setOutlierCapacity(1.5), std::invalid_argument);
  EXPECT_THROW(stage.setValueBase(-1.0), std::invalid_argument);
  EXPECT_EQ(F32::Config().error_bound, 1e-3);
  EXPECT_EQ(F32::Config().outlier_capacity, 0.2);
}

TEST(LorenzoQuant, OwnDimsWinOverThoseOfThePipeline) {
  F32 stage;
  stage.setPipelineDims({64, 64, 1});
  EXPECT_EQ(stage.ndim(), 2);
  stage.setDims(16, 16, 16);
  stage.setPipelineDims({64, 64, 1});
  EXPECT_EQ(stage.getDims(), (Dims{16, 16, 16}));
  F32 configured(F32::Config(1e-3, 512, 0.1, {10, 4, 1}));
  configured.setPipelineDims({40, 1, 1});
  EXPECT_EQ(configured.getDims(), (Dims{10, 4, 1}));
}

TEST(LorenzoQuant, DimsThatDoNotHoldTheInputAreRefusedWithBothNumbers) {
  F32 stage;
  for (const Dims& dims : {Dims{8, 4, 1}, Dims{0, 7, 1}}) {
    stage.setDims(dims);
    try {
      encode(stage, Bytes(4 * 33));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadSize);
      EXPECT_NE(std::string(error.what()).find("33"), std::string::npos) << error.what();
    }
  }
}

TEST(LorenzoQuant, FitsIntoGraphsInEveryModeAndDirection) {
  F32 stage;
  for (const ErrorBoundMode mode : {ErrorBoundMode::ABS, ErrorBoundMode::NOA}) {
    stage.setErrorBoundMode(mode);
    for (const bool inverse : {false, true}) {
      stage.setInverse(inverse);
      EXPECT_TRUE(stage.isGraphCompatible());
    }
  }
}

template <class T, class TCode, class Team>
void expectCodecBytes(const std::vector<T>& values, const Dims& dims, Team team) {
  LorenzoQuantStage<T, TCode> stage;
  stage.setErrorBound(0.02);
  stage.setQuantRadius(100);
  stage.setDims(dims);
  const Encoded e = encode(stage, toBytes(values));
  const Reference<T, TCode> reference = encodeByTiles<T, TCode>(
      values, dims, static_cast<float>(stage.boundInfo()->absolute), 100, team);
  EXPECT_EQ(fromBytes<TCode>(e.streams[0]), reference.codes);
  EXPECT_EQ(e.streams[1], toBytes(reference.list_values));
  EXPECT_EQ(fromBytes<std::uint32_t>(e.streams[2]), reference.list_indices);
  EXPECT_EQ(decode(1, e), toBytes(decodeByTiles(reference, dims, team)));
}

TEST(LorenzoQuant, StageGivesTheBytesOfTheCodecTextInAnyOrder) {
  std::mt19937_64 rng(8);
  for (const Dims& dims : {Dims{5000, 1, 1}, Dims{1100, 70, 1}, Dims{1, 2100, 1}, Dims{37, 19, 21},
                           Dims{3, 1, 1100}}) {
    std::vector<float> singles(dims[0] * dims[1] * dims[2]);
    std::vector<double> doubles(singles.size());
    for (std::size_t i = 0; i < singles.size(); ++i) {
      doubles[i] = std::sin(0.001 * static_cast<double>(i)) * 5 +
                   static_cast<double>(rng() % 1000) * 1e-3 + (rng() % 97 == 0 ? 1e9 : 0.0);
      singles[i] = static_cast<float>(doubles[i]);
    }
    expectCodecBytes<float, std::uint16_t>(singles, dims, SerialTeam{});
    expectCodecBytes<float, std::uint8_t>(singles, dims, ShuffledTeam{&rng});
    expectCodecBytes<double, std::uint16_t>(doubles, dims, ShuffledTeam{&rng});
    expectCodecBytes<double, std::uint32_t>(doubles, dims, SerialTeam{});
  }
}

}  // namespace
}  // namespace fz::test
