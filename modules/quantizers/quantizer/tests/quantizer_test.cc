#include "quantizers/quantizer/quantizer.h"

#include <cmath>
#include <gtest/gtest.h>

#include "fz/byte_io.h"
#include "fz/error.h"
#include "stage/stage_factory.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

using QConfig = quantizer::QuantizerBase::Config;
constexpr float kInf = std::numeric_limits<float>::infinity();
const std::vector<float> kExample = {0.f, .3f, -.3f, .5f, 1.f, -1.1f, 7000.f, 2.04f};

template <class Stage, class T>
std::string errorText(Stage& stage, const std::vector<T>& values, ErrorCode code) {
  try {
    encode(stage, toBytes(values));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

template <class Stage, class T>
std::vector<T> roundTrip(Stage& stage, const std::vector<T>& values) {
  return fromBytes<T>(decode(14, encode(stage, toBytes(values))));
}

TEST(Quantizer, WorkedExampleWithTheCheck) {
  QuantizerStage<float, std::uint16_t> stage;
  stage.setErrorBound(0.1f);
  const Encoded e = encode(stage, toBytes(kExample));
  EXPECT_EQ(e.streams[0], Bytes({0, 0, 2, 0, 0xfe, 0xff, 2, 0, 5, 0, 0, 0, 0, 0, 0x0a, 0}));
  EXPECT_EQ(e.streams[1], toBytes(std::vector<float>{-1.1f, 7000.f}));
  EXPECT_EQ(e.streams[2], toBytes(std::vector<std::uint32_t>{5, 6}));
  EXPECT_EQ(stage.getOutlierCount(), 2u);
}

TEST(Quantizer, WorkedExampleWithZigzag) {
  QuantizerStage<float, std::uint16_t> stage;
  stage.setErrorBound(0.1f);
  stage.setZigzagCodes(true);
  const Encoded e = encode(stage, toBytes(kExample));
  EXPECT_EQ(e.streams[0], Bytes({0, 0, 4, 0, 3, 0, 4, 0, 0x0a, 0, 0, 0, 0, 0, 0x14, 0}));
}

TEST(Quantizer, SignedCodesHaveTheSameBits) {
  QuantizerStage<float, std::int32_t> signed_stage(QConfig(0.1f));
  QuantizerStage<float, std::uint32_t> unsigned_stage(QConfig(0.1f));
  const Encoded a = encode(signed_stage, toBytes(kExample));
  const Encoded b = encode(unsigned_stage, toBytes(kExample));
  EXPECT_EQ(a.streams, b.streams);
  EXPECT_EQ(signed_stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::INT32));
}

TEST(Quantizer, WorkedExampleOfRel) {
  QuantizerStage<float, std::uint32_t> stage({0.01, ErrorBoundMode::REL});
  const std::vector<float> values = {1.f, 2.f, -3.5f, .001f, -1e-20f, 1e30f, 0.f};
  const Encoded e = encode(stage, toBytes(values));
  EXPECT_EQ(e.streams[0], toBytes(std::vector<std::uint32_t>{1, 141, 254, 1391, 9260, 13885, 0}));
  EXPECT_EQ(e.streams[2], toBytes(std::vector<std::uint32_t>{6}));
  EXPECT_EQ(e.version, 2);
}

TEST(Quantizer, HalvesRoundToEven) {
  QuantizerStage<float, std::uint16_t> stage(QConfig(0.5f));
  const Encoded e = encode(stage, toBytes(std::vector<float>{.5f, 1.5f, 2.5f, -.5f, -1.5f}));
  EXPECT_EQ(e.streams[0], toBytes(std::vector<std::int16_t>{0, 2, 2, 0, -2}));
}

TEST(Quantizer, OldSystemsCodesDecodeToItsValues) {
  QuantizerStage<float, std::uint16_t> stage(QConfig(0.1f));
  Encoded e = encode(stage, toBytes(kExample));
  e.streams[0][10] = 0xfa;  // -6, which the existing system wrote for -1.1
  e.streams[0][11] = 0xff;
  e.streams[1] = toBytes(std::vector<float>{7000.f});
  e.streams[2] = toBytes(std::vector<std::uint32_t>{6});
  e.config[20] = 1;
  e.config.resize(28);
  const auto values = fromBytes<float>(decode(14, e));
  EXPECT_EQ(values[5], -6.0f * 0.2f);
  EXPECT_EQ(values[6], 7000.f);
}

TEST(Quantizer, ReadsEveryLengthOfConfig) {
  QuantizerStage<double, std::uint32_t> stage(QConfig(0.1f));
  const std::vector<double> values = {1.0, 2.5, -7.0};
  const Encoded good = encode(stage, toBytes(values));
  for (const std::size_t n_bytes : {28u, 36u, 48u, 52u, 72u}) {
    Encoded e = good;
    e.config.resize(n_bytes);
    EXPECT_EQ(decode(14, e), decode(14, good)) << n_bytes;
  }
  for (const std::size_t n_bytes : {0u, 27u}) {
    Encoded e = good;
    e.config.resize(n_bytes);
    EXPECT_THROW(decode(14, e), Error) << n_bytes;
  }
}

TEST(Quantizer, ConfigHasTheBytesOfItsLayout) {
  QuantizerStage<float, std::uint16_t> stage(QConfig(0.1));  // no f32 has the value 0.1
  stage.setZigzagCodes(true);
  const Encoded e = encode(stage, toBytes(kExample));
  ByteReader in(e.config);
  const float in_use = std::nextafter(0.1f, 0.0f);
  EXPECT_EQ(e.config.size(), 72u);
  EXPECT_EQ(in.f32(), in_use);
  EXPECT_EQ(in.f32(), 0.1f);
  EXPECT_EQ(in.f32(), 0.0f);
  EXPECT_EQ(in.u32(), 32768u);
  EXPECT_EQ(in.u32(), 8u);
  EXPECT_EQ(in.u32(), stage.getOutlierCount());
  EXPECT_EQ(in.u8(), 8);
  EXPECT_EQ(in.u8(), 1);
  EXPECT_EQ(in.u8(), 0);
  EXPECT_EQ(in.u8(), 1);
  EXPECT_EQ(in.f32(), kInf);
  in.skip(56 - 32);
  EXPECT_EQ(in.f64(), static_cast<double>(in_use));
  EXPECT_EQ(in.f64(), 0.0);
}

TEST(Quantizer, DoubleBoundIsKeptExactlyInTheConfig) {
  QuantizerStage<double, std::uint32_t> stage(QConfig(0.1));
  const Encoded e = encode(stage, toBytes(std::vector<double>{0.35}));
  EXPECT_EQ(loadLe<double>(e.config.data() + 56), 0.1);
  EXPECT_EQ(stage.getBoundInUse(), 0.1);
}

TEST(Quantizer, RelKeepsTheDoubleBoundInTheConfig) {
  QuantizerStage<float, std::uint32_t> stage({0.01, ErrorBoundMode::REL});
  const Encoded e = encode(stage, toBytes(std::vector<float>{1.0f}));
  EXPECT_EQ(loadLe<float>(e.config.data()), 0.0f);
  EXPECT_EQ(loadLe<double>(e.config.data() + 56), 0.01);
}

TEST(Quantizer, FloatsAreCheckedAgainstTheDoubleBound) {
  // 0.001f is above 0.001: a value whose error is exactly 0.001f must not pass as within 0.001.
  QuantizerStage<float, std::uint16_t> stage(QConfig(0.001));
  EXPECT_LT(stage.getErrorBound(), static_cast<double>(0.001f));
  const auto y = roundTrip(stage, std::vector<float>{0.001f});
  EXPECT_LE(std::abs(static_cast<double>(y[0]) - static_cast<double>(0.001f)), 0.001);
}

TEST(Quantizer, ReadsOldFourStreamArchives) {
  QuantizerStage<float, std::uint16_t> stage(QConfig(0.1f));
  Encoded e = encode(stage, toBytes(kExample));
  e.streams[1].resize(40, 0xAB);  // whole reserves
  e.streams[2].resize(40, 0xCD);
  e.streams.push_back({2, 0, 0, 0});
  const auto values = fromBytes<float>(decode(14, e));
  EXPECT_EQ(values[5], -1.1f);
  EXPECT_EQ(values[6], 7000.f);
  e.streams[2].resize(4);
  EXPECT_THROW(decode(14, e), Error);
}

TEST(Quantizer, OutlierCountMustMatchTheStreams) {
  QuantizerStage<float, std::uint16_t> stage(QConfig(0.1f));
  Encoded e = encode(stage, toBytes(kExample));
  e.config[20] = 1;
  EXPECT_THROW(decode(14, e), Error);
}

TEST(Quantizer, IndexOutsideIsCorruptAndTheLastOfEqualIndicesWins) {
  QuantizerStage<float, std::uint16_t> stage(QConfig(0.1f));
  Encoded e = encode(stage, toBytes(kExample));
  e.streams[2] = toBytes(std::vector<std::uint32_t>{6, 6});
  EXPECT_EQ(fromBytes<float>(decode(14, e))[6], 7000.f);
  e.streams[2] = toBytes(std::vector<std::uint32_t>{6, 2});
  const std::vector<float> first = fromBytes<float>(decode(14, e));
  e.streams[2] = toBytes(std::vector<std::uint32_t>{2, 6});
  const std::vector<float> second = fromBytes<float>(decode(14, e));
  EXPECT_EQ(first[2], second[6]);
  EXPECT_EQ(first[6], second[2]);
  EXPECT_EQ(second[6], 7000.f);
  e.streams[2] = toBytes(std::vector<std::uint32_t>{5, 8});
  try {
    decode(14, e);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("index 8 of 8"), std::string::npos) << error.what();
  }
}

