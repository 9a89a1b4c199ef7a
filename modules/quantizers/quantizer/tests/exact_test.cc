// Exactness: every bit pattern within the bound, the codec text against the tuned loops, and the
// portable logarithm.
#include <bit>
#include <cmath>
#include <gtest/gtest.h>

#include "quantizers/quantizer/codec.h"
#include "quantizers/quantizer/codec_rel.h"
#include "quantizers/quantizer/quantizer.h"
#include "shared/portable_log.h"
#include "shared/team.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

using quantizer::BinSettings;
using quantizer::CodeForm;
using quantizer::RelSettings;
using Wide = __float128;

template <class T>
std::vector<T> randomBitPatterns(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<T> values(n);
  for (T& v : values) {
    v = std::bit_cast<T>(static_cast<quantizer::BitsOf<T>>(rng()));
  }
  return values;
}

/// Values around +-scale, so that many get codes.
template <class T>
std::vector<T> nearbyValues(std::size_t n, double scale, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>((static_cast<double>(rng() >> 11) * 0x1p-52 - 1.0) * scale);
  }
  return values;
}

/// Largest excess over the bound; 0 when every value is within it or bit-exact.
template <class T>
std::size_t violations(const quantizer::QuantizerBase& q,
                       const std::vector<T>& x,
                       const std::vector<T>& y) {
  std::size_t n_bad = x.size() == y.size() ? 0 : 1;
  const bool rel = q.getErrorBoundMode() == ErrorBoundMode::REL;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (fp::bits(x[i]) == fp::bits(y[i])) {
      continue;
    }
    const Wide size = x[i] < 0 ? -Wide(x[i]) : Wide(x[i]);
    const Wide difference = x[i] < y[i] ? Wide(y[i]) - Wide(x[i]) : Wide(x[i]) - Wide(y[i]);
    const Wide allowed = rel ? Wide(q.getErrorBound()) * size : Wide(q.getAbsErrorBound());
    const bool ok = std::isfinite(x[i]) && std::isfinite(y[i]) && difference <= allowed;
    n_bad += ok ? 0 : 1;
  }
  return n_bad;
}

template <class T, class C>
void expectNoViolation(const std::vector<T>& values, double eb, ErrorBoundMode mode, int radius) {
  QuantizerStage<T, C> stage({eb, mode, radius});
  const Encoded encoded = encode(stage, toBytes(values));
  const auto decoded = fromBytes<T>(decode(14, encoded));
  EXPECT_EQ(violations(stage, values, decoded), 0u)
      << "bound " << eb << ", mode " << errorBoundModeName(mode);
}

constexpr ErrorBoundMode kModes[] = {ErrorBoundMode::ABS, ErrorBoundMode::NOA, ErrorBoundMode::REL};

TEST(QuantizerExact, AMillionRandomFloatBitPatternsKeepEveryBound) {
  const auto values = randomBitPatterns<float>(std::size_t{1} << 20, 1);
  for (const ErrorBoundMode mode : kModes) {
    for (const double eb : {1e-7, 1e-3, 0.1, 50.0}) {
      expectNoViolation<float, std::uint32_t>(values, eb, mode, 0x7fffffff);
    }
    expectNoViolation<float, std::uint16_t>(values, 1e-2, mode, 32768);
  }
}

TEST(QuantizerExact, RandomDoubleBitPatternsKeepEveryBound) {
  const auto values = randomBitPatterns<double>(std::size_t{1} << 19, 2);
  for (const ErrorBoundMode mode : kModes) {
    for (const double eb : {1e-12, 1e-3, 0.7, 1e200}) {
      expectNoViolation<double, std::uint32_t>(values, eb, mode, 0x7fffffff);
    }
  }
}

TEST(QuantizerExact, ValuesFarAboveTheBoundKeepIt) {
  for (const double scale : {1.0, 300.0, 16000.0, 1e7}) {
    const auto floats = nearbyValues<float>(std::size_t{1} << 16, scale, 3);
    const auto doubles = nearbyValues<double>(std::size_t{1} << 16, scale, 4);
    for (const double eb : {1e-9, 1e-6, 1e-3, 0.1}) {
      for (const ErrorBoundMode mode : kModes) {
        expectNoViolation<float, std::uint32_t>(floats, eb, mode, 0x7fffffff);
        expectNoViolation<double, std::uint32_t>(doubles, eb, mode, 0x7fffffff);
        expectNoViolation<double, std::uint16_t>(doubles, eb, mode, 32768);
      }
    }
  }
}

