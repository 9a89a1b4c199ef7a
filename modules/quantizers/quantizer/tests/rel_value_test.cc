// The shortcut of the REL decoder gives the numbers of relMagnitude wherever it says that it can.
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "quantizers/quantizer/codec_rel_fast.h"

namespace fz::test {
namespace {

TEST(QuantizerRelValue, ShortcutGivesTheSameFloatOrCannotTell) {
  double roots[quantizer::kRelRoots];
  for (std::uint32_t i = 0; i < quantizer::kRelRoots; ++i) {
    roots[i] = quantizer::relRoot(i);
    EXPECT_NEAR(roots[i] / std::exp2(i / 32.0), 1.0, 0x1p-42);
  }
  std::mt19937_64 rng(8);
  for (const double bound : {1e-7, 1e-5, 1e-3, 1e-2, 0.1, 1.0, 100.0}) {
    const double log_step = quantizer::relLogStep<float>(bound);
    const auto reach = static_cast<std::int64_t>(200.0 / log_step);
    std::size_t n_open = 0;
    std::size_t n = 0;
    for (std::int64_t i = 0; i < 400'000; ++i) {
      const auto bin =
          reach < 200'000
              ? i - 200'000
              : static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(2 * reach)) - reach;
      bool unsure = false;
      const float fast = quantizer::relFastMagnitude(
          static_cast<double>(bin), log_step, [&](std::uint32_t k) { return roots[k]; }, unsure);
      const double e = static_cast<double>(bin) * log_step;
      if (!unsure) {
        ASSERT_EQ(fast, quantizer::relMagnitude<float>(static_cast<double>(bin), log_step))
            << bin << ", bound " << bound;
        ASSERT_LT(std::abs(e), 125.0);
      }
      n += std::abs(e) < 125.0 ? 1 : 0;
      n_open += unsure && std::abs(e) < 125.0 ? 1 : 0;
    }
    EXPECT_LE(n_open, n / 1000 + 1) << bound;
  }
}

}  // namespace
}  // namespace fz::test