TEST(Quantizer, MoreOutliersThanReservedAreAllKept) {
  QuantizerStage<float, std::uint16_t> stage(QConfig(1e-6f));
  stage.setOutlierCapacity(0.01);
  std::vector<float> values(10'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 1000.0f + static_cast<float>(i);
  }
  EXPECT_EQ(roundTrip(stage, values), values);
  EXPECT_EQ(stage.getOutlierCount(), values.size());
  EXPECT_EQ(stage.getActualOutputSizesByName().at("outlier_idxs") / 4, values.size());
}

TEST(Quantizer, NoaTakesTheRangeOfTheFiniteValues) {
  QuantizerStage<float, std::uint16_t> stage({0.01, ErrorBoundMode::NOA});
  encode(stage, toBytes(std::vector<float>{NAN, 100.f, kInf, 150.f, 200.f, -kInf}));
  EXPECT_EQ(stage.getAbsErrorBound(), 1.0);
  EXPECT_EQ(stage.boundInfo()->mode, ErrorBoundMode::NOA);
  EXPECT_EQ(stage.boundInfo()->requested, 0.01);
  EXPECT_EQ(stage.boundInfo()->absolute, 1.0);
}

TEST(Quantizer, NoaWithoutARangeUsesTheBoundAsItIs) {
  for (const float value : {5.0f, NAN}) {
    QuantizerStage<float, std::uint16_t> stage({0.01, ErrorBoundMode::NOA});
    encode(stage, toBytes(std::vector<float>(10, value)));
    EXPECT_EQ(stage.getAbsErrorBound(), 0.01);
  }
}