TEST(QuantizerExact, BoundsAtTheEndsOfTheTypesWork) {
  const auto floats = randomBitPatterns<float>(std::size_t{1} << 14, 5);
  const auto doubles = randomBitPatterns<double>(std::size_t{1} << 14, 6);
  for (const double eb : {5e-324, 1e-310, 1e-60, 1e-45, 3e-45, 1e-39, 3e38, 1e100, 1.7e308}) {
    for (const ErrorBoundMode mode : kModes) {
      expectNoViolation<float, std::uint32_t>(floats, eb, mode, 0x7fffffff);
      expectNoViolation<double, std::uint32_t>(doubles, eb, mode, 0x7fffffff);
    }
  }
}

// The second try in f64 is what makes codes possible where x * (1 / step) no longer has the bits.
TEST(QuantizerExact, FloatsWithTwentyBitBinsAreMostlyCoded) {
  const auto values = nearbyValues<float>(100'000, 1.0, 7);
  QuantizerStage<float, std::uint32_t> stage({0x1.9p-23, ErrorBoundMode::ABS, 1 << 30});
  encode(stage, toBytes(values));
  EXPECT_LT(stage.getOutlierCount(), values.size() / 4);
}

template <class T, class C>
void compareWithCodecText(const std::vector<T>& values, double eb, CodeForm form) {
  QuantizerStage<T, C> stage;
  stage.setErrorBound(eb);
  stage.setZigzagCodes(form == CodeForm::kZigzag);
  const Encoded encoded = encode(stage, toBytes(values));
  const BinSettings settings{stage.getBoundInUse(),
                             stage.getAbsErrorBound(),
                             stage.getOutlierThreshold(),
                             static_cast<std::uint32_t>(stage.getQuantRadius()),
                             form,
                             8 * sizeof(C)};
  const auto rule = quantizer::makeBinRule<T>(settings);
  const auto n = static_cast<std::uint32_t>(values.size());
  std::vector<C> codes(n, 0x55);
  std::vector<std::uint8_t> refused(n, 7);
  std::mt19937_64 rng(8);
  quantizer::encodeTile(ShuffledTeam{&rng}, values.data(), n, rule, form, codes.data(),
                        refused.data());
  EXPECT_TRUE(toBytes(codes) == encoded.streams[0]);
  std::vector<C> serial_codes(n, 0x77);
  quantizer::encodeTile(SerialTeam{}, values.data(), n, rule, form, serial_codes.data(),
                        refused.data());
  EXPECT_EQ(codes, serial_codes);
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (refused[i] != 0) {
      indices.push_back(i);
    }
  }
  EXPECT_TRUE(toBytes(indices) == encoded.streams[2]);
  std::vector<T> decoded(n);
  quantizer::decodeTile(SerialTeam{}, codes.data(), n, rule.step, form == CodeForm::kZigzag,
                        decoded.data());
  for (const std::uint32_t i : indices) {
    decoded[i] = values[i];
  }
  EXPECT_TRUE(toBytes(decoded) == decode(14, encoded));
}

TEST(QuantizerExact, TunedLoopsGiveTheBytesOfTheCodecText) {
  for (const CodeForm form : {CodeForm::kTwosComplement, CodeForm::kZigzag}) {
    for (const double eb : {1e-5, 1e-3, 0.25}) {
      compareWithCodecText<float, std::uint16_t>(nearbyValues<float>(5000, 20.0, 9), eb, form);
      compareWithCodecText<float, std::uint32_t>(nearbyValues<float>(5000, 20.0, 9), eb, form);
      compareWithCodecText<double, std::uint16_t>(nearbyValues<double>(5000, 20.0, 9), eb, form);
      compareWithCodecText<double, std::uint32_t>(nearbyValues<double>(5000, 20.0, 9), eb, form);
      compareWithCodecText<float, std::uint32_t>(randomBitPatterns<float>(5000, 9), eb, form);
    }
  }
}

