// Settings, forbidden combinations, and the policies of linear mode.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "fz/error.h"
#include "quantizers/quantizer/codec.h"
#include "quantizers/quantizer/quantizer.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

using Quantizer32 = QuantizerStage<float, std::uint32_t>;
using Quantizer16 = QuantizerStage<float, std::uint16_t>;
using QConfig = quantizer::QuantizerBase::Config;
constexpr float kInf = std::numeric_limits<float>::infinity();

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

TEST(Quantizer, SettersRefuseWhatIsOutOfRange) {
  Quantizer16 stage;
  for (const double eb : {0.0, -1.0, std::nan(""), static_cast<double>(kInf)}) {
    EXPECT_THROW(stage.setErrorBound(eb), std::invalid_argument) << eb;
  }
  EXPECT_THROW(stage.setQuantRadius(0), std::invalid_argument);
  EXPECT_THROW(stage.setQuantRadius(32769), std::invalid_argument);
  EXPECT_NO_THROW(stage.setQuantRadius(32768));
  EXPECT_NO_THROW(Quantizer32().setQuantRadius(0x7fffffff));
  EXPECT_THROW(stage.setOutlierCapacity(1.5), std::invalid_argument);
  EXPECT_THROW(stage.setOutlierThreshold(-1.0), std::invalid_argument);
  EXPECT_THROW(stage.setValueBase(-1.0), std::invalid_argument);
  EXPECT_THROW(stage.setErrorBoundMode(static_cast<ErrorBoundMode>(7)), std::invalid_argument);
  EXPECT_EQ(stage.getErrorBound(), 1e-4);
}

TEST(Quantizer, ConfigConstructorsSetEverything) {
  Quantizer16 stage({1e-2f, ErrorBoundMode::NOA, 100, 0.25f});
  EXPECT_EQ(stage.getErrorBound(), static_cast<double>(1e-2f));
  EXPECT_EQ(stage.getErrorBoundMode(), ErrorBoundMode::NOA);
  EXPECT_EQ(stage.getQuantRadius(), 100);
  EXPECT_EQ(stage.getOutlierCapacity(), 0.25);
  Quantizer16::Config config;
  config.zigzag_codes = true;
  config.outlier_threshold = 5.0;
  const Quantizer16 other(config);
  EXPECT_TRUE(other.getZigzagCodes());
  EXPECT_EQ(other.getOutlierThreshold(), 5.0);
}

TEST(Quantizer, ForbiddenCombinationsThrowAtTheFirstCompress) {
  const std::vector<float> values = {1.f};
  const auto refused = [&](auto& stage, const char* word) {
    const std::string text = errorText(stage, values, ErrorCode::kInvalidArgument);
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  Quantizer32 no_zigzag;
  no_zigzag.setInplaceOutliers(true);
  refused(no_zigzag, "zigzag");
  Quantizer16 narrow;
  narrow.setZigzagCodes(true);
  narrow.setInplaceOutliers(true);
  refused(narrow, "as wide");
  Quantizer32 rel({0.1, ErrorBoundMode::REL});
  rel.setLinearMode(true);
  refused(rel, "REL");
  Quantizer32 linear;
  linear.setLinearMode(true);
  linear.setZigzagCodes(true);
  refused(linear, "zigzag");
  linear.setZigzagCodes(false);
  linear.setInplaceOutliers(true);
  refused(linear, "in-place");
  Quantizer32 rel_inplace({0.1, ErrorBoundMode::REL});
  rel_inplace.setZigzagCodes(true);
  rel_inplace.setInplaceOutliers(true);
  refused(rel_inplace, "REL");
}

TEST(Quantizer, InputMustBeWholeValues) {
  Quantizer32 stage;
  EXPECT_THROW(encode(stage, Bytes(7)), Error);
}

TEST(Quantizer, PortsAreNamedAndTyped) {
  Quantizer16 stage;
  EXPECT_EQ(stage.getOutputNames(),
            (std::vector<std::string>{"codes", "outlier_vals", "outlier_idxs"}));
  EXPECT_EQ(stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::UINT16));
  EXPECT_EQ(stage.getOutputDataType(1), static_cast<std::uint8_t>(DataType::FLOAT32));
  EXPECT_EQ(stage.getOutputDataType(2), static_cast<std::uint8_t>(DataType::UINT32));
  EXPECT_TRUE(stage.isGraphCompatible());
  stage.setLinearMode(true);
  EXPECT_EQ(stage.getNumOutputs(), 1u);
  EXPECT_EQ(stage.getOutputDataType(0), static_cast<std::uint8_t>(DataType::INT16));
  stage.setInverse(true);
  EXPECT_EQ(stage.getOutputNames(), std::vector<std::string>{"reconstructed"});
}