TEST(Quantizer, ValueBaseReplacesTheScan) {
  QuantizerStage<float, std::uint16_t> stage({0.01, ErrorBoundMode::NOA});
  stage.setValueBase(50.0f);
  const Encoded e = encode(stage, toBytes(std::vector<float>{1.f, 2.f}));
  EXPECT_EQ(stage.getAbsErrorBound(), 0.5);
  EXPECT_EQ(loadLe<float>(e.config.data() + 8), 50.0f);
  EXPECT_EQ(loadLe<double>(e.config.data() + 64), 50.0);
}

TEST(Quantizer, ThresholdForcesOutliersInEveryMode) {
  const std::vector<float> values = {1.f, -2.f, 3.f, -4.f};
  for (const auto mode : {ErrorBoundMode::ABS, ErrorBoundMode::NOA, ErrorBoundMode::REL}) {
    QuantizerStage<float, std::uint32_t> stage({0.01, mode});
    stage.setOutlierThreshold(3.0f);
    const Encoded e = encode(stage, toBytes(values));
    EXPECT_EQ(e.streams[2], toBytes(std::vector<std::uint32_t>{2, 3}));
    EXPECT_EQ(loadLe<float>(e.config.data() + 28), 3.0f);
  }
  QuantizerStage<float, std::uint32_t> none(QConfig(0.01));
  encode(none, toBytes(values));
  EXPECT_EQ(none.getOutlierCount(), 0u);
}

