// The shortcuts of the REL encoder give the codes of relCode wherever they say that they can tell.
#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "quantizers/quantizer/codec_rel_fast.h"
#include "quantizers/quantizer/cpu/tile.h"

namespace fz::test {
namespace {

using quantizer::RelSettings;
using quantizer::RelShortcut;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// All kinds of bit patterns, ordinary values, and neighbours of the edges of bins.
template <class T>
std::vector<T> testValues(std::size_t n, double log_step) {
  using Bits = quantizer::BitsOf<T>;
  std::mt19937_64 rng(21);
  const double reach = std::is_same_v<T, float> ? 126.0 : 1020.0;
  std::vector<T> values;
  while (values.size() < n) {
    values.push_back(std::bit_cast<T>(static_cast<Bits>(rng())));
    const double unit = static_cast<double>(rng() >> 11) * 0x1p-52 - 1.0;
    values.push_back(static_cast<T>(20.0 * unit));
    const double edge = std::floor(unit * reach / log_step) + 0.5;
    const T near_edge = static_cast<T>(std::exp2(edge * log_step));
    const auto off = static_cast<Bits>(rng() % 65) - 32;
    values.push_back(std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(near_edge) + off)));
    values.push_back(std::bit_cast<T>(static_cast<Bits>(rng() % 32)));
  }
  for (const T x : {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T{1}, T{0}}) {
    for (const T y : {x, std::nextafter(x, T{0}), std::nextafter(x, T(kInfinity))}) {
      values.push_back(y);
      values.push_back(-y);
    }
  }
  return values;
}

/// How many values the shortcut leaves to relCode.
template <class C, class T, class Fast>
std::size_t compareShortcut(const std::vector<T>& values,
                            const quantizer::RelRule& rule,
                            const Fast& fast) {
  std::size_t n_unsure = 0;
  for (const T x : values) {
    typename Fast::Flag unsure = 0;
    const C code = quantizer::relFastCode<C>(x, fast, unsure);
    n_unsure += unsure != 0 ? 1 : 0;
    if (unsure == 0) {
      EXPECT_EQ(code, (quantizer::relCode<T, C>(x, rule))) << x << ", bound " << rule.bound;
    }
  }
  return n_unsure;
}

template <class T, class C>
void compareTile(const std::vector<T>& values, const RelSettings& settings) {
  const auto rule = quantizer::makeRelRule<T>(settings);
  std::vector<C> expected(values.size());
  std::transform(values.begin(), values.end(), expected.begin(),
                 [&](T x) { return quantizer::relCode<T, C>(x, rule); });
  std::vector<C> codes(values.size());
  std::vector<std::uint64_t> masks(values.size() / quantizer::kMaskValues + 1);
  const std::size_t n_refused = quantizer::encodeRelTile(
      {sizeof(T), sizeof(C)}, settings, {values.data(), values.size(), codes.data(), masks.data()});
  EXPECT_EQ(codes, expected) << "bound " << settings.bound;
  std::size_t n_zeros = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool refused =
        ((masks[i / quantizer::kMaskValues] >> (i % quantizer::kMaskValues)) & 1u) != 0;
    EXPECT_EQ(refused, expected[i] == 0);
    n_zeros += expected[i] == 0 ? 1 : 0;
  }
  EXPECT_EQ(n_refused, n_zeros);
}