TEST(Quantizer, LinearModeIsRoundedDivision) {
  Quantizer32 stage(QConfig(0.5));
  stage.setLinearMode(true);
  const Encoded e = encode(stage, toBytes(std::vector<float>{0.f, 1.4f, -2.6f, 1e6f, 2.5f}));
  EXPECT_EQ(e.streams[0], toBytes(std::vector<std::int32_t>{0, 1, -3, 1000000, 2}));
  EXPECT_EQ(e.config[33], 1);
}

TEST(Quantizer, LinearUsesTheWholeRangeOfTheCode) {
  QuantizerStage<double, std::uint16_t> stage(QConfig(0.5));
  stage.setLinearMode(true);
  const Encoded e = encode(stage, toBytes(std::vector<double>{-32768.0, 32767.0}));
  EXPECT_EQ(e.streams[0], toBytes(std::vector<std::int16_t>{-32768, 32767}));
  Quantizer16 floats(QConfig(0.5));
  floats.setLinearMode(true);
  EXPECT_EQ(encode(floats, toBytes(std::vector<float>{-32768.f, 32767.f})).streams, e.streams);
  EXPECT_THROW(encode(stage, toBytes(std::vector<double>{32768.0})), Error);
  EXPECT_THROW(encode(stage, toBytes(std::vector<double>{-32769.0})), Error);
}

TEST(Quantizer, LinearThrowNamesCountIndexValueAndBound) {
  Quantizer16 stage(QConfig(0.25));
  stage.setLinearMode(true);
  const std::string text =
      errorText(stage, std::vector<float>{1.f, 2.f, 1e9f, NAN}, ErrorCode::kBoundViolation);
  EXPECT_NE(text.find("2 of 4"), std::string::npos) << text;
  EXPECT_NE(text.find("value 2"), std::string::npos) << text;
  EXPECT_NE(text.find("1000000000"), std::string::npos) << text;
  EXPECT_NE(text.find("0.25"), std::string::npos) << text;
  EXPECT_NO_THROW(encode(stage, toBytes(std::vector<float>{1.f})));
}

TEST(Quantizer, LinearWrapKeepsTheLowBits) {
  Quantizer16 stage(QConfig(0.5));
  stage.setLinearMode(true);
  stage.setLinearPolicy(LinearPolicy::Wrap);
  const std::vector<float> values = {65537.f, -65537.f, 40000.f, kInf, NAN, 1e30f, 0x1p51f};
  const Encoded e = encode(stage, toBytes(values));
  EXPECT_EQ(e.streams[0], toBytes(std::vector<std::int16_t>{
                              1, -1, static_cast<std::int16_t>(40000 - 65536), 0, 0, 0, 0}));
}

TEST(Quantizer, LinearWrapPromisesNoBound) {
  Quantizer16 stage(QConfig(0.5));
  stage.setLinearMode(true);
  EXPECT_TRUE(stage.boundInfo().has_value());
  stage.setLinearPolicy(LinearPolicy::Wrap);
  EXPECT_FALSE(stage.boundInfo().has_value());
  stage.setLinearMode(false);
  EXPECT_TRUE(stage.boundInfo().has_value()) << "the policy is one of linear mode";
}