TEST(Quantizer, RelStoresSpecialsBitExactAndIgnoresZigzag) {
  std::vector<float> values = {0.f, -0.f, 1e-40f, kInf, -kInf, NAN, 1.5f, -1.5f};
  QuantizerStage<float, std::uint32_t> plain({0.01, ErrorBoundMode::REL});
  QuantizerStage<float, std::uint32_t> zigzag({0.01, ErrorBoundMode::REL});
  zigzag.setZigzagCodes(true);
  const Encoded e = encode(plain, toBytes(values));
  EXPECT_EQ(plain.getOutlierCount(), 6u);
  EXPECT_EQ(e.streams, encode(zigzag, toBytes(values)).streams);
  const Bytes decoded = decode(14, e);
  EXPECT_EQ(Bytes(decoded.begin(), decoded.begin() + 24),
            toBytes(std::vector<float>(values.begin(), values.begin() + 6)));
  EXPECT_LT(fromBytes<float>(decoded)[7], 0.0f);
}

TEST(Quantizer, RelVersionOneStreamsDecode) {
  // 0.01f: the existing system's L is 0.028710559 and bin 35 means 2^(35 L).
  QuantizerStage<float, std::uint32_t> stage({0.01f, ErrorBoundMode::REL});
  Encoded e = encode(stage, toBytes(std::vector<float>{1.f, 2.f, -3.5f, 1e30f}));
  e.version = 1;
  e.config.resize(36);
  const auto values = fromBytes<float>(decode(14, e));
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_NEAR(values[1], std::exp2(35 * 0.028710559f), 1e-6);
  EXPECT_NEAR(values[2], -std::exp2(63 * 0.028710559f), 1e-6);
  EXPECT_NEAR(values[3] / 1e30f, 1.0f, 0.011f);
  e.version = 3;
  EXPECT_THROW(decode(14, e), Error);
}

TEST(Quantizer, InplaceKeepsOutliersAsTheirBits) {
  QuantizerStage<float, std::uint32_t> stage(QConfig(0.1f));
  stage.setZigzagCodes(true);
  stage.setInplaceOutliers(true);
  EXPECT_EQ(stage.getOutputNames(), std::vector<std::string>{"codes"});
  const std::vector<float> values = {0.3f, 7000.f, -7000.f, kInf};
  const Encoded e = encode(stage, toBytes(values));
  ASSERT_EQ(e.streams.size(), 1u);
  EXPECT_EQ(fromBytes<std::uint32_t>(e.streams[0]),
            (std::vector<std::uint32_t>{4, 0x45dac000, 0xc5dac000, 0x7f800000}));
  EXPECT_EQ(e.config[32], 1);
  const auto decoded = fromBytes<float>(decode(14, e));
  EXPECT_EQ(decoded[1], 7000.f);
  EXPECT_EQ(decoded[3], kInf);
  stage.setOutlierThreshold(0.0);  // everything
  EXPECT_EQ(roundTrip(stage, std::vector<float>{1.f, 2.f}), (std::vector<float>{1.f, 2.f}));
}

TEST(Quantizer, InplaceRefusesAValueThatLooksLikeACode) {
  QuantizerStage<float, std::uint32_t> stage(QConfig(0.1f));
  stage.setZigzagCodes(true);
  stage.setInplaceOutliers(true);
  stage.setOutlierThreshold(0.0);
  const std::string text =
      errorText(stage, std::vector<float>{1.f, 1e-43f}, ErrorCode::kBoundViolation);
  EXPECT_NE(text.find("1 of 2"), std::string::npos) << text;
  EXPECT_NE(text.find("value 1"), std::string::npos) << text;
}

}  // namespace
}  // namespace fz::test