template <class T, class C>
void compareRelWithCodecText(const std::vector<T>& values, double eb) {
  QuantizerStage<T, C> stage({eb, ErrorBoundMode::REL});
  const Encoded encoded = encode(stage, toBytes(values));
  const RelSettings settings{eb, stage.getOutlierThreshold(), 32768, 8 * sizeof(C)};
  const auto rule = quantizer::makeRelRule<T>(settings);
  const auto n = static_cast<std::uint32_t>(values.size());
  std::vector<C> codes(n, 0x55);
  std::vector<std::uint8_t> refused(n, 7);
  std::mt19937_64 rng(8);
  quantizer::encodeRelTile(ShuffledTeam{&rng}, values.data(), n, rule, codes.data(),
                           refused.data());
  EXPECT_TRUE(toBytes(codes) == encoded.streams[0]);
  std::vector<T> decoded(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    decoded[i] = refused[i] != 0 ? values[i] : quantizer::relValue<T>(codes[i], rule.log_step);
  }
  EXPECT_TRUE(toBytes(decoded) == decode(14, encoded));
}

TEST(QuantizerExact, TunedRelLoopsGiveTheBytesOfTheCodecText) {
  for (const double eb : {1e-4, 1e-2, 0.5}) {
    compareRelWithCodecText<float, std::uint16_t>(randomBitPatterns<float>(5000, 9), eb);
    compareRelWithCodecText<float, std::uint32_t>(nearbyValues<float>(5000, 20.0, 9), eb);
    compareRelWithCodecText<double, std::uint16_t>(nearbyValues<double>(5000, 20.0, 9), eb);
    compareRelWithCodecText<double, std::uint32_t>(randomBitPatterns<double>(5000, 9), eb);
  }
}

TEST(QuantizerExact, FloatCheckAgreesWithTheExactOne) {
  // Every float near small multiples of half a step, for bounds with and without a float value.
  std::mt19937_64 rng(10);
  for (int round = 0; round < 200'000; ++round) {
    const double eb = std::ldexp(1.0 + static_cast<double>(rng() >> 11) * 0x1p-53,
                                 static_cast<int>(rng() % 40) - 20);
    const double in_use = static_cast<double>(quantizer::roundDownToFloat(eb));
    const auto rule = quantizer::makeBinRule<float>(
        {in_use, eb, INFINITY, 1u << 20, CodeForm::kTwosComplement, 32});
    const double half_steps = static_cast<double>(rng() % 9) - 4.0;
    auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(half_steps * in_use));
    bits += static_cast<std::uint32_t>(rng() % 7) - 3u;
    const float x = std::bit_cast<float>(bits);
    std::int32_t bin = 0;
    if (tryBin(x, rule, bin)) {
      const float back = quantizer::decodeBin(bin, rule.step);
      ASSERT_TRUE(fp::withinBound(x, back, eb)) << x << " " << eb;
    } else if (findBin(x, rule, bin)) {
      ASSERT_TRUE(fp::withinBound(x, quantizer::decodeBin(bin, rule.step), eb)) << x << " " << eb;
    }
  }
}

TEST(PortableLog, IsCloseToTheLogarithm) {
  std::mt19937_64 rng(11);
  for (int i = 0; i < 200'000; ++i) {
    const double x = std::bit_cast<double>(0x0010000000000000ull + rng() % 0x7fd0000000000000ull);
    ASSERT_LT(std::abs(static_cast<double>(std::log2(static_cast<long double>(x)) -
                                           static_cast<long double>(portable::log2(x)))),
              0x1p-42)
        << x;
    const double small = static_cast<double>(rng() >> 11) * 0x1p-53 * std::ldexp(1.0, -(i % 40));
    const long double expected = std::log1p(static_cast<long double>(small)) / std::log(2.0L);
    ASSERT_LE(std::abs(static_cast<double>(static_cast<long double>(portable::log2OnePlus(small)) -
                                           expected)),
              0x1p-43 * static_cast<double>(expected) + 1e-300);
  }
}

TEST(PortableLog, PowerIsCloseAndClamped) {
  std::mt19937_64 rng(12);
  for (int i = 0; i < 200'000; ++i) {
    const double e = (static_cast<double>(rng() >> 11) * 0x1p-52 - 1.0) * 1020.0;
    const long double expected = std::exp2(static_cast<long double>(e));
    ASSERT_LT(std::abs(static_cast<double>(
                  (static_cast<long double>(portable::pow2(e)) - expected) / expected)),
              0x1p-43)
        << e;
  }
  for (int k = -1021; k <= 1023; ++k) {
    ASSERT_EQ(portable::pow2(k), std::ldexp(1.0, k));
    ASSERT_EQ(portable::log2(std::ldexp(1.0, k)), k);
  }
  EXPECT_EQ(portable::pow2(1e300), 0x1p1023);
  EXPECT_EQ(portable::pow2(-1e300), 0x1p-1021);
}

}  // namespace
}  // namespace fz::test