TEST(Quantizer, LinearWrapEqualsThrowWhereThrowSucceeds) {
  std::mt19937_64 rng(1);
  std::vector<float> values(5000);
  for (float& v : values) {
    v = static_cast<float>(rng() % 100'000) * 0.001f;
  }
  Quantizer32 strict(QConfig(0x1p-6));
  strict.setLinearMode(true);
  Quantizer32 wrap(QConfig(0x1p-6));
  wrap.setLinearMode(true);
  wrap.setLinearPolicy(LinearPolicy::Wrap);
  EXPECT_EQ(encode(strict, toBytes(values)).streams, encode(wrap, toBytes(values)).streams);
}

// Floats 2^-10 apart: with 0.1001 = 102.5 of those, rounding the product can cost the bound.
std::vector<float> hardValues() {
  std::mt19937_64 rng(2);
  std::vector<float> values(100'000);
  for (float& v : values) {
    v = 16000.0f + static_cast<float>(static_cast<double>(rng() >> 11) * 0x1p-53 * 400.0);
  }
  return values;
}

TEST(Quantizer, GuaranteeKeepsTheBoundWhereThePlainFormulaMissesIt) {
  constexpr double kBound = 0.1001;
  const std::vector<float> values = hardValues();
  Quantizer32 stage;
  stage.setErrorBound(kBound);
  stage.setLinearMode(true);
  EXPECT_THROW(encode(stage, toBytes(values)), Error);
  stage.setLinearPolicy(LinearPolicy::Guarantee);
  const auto decoded = fromBytes<float>(decode(14, encode(stage, toBytes(values))));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(std::abs(static_cast<double>(values[i]) - static_cast<double>(decoded[i])), kBound);
  }
  EXPECT_EQ(stage.getAbsErrorBound(), kBound);
  EXPECT_LT(stage.getBoundInUse(), kBound);
}

TEST(Quantizer, GuaranteeFallsBackToAPowerOfTwoStep) {
  // The bound is below the spacing of the floats: only exact products can meet it.
  const std::vector<float> values = hardValues();
  Quantizer32 stage(QConfig(3e-4));
  stage.setLinearMode(true);
  stage.setLinearPolicy(LinearPolicy::Guarantee);
  const auto decoded = fromBytes<float>(decode(14, encode(stage, toBytes(values))));
  EXPECT_EQ(decoded, values);
  EXPECT_EQ(stage.getBoundInUse(), 0x1p-12);
}

TEST(Quantizer, GuaranteeThrowsAtOnceForNaNAndForOverflow) {
  Quantizer16 stage(QConfig(0.1));
  stage.setLinearMode(true);
  stage.setLinearPolicy(LinearPolicy::Guarantee);
  errorText(stage, std::vector<float>{1.f, NAN}, ErrorCode::kBoundViolation);
  EXPECT_FALSE(stage.wantsRerun());
  errorText(stage, std::vector<float>{1e9f}, ErrorCode::kBoundViolation);
  EXPECT_NO_THROW(encode(stage, toBytes(std::vector<float>{1.f})));
  const double first_rung = 0.1 * (1 - 0x1p-8);
  EXPECT_EQ(stage.getBoundInUse(), static_cast<double>(quantizer::roundDownToFloat(first_rung)));
}

TEST(Quantizer, LinearModeInAConfigurationTurnsTheZigzagDefaultOff) {
  const StageDescriptor& d = quantizer::descriptor();
  const auto stage = d.make(std::vector<DataType>{DataType::FLOAT32, DataType::UINT32});
  setParam(*stage, "zigzag_codes", *d.params().find("zigzag_codes")->config_default);
  EXPECT_TRUE(std::get<bool>(getParam(*stage, "zigzag_codes")));
  d.adjust_config_defaults(
      *stage, [](std::string_view key) { return key == "linear_mode"; },
      [](std::string_view) { return ParamValue(true); });
  EXPECT_FALSE(std::get<bool>(getParam(*stage, "zigzag_codes")));
}

/// An encoded field whose config can be spoiled.
Encoded smallStream(Stage& stage) {
  const std::vector<float> values = {0.f, 1.f, -2.f, 0.5f};
  return encode(stage, toBytes(values));
}

bool isCorrupt(std::uint16_t id, const Encoded& encoded) {
  try {
    decode(id, encoded);
  } catch (const Error& e) {
    return e.code() == ErrorCode::kCorrupt;
  }
  return false;
}

// A step that is infinite gives NaN for code 0, whose bits a CPU and a GPU choose differently.
TEST(Quantizer, AStoredBoundWhoseStepIsInfiniteIsRefused) {
  QuantizerStage<float, std::uint32_t> stage;
  stage.setErrorBound(0.1f);
  Encoded encoded = smallStream(stage);
  constexpr std::size_t kBoundOffset = 56;
  for (const double bound :
       {1e39, 1.8e38, 1e300, -1.0, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    std::memcpy(encoded.config.data() + kBoundOffset, &bound, sizeof(bound));
    EXPECT_TRUE(isCorrupt(stage.getStageTypeId(), encoded)) << bound;
  }
  const double largest = 0x1p125;
  std::memcpy(encoded.config.data() + kBoundOffset, &largest, sizeof(largest));
  EXPECT_NO_THROW(decode(stage.getStageTypeId(), encoded));
}

TEST(Quantizer, AConfigThatEndsInsideItsDoublesIsRefused) {
  QuantizerStage<float, std::uint32_t> stage;
  stage.setErrorBound(0.1f);
  const Encoded whole = smallStream(stage);
  ASSERT_EQ(whole.config.size(), 72u);
  for (std::size_t n = 57; n < 72; ++n) {
    Encoded cut = whole;
    cut.config.resize(n);
    EXPECT_TRUE(isCorrupt(stage.getStageTypeId(), cut)) << n;
  }
  for (const std::size_t n : {28u, 36u, 48u, 52u}) {
    Encoded older = whole;
    older.config.resize(n);
    EXPECT_NO_THROW(decode(stage.getStageTypeId(), older)) << n;
  }
}

}  // namespace
}  // namespace fz::test
