#include <random>

#include "fused/interp/config.h"
#include "fused/interp/tests/support.h"

namespace fz::test {
namespace {

using interp::Fixing;
using interp::ValueRange;
using Rng = std::mt19937_64;

/// Uniform in [0, 1).
double unit(Rng& rng) {
  return static_cast<double>(rng() >> 11) * 0x1p-53;
}
template <class T>
T between(Rng& rng, double low, double high) {
  return static_cast<T>(low + (high - low) * unit(rng));
}

/// The worst that the closed loop can do to a value: half a bin to either side.
template <class T>
void expectProved(const Fixing& fixing, T x, double bound) {
  const interp::Scale& scale = fixing.scale;
  const double s = interp::scaled(x, scale);
  ASSERT_TRUE(interp::isCodable(s)) << x;
  const std::int32_t half = (1 << scale.sub_bits) / 2;
  for (const std::int32_t off : {-half, 0, half}) {
    const T back = interp::fromFixed<T>(interp::toFixed(s) + off, scale);
    ASSERT_TRUE(fp::withinBound(static_cast<double>(x), static_cast<double>(back), bound))
        << x << " came back as " << back << ", bound " << bound << ", " << scale.sub_bits
        << " sub-bin bits, origin " << scale.origin;
  }
}

/// Random ranges with a ratio of range and offset to the bound from 1 to far beyond the proof's
/// limit; where the scale claims a proof, it must hold for values anywhere in the range, next to
/// the edges of bins most of all.
template <class T>
void tryRanges(Rng& rng, int n_ranges, std::size_t& n_proved) {
  const bool is_float = sizeof(T) == 4;
  for (int i = 0; i < n_ranges; ++i) {
    const double bound = std::ldexp(1.0 + unit(rng), static_cast<int>(rng() % 160) - 100);
    const double spread = bound * std::exp2(unit(rng) * 34);
    const double offset =
        rng() % 2 == 0 ? 0.0 : bound * std::exp2(unit(rng) * (is_float ? 19 : 50));
    const double sign = rng() % 2 == 0 ? 1.0 : -1.0;
    ValueRange range = {static_cast<double>(static_cast<T>(sign * offset - spread)),
                        static_cast<double>(static_cast<T>(sign * offset + spread)), true, false};
    if (!std::isfinite(range.min) || !std::isfinite(range.max)) {
      continue;
    }
    const Fixing fixing = interp::makeScale(bound, range, kDataTypeOf<T>);
    if (!fixing.is_proved || !fixing.is_complete) {
      continue;
    }
    ++n_proved;
    for (int k = 0; k < 60; ++k) {
      T x = between<T>(rng, range.min, range.max);
      if (k % 2 == 0) {
        // Halfway between two units, where rounding is worst.
        const double unit_value = fixing.scale.value_per_unit;
        const double n = std::floor((static_cast<double>(x) - fixing.scale.origin) / unit_value);
        x = static_cast<T>(fixing.scale.origin + (n + 0.5) * unit_value);
      } else if (k < 5) {
        x = static_cast<T>(k < 3 ? range.min : range.max);
      }
      if (static_cast<double>(x) < range.min || static_cast<double>(x) > range.max) {
        continue;
      }
      expectProved(fixing, x, bound);
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST(InterpBound, HoldsByProofForFloats) {
  Rng rng(1);
  std::size_t n_proved = 0;
  tryRanges<float>(rng, 20'000, n_proved);
  EXPECT_GT(n_proved, 5000u);
}

TEST(InterpBound, HoldsByProofForDoubles) {
  Rng rng(2);
  std::size_t n_proved = 0;
  tryRanges<double>(rng, 20'000, n_proved);
  EXPECT_GT(n_proved, 10'000u);
}

TEST(InterpBound, IsProvedUpToTheLimitOfTheDocument) {
  const auto isProved = [](double ratio, DataType type) {
    return interp::makeScale(1.0, {-ratio, ratio, true, false}, type).is_proved;
  };
  EXPECT_TRUE(isProved(0x1p17 - 3, DataType::FLOAT32));
  EXPECT_FALSE(isProved(0x1p17, DataType::FLOAT32));
  EXPECT_TRUE(isProved(0x1p42 - 3, DataType::FLOAT64));
  EXPECT_FALSE(isProved(0x1p42, DataType::FLOAT64));
  // Sums that overflow, and numbers that are too small for products to be exact.
  EXPECT_FALSE(interp::makeScale(1e35, {0, 3e38, true, false}, DataType::FLOAT32).is_proved);
  EXPECT_FALSE(interp::makeScale(1e-44, {0, 1e-40, true, false}, DataType::FLOAT32).is_proved);
  EXPECT_FALSE(interp::makeScale(5e-324, {0, 1e-300, true, false}, DataType::FLOAT64).is_proved);
}

TEST(InterpBound, TakesFewerSubBinBitsAndAnOriginOnlyWhereItMust) {
  const auto scale = [](double low, double high, double bound) {
    return interp::makeScale(bound, {low, high, true, false}, DataType::FLOAT64).scale;
  };
  EXPECT_EQ(scale(-100, 100, 1e-3).sub_bits, 8u);
  EXPECT_EQ(scale(-100, 100, 1e-3).origin, 0.0);
  EXPECT_EQ(scale(1e8, 1e8 + 1, 1e-3).sub_bits, 8u);
  EXPECT_EQ(scale(1e8, 1e8 + 1, 1e-3).origin, 1e8 + 0.5);
  EXPECT_EQ(scale(-1, 1, 0x1p-24).sub_bits, 5u);
  EXPECT_EQ(scale(-1, 1, 0x1p-29).sub_bits, 0u);
}

template <class T, class C>
void expectBound(const std::vector<T>& values,
                 double bound,
                 ErrorBoundMode mode,
                 const char* plan) {
  InterpStage<T, C> stage;
  stage.setErrorBound(bound);
  stage.setErrorBoundMode(mode);
  stage.setPlan(plan);
  stage.setDims(dimsOf(values.size(), 3));
  const Encoded e = encodeValues(stage, values);
  double least = bound;
  if (mode == ErrorBoundMode::NOA) {
    T low = std::numeric_limits<T>::max();
    T high = std::numeric_limits<T>::lowest();
    for (const T v : values) {
      low = std::isfinite(v) ? std::min(low, v) : low;
      high = std::isfinite(v) ? std::max(high, v) : high;
    }
    const double width = static_cast<double>(high) - static_cast<double>(low);
    least = width > 0.0 ? bound * width : bound;
  }
  ASSERT_LE(stage.boundInfo()->absolute, least);
  expectKept(values, decodeValues<T>(e), stage.boundInfo()->absolute);
}

template <class T>
std::vector<std::vector<T>> adversaries(double bound) {
  constexpr std::size_t kValues = 12 * 11 * 10;
  Rng rng(5);
  using L = std::numeric_limits<T>;
  std::vector<std::vector<T>> families;
  const auto add = [&](auto f) {
    std::vector<T> values(kValues);
    for (std::size_t i = 0; i < kValues; ++i) {
      values[i] = static_cast<T>(f(i));
    }
    families.push_back(values);
  };
  const auto noise = [&] { return unit(rng) - 0.5; };
  // Edges of bins, and the numbers next to them.
  add([&](std::size_t i) {
    const T edge = static_cast<T>(bound * (2.0 * static_cast<double>(i % 997) + 1.0));
    return i % 3 == 0   ? edge
           : i % 3 == 1 ? std::nextafter(edge, L::max())
                        : std::nextafter(edge, L::lowest());
  });
  add([&](std::size_t) { return noise() * 1e6 * bound; });
  add([&](std::size_t) { return noise() * 1e9 * bound; });
  add([&](std::size_t) { return noise() * 1e13 * bound; });
  add([&](std::size_t i) { return 1e7 * bound + bound * 0.3 * static_cast<double>(i); });
  add([&](std::size_t i) { return 1e15 * bound + bound * 0.3 * static_cast<double>(i); });
  add([&](std::size_t i) { return i % 7 == 0 ? 1e12 * bound : noise() * bound; });
  add([&](std::size_t i) { return std::ldexp(noise(), static_cast<int>(i % 250) - 125); });
  add([&](std::size_t i) { return i % 2 == 0 ? L::max() : noise(); });
  add([&](std::size_t i) { return i % 2 == 0 ? L::max() : L::lowest(); });
  add([&](std::size_t i) { return L::denorm_min() * static_cast<T>(i % 50); });
  add([&](std::size_t i) {
    return i % 11 == 0 ? L::quiet_NaN() : i % 13 == 0 ? -L::infinity() : static_cast<T>(noise());
  });
  add([&](std::size_t) { return L::quiet_NaN(); });
  return families;
}

template <class T, class C>
void tryAdversaries() {
  for (const double bound : {1e-3, 1.0, 1e-6, 3e-39, 1e-44, 5e-324, 1e35, 1e300}) {
    for (const std::vector<T>& values : adversaries<T>(bound)) {
      for (const char* plan : {"iso", "lorenzo", "alpha Nz(xy) x Ny(xz) xyz"}) {
        expectBound<T, C>(values, bound, ErrorBoundMode::ABS, plan);
        expectBound<T, C>(values, std::min(bound, 0.1), ErrorBoundMode::NOA, plan);
        if (testing::Test::HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

TEST(InterpBound, HoldsForEveryValueOfFloats) {
  tryAdversaries<float, std::int16_t>();
  tryAdversaries<float, std::int32_t>();
}
TEST(InterpBound, HoldsForEveryValueOfDoubles) {
  tryAdversaries<double, std::int16_t>();
  tryAdversaries<double, std::int32_t>();
}

TEST(InterpBound, FillValuesTakeNoBitsFromTheOthers) {
  std::vector<float> values(4096);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 10 == 0 ? 1e38f : std::sin(0.01f * static_cast<float>(i));
  }
  InterpStage<float, std::int16_t> stage;
  const Encoded e = encodeValues(stage, values);
  EXPECT_EQ(e.config[3], 8);  // sub-bin bits
  EXPECT_EQ(e.streams[1].size(), 8 * 410u);
}

TEST(InterpBound, AGivenRangeSparesNoTest) {
  const std::vector<float> values = {0.f, 1.f, 2.f, 3.f, 100.f};
  InterpStage<float, std::int16_t> stage;
  stage.setErrorBoundMode(ErrorBoundMode::NOA);
  stage.setErrorBound(0.01);
  stage.setValueBase(3.0);
  const Encoded e = encodeValues(stage, values);
  EXPECT_EQ(stage.boundInfo()->absolute, 0.01 * 3.0);
  expectKept(values, decodeValues<float>(e), 0.01 * 3.0);
}

}  // namespace
}  // namespace fz::test