template <class T, class C>
void compareAll(double bound, double threshold, std::uint32_t radius) {
  const RelSettings settings{bound, threshold, radius, 8 * sizeof(C)};
  const auto rule = quantizer::makeRelRule<T>(settings);
  const auto values = testValues<T>(20'000, rule.log_step);
  compareTile<T, C>(values, settings);
  const RelShortcut shortcut = quantizer::relShortcut<T>(bound);
  if (shortcut == RelShortcut::kDouble) {
    compareShortcut<C>(values, rule, quantizer::makeRelDoubleRule(rule));
  }
  if constexpr (std::is_same_v<T, float>) {
    if (shortcut == RelShortcut::kFloat) {
      compareShortcut<C>(values, rule, quantizer::makeRelFloatRule(rule));
      compareShortcut<C>(values, rule, quantizer::makeRelDoubleRule(rule));
    }
  }
}

constexpr double kBounds[] = {50.0,    1.0,  0.7,  0.1,  1e-2,    1e-3,    1e-4,
                              0x1p-14, 6e-5, 1e-5, 1e-6, 5e-7,    0x1p-21, 4e-7,
                              1.3e-7,  1e-8, 2e-9, 1e-9, 0x1p-30, 9e-10,   1e-12};

TEST(QuantizerRel, ShortcutsGiveTheCodesOfTheDefinition) {
  for (const double bound : kBounds) {
    compareAll<float, std::uint32_t>(bound, kInfinity, 0x7fffffff);
    compareAll<float, std::uint16_t>(bound, kInfinity, 32768);
    compareAll<double, std::uint32_t>(bound, kInfinity, 0x7fffffff);
    compareAll<double, std::uint16_t>(bound, kInfinity, 32768);
  }
}

TEST(QuantizerRel, ShortcutsKeepThresholdAndRadius) {
  for (const double bound : {0.5, 1e-3, 1e-5}) {
    for (const double threshold : {-0.0, 0.0, 1e-45, 1e-39, 0x1p-126, 0.1, 1.0, 1e38, 1e300}) {
      compareAll<float, std::uint32_t>(bound, threshold, 0x7fffffff);
      compareAll<double, std::uint32_t>(bound, threshold, 0x7fffffff);
    }
    for (const std::uint32_t radius : {1u, 2u, 100u, 16384u, 1u << 30}) {
      compareAll<float, std::uint32_t>(bound, kInfinity, radius);
      compareAll<float, std::uint16_t>(bound, kInfinity, radius);
      compareAll<double, std::uint16_t>(bound, kInfinity, radius);
    }
  }
}

TEST(QuantizerRel, ShortcutsSettleNearlyEveryValue) {
  std::mt19937_64 rng(22);
  std::vector<float> floats(100'000);
  std::vector<double> doubles(floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    doubles[i] = (static_cast<double>(rng() >> 11) * 0x1p-52 - 1.0) * 20.0;
    floats[i] = static_cast<float>(doubles[i]);
  }
  for (const double bound : {1e-3, 1e-4, 1e-6}) {
    const auto rule = quantizer::makeRelRule<float>({bound, kInfinity, 0x7fffffff, 32});
    const std::size_t n_unsure =
        quantizer::relShortcut<float>(bound) == RelShortcut::kFloat
            ? compareShortcut<std::uint32_t>(floats, rule, quantizer::makeRelFloatRule(rule))
            : compareShortcut<std::uint32_t>(floats, rule, quantizer::makeRelDoubleRule(rule));
    EXPECT_LT(n_unsure, floats.size() / 400) << bound;
    const auto wide = quantizer::makeRelRule<double>({bound, kInfinity, 0x7fffffff, 32});
    EXPECT_LT(compareShortcut<std::uint32_t>(doubles, wide, quantizer::makeRelDoubleRule(wide)),
              doubles.size() / 10'000)
        << bound;
  }
}

// With the bound for the other operations in makeRelFloatRule, this is what its limit rests on.
TEST(QuantizerRel, FloatLogarithmOfEverySignificandIsWithinItsError) {
  const auto fused = [](float a, float b, float c) { return std::fma(a, b, c); };
  double worst = 0.0;
  for (std::uint32_t u = 0x3f3504f3u; u <= 0x3fb504f3u; ++u) {
    const float t = std::bit_cast<float>(u) - 1.0f;
    const double exact = std::log2(static_cast<double>(std::bit_cast<float>(u)));
    for (const float log : {quantizer::log2OnePlusFloat(t, fp::EstimateMulAdd{}),
                            quantizer::log2OnePlusFloat(t, fused)}) {
      worst = std::max(worst, std::abs(static_cast<double>(log) - exact));
    }
  }
  EXPECT_LT(worst, 0x1.a0p-24);
}

}  // namespace
}  // namespace fz::test
