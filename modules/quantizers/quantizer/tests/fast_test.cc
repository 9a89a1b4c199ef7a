// The fast try of fused kernels gives no bin but that of the exact one.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "quantizers/quantizer/codec.h"
#include "quantizers/quantizer/codec_bound.h"

namespace fz::quantizer {
namespace {

/// Values around the edges of bins, of the range and of the type, and others.
template <class T>
std::vector<T> values(const BinRule<T>& rule) {
  std::vector<T> all = {T{0},
                        -T{0},
                        std::numeric_limits<T>::quiet_NaN(),
                        std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::max(),
                        std::numeric_limits<T>::denorm_min()};
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> bins(-40000, 40000);
  std::uniform_real_distribution<double> exponents(-40, 62);
  for (int i = 0; i < 200'000; ++i) {
    const double spread = i % 3 == 0 ? std::exp2(exponents(random)) : bins(random);
    const double at = i % 2 == 0 ? spread : std::floor(spread) + 0.5;
    T x = static_cast<T>((i % 5 == 0 ? -at : at) * static_cast<double>(rule.step));
    for (int k = 0; k < i % 3; ++k) {
      x = std::nextafter(x, std::numeric_limits<T>::max());
    }
    all.push_back(x);
  }
  return all;
}

template <FastCheck kCheck, class T>
void expectNoOtherBin(const BinSettings& settings) {
  const BinRule<T> rule = makeBinRule<T>(settings);
  BinRule<T> fast_rule = rule;
  if (kCheck == FastCheck::kLimit) {
    fast_rule.reach = fastLimit(rule);
  }
  std::size_t n_unsure = 0;
  std::size_t n_kept = 0;
  for (const T x : values(rule)) {
    std::int32_t fast = 0;
    std::int32_t bin = 0;
    const bool is_sure = fastBin<kCheck>(x, fast_rule, fast);
    const bool has_bin = tryBin(x, rule, bin);
    if (is_sure) {
      ASSERT_TRUE(has_bin) << x;
      ASSERT_EQ(fast, bin) << x;
    }
    n_kept += has_bin ? 1 : 0;
    n_unsure += has_bin && !is_sure ? 1 : 0;
  }
  EXPECT_GT(n_kept, 0u);
  if (settings.bound_in_use < settings.bound) {  // else edges of bins are what it is not sure of
    EXPECT_LE(n_unsure, n_kept / 1000);
  }
}

TEST(QuantizerFast, GivesNoBinButThatOfTheExactTry) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bound : {1e-3, 0.05, 1.0, 3e7}) {
    for (const bool ladder : {false, true}) {
      const double single = boundOfRung(bound, ladder, 0, true);
      const double wide = boundOfRung(bound, ladder, 0, false);
      const CodeForm linear = CodeForm::kLinear;
      expectNoOtherBin<FastCheck::kReach, float>({single, bound, infinity, 32768, linear, 32});
      expectNoOtherBin<FastCheck::kRange, float>({single, bound, infinity, 32768, linear, 16});
      expectNoOtherBin<FastCheck::kRange, double>({wide, bound, infinity, 32768, linear, 32});
      expectNoOtherBin<FastCheck::kRange, double>({wide, bound, infinity, 32768, linear, 16});
      expectNoOtherBin<FastCheck::kAll, float>(
          {single, bound, 1000 * bound, 300, CodeForm::kInplace, 32});
      expectNoOtherBin<FastCheck::kAll, float>(
          {single, bound, infinity, 1u << 30, CodeForm::kInplace, 32});
      for (const std::uint32_t radius : {300u, 32768u, 1u << 30}) {
        for (const double threshold : {1000 * bound, infinity}) {
          const CodeForm form = CodeForm::kZigzag;
          expectNoOtherBin<FastCheck::kLimit, float>({single, bound, threshold, radius, form, 32});
          expectNoOtherBin<FastCheck::kLimit, double>({wide, bound, threshold, radius, form, 32});
        }
      }
    }
  }
}

}  // namespace
}  // namespace fz::quantizer
