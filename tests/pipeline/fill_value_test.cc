#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "backends/cpu/value_ends.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "support/each_target.h"
#include "support/pipelines.h"

// A bound relative to the range is refused where a fill value sets the range.

namespace fz::test {
namespace {

constexpr double kBound = 1e-3;

CompressOptions rangeOptions(const char* preset = "pfpl") {
  CompressOptions options;
  options.preset = preset;
  options.backend = Backend::CPU;
  options.error_bound = kBound;
  options.mode = ErrorBoundMode::NOA;
  return options;
}

/// What compress() found, if it refused.
template <class T>
std::optional<FillValueFinding> findingOf(const std::vector<T>& values,
                                          const CompressOptions& options = rangeOptions()) {
  try {
    compress(std::span<const T>(values), options);
  } catch (const FillValueError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFillValue);
    return error.finding();
  }
  return std::nullopt;
}

/// 271 to 305, as a sea is warm.
template <class T>
std::vector<T> sea(std::size_t n) {
  std::mt19937 rng(11);
  std::uniform_real_distribution<double> kelvin(271.0, 305.0);
  std::vector<T> values(n);
  std::generate(values.begin(), values.end(), [&] { return static_cast<T>(kelvin(rng)); });
  values.front() = T{271};
  values.back() = T{305};
  return values;
}

template <class T>
std::vector<T> seaWith(T value, std::size_t n_found, std::size_t n = 5000) {
  std::vector<T> values = sea<T>(n);
  for (std::size_t i = 0; i < n_found; ++i) {
    values[1 + i * (n - 2) / n_found] = value;
  }
  return values;
}

template <class T>
class FillValue : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(FillValue, FloatTypes);

TYPED_TEST(FillValue, ARepeatedValueFarFromTheOthersIsRefusedWithAllThatIsKnown) {
  using T = TypeParam;
  for (const T fill : {T{-9999}, static_cast<T>(1e20), std::numeric_limits<T>::lowest()}) {
    const std::vector<T> values = seaWith<T>(fill, 1500);
    const std::optional<FillValueFinding> found = findingOf(values);
    ASSERT_TRUE(found.has_value()) << fill;
    EXPECT_EQ(found->value, static_cast<double>(fill));
    EXPECT_EQ(found->n_found, 1500u);
    EXPECT_EQ(found->n_values, values.size());
    EXPECT_EQ(found->range_without, 34.0);
    EXPECT_NEAR(found->bound_without, 0.034, 1e-12);
    EXPECT_GT(found->range, 10 * found->range_without);
  }
}

TYPED_TEST(FillValue, TheMessageNamesValueCountBothRangesAndTheRemedy) {
  const std::vector<TypeParam> values = seaWith<TypeParam>(TypeParam{-9999}, 1500);
  try {
    compress(std::span<const TypeParam>(values), rangeOptions());
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "the bound relative to the range is refused: -9999 occurs 1500 times in 5000 "
                 "values and makes the range 10304 instead of 34, as fill values do; declare it as "
                 "a fill value, say that there are none, or use an absolute bound such as "
                 "abs:0.034");
  }
}

TYPED_TEST(FillValue, MoreThanOneInAThousandIsEnoughAndLessIsAnExtreme) {
  using T = TypeParam;
  for (const std::size_t n : {std::size_t{100}, std::size_t{5000}, std::size_t{300'000}}) {
    const std::size_t n_enough = std::max<std::size_t>(2, n / 1000 + 1);
    EXPECT_TRUE(findingOf(seaWith<T>(T{-9999}, n_enough, n)).has_value()) << n;
    EXPECT_FALSE(findingOf(seaWith<T>(T{-9999}, n_enough - 1, n)).has_value()) << n;
  }
}

TYPED_TEST(FillValue, NothingIsSuspectedWhereTheCallerSaysSo) {
  CompressOptions options = rangeOptions();
  options.suspect_fill = false;
  EXPECT_FALSE(findingOf(seaWith<TypeParam>(TypeParam{-9999}, 1500), options).has_value());
}

TYPED_TEST(FillValue, NoMoreThanTenTimesWiderIsTakenAsItIs) {
  using T = TypeParam;
  // 34 wide; 340 with the value is ten times as much.
  EXPECT_FALSE(findingOf(seaWith<T>(T{305 - 340}, 500)).has_value());
  EXPECT_TRUE(findingOf(seaWith<T>(T{305 - 341}, 500)).has_value());
  EXPECT_FALSE(findingOf(seaWith<T>(T{271 + 340}, 500)).has_value());
  EXPECT_TRUE(findingOf(seaWith<T>(T{271 + 341}, 500)).has_value());
  EXPECT_FALSE(findingOf(seaWith<T>(T{0}, 500)).has_value());
}

TYPED_TEST(FillValue, FieldsWithRepeatedEndsOfTheirOwnAreTaken) {
  using T = TypeParam;
  std::mt19937 rng(3);
  std::normal_distribution<double> normal;
  std::vector<T> clipped(20'000);
  std::vector<T> rain(20'000);
  for (std::size_t i = 0; i < clipped.size(); ++i) {
    clipped[i] = static_cast<T>(std::clamp(0.5 + normal(rng), 0.0, 1.0));
    rain[i] = static_cast<T>(std::max(0.0, std::exp(3 * normal(rng)) - 1));
  }
  EXPECT_FALSE(findingOf(clipped).has_value());
  EXPECT_FALSE(findingOf(rain).has_value());
  EXPECT_FALSE(findingOf(sea<T>(5000)).has_value());
}

TYPED_TEST(FillValue, ConstantEmptyAndTinyFieldsAreTaken) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T infinity = std::numeric_limits<T>::infinity();
  const std::vector<std::vector<T>> fields = {
      {},
      {T{-9999}},
      {T{3}, T{3}, T{3}},
      {nan, nan},
      {nan, infinity, -infinity},
      {nan, T{-9999}, T{-9999}},
      {T{0}, -T{0}, T{0}, -T{0}},
      std::vector<T>(10'000, T{-9999}),
  };
  for (const std::vector<T>& values : fields) {
    EXPECT_FALSE(findingOf(values).has_value()) << values.size();
  }
}

TYPED_TEST(FillValue, FieldsOfTwoValuesAreTakenUnlessOneIsSmallBesideTheOther) {
  using T = TypeParam;
  const auto ofTwo = [](T a, T b) {
    std::vector<T> values(3000, a);
    std::fill(values.begin(), values.begin() + 1000, b);
    return findingOf(values);
  };
  EXPECT_FALSE(ofTwo(T{0}, T{1}).has_value());
  EXPECT_FALSE(ofTwo(T{-1}, T{1}).has_value());
  EXPECT_FALSE(ofTwo(T{0}, T{-9999}).has_value());
  EXPECT_FALSE(ofTwo(T{271}, T{305}).has_value());
  const std::optional<FillValueFinding> found = ofTwo(T{5}, T{-9999});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->value, -9999.0);
  EXPECT_EQ(found->range_without, 0.0);
  EXPECT_DOUBLE_EQ(found->bound_without, 5 * kBound);
}

TYPED_TEST(FillValue, NanAndInfinitiesHaveNoPartInIt) {
  using T = TypeParam;
  std::vector<T> values = sea<T>(5000);
  for (std::size_t i = 1; i + 1 < values.size(); i += 3) {
    values[i] = i % 2 == 0 ? std::numeric_limits<T>::quiet_NaN()
                           : (i % 4 == 1 ? 1 : -1) * std::numeric_limits<T>::infinity();
  }
  EXPECT_FALSE(findingOf(values).has_value());
  CompressOptions options = rangeOptions();
  options.fill = {std::numeric_limits<double>::quiet_NaN(),
                  std::numeric_limits<double>::infinity()};
  EXPECT_FALSE(findingOf(values, options).has_value());
  for (std::size_t i = 2; i + 1 < values.size(); i += 3) {
    values[i] = T{-9999};
  }
  EXPECT_TRUE(findingOf(values).has_value());
}

TYPED_TEST(FillValue, ZerosOfBothSignsAreOneValue) {
  using T = TypeParam;
  std::vector<T> values = sea<T>(5000);
  for (T& x : values) {
    x = x * T{100} + T{900'000};
  }
  std::fill_n(values.begin() + 1000, 3, T{0});
  EXPECT_FALSE(findingOf(values).has_value());
  std::fill_n(values.begin() + 2000, 3, -T{0});
  const std::optional<FillValueFinding> found = findingOf(values);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->n_found, 6u);
}

TYPED_TEST(FillValue, ADeclaredOneHasNoPartInTheRange) {
  using T = TypeParam;
  for (const double fill : {270.0, -9999.0, 1e20, 305.9}) {
    const std::vector<T> values = seaWith<T>(static_cast<T>(fill), 700);
    CompressOptions options = rangeOptions();
    options.fill = {fill};
    const Frame frame = compress(std::span<const T>(values), options);
    EXPECT_EQ(inspect(frame).bound->absolute, kBound * 34.0) << fill;
    const Array decoded = decompress(frame);
    const std::span<const T> back = decoded.as<T>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == static_cast<T>(fill)) {
        ASSERT_EQ(back[i], values[i]);
      } else {
        ASSERT_LE(std::fabs(static_cast<double>(back[i]) - static_cast<double>(values[i])),
                  kBound * 34.0);
      }
    }
  }
}

TYPED_TEST(FillValue, AnotherOneIsStillNoticedBesideADeclaredOne) {
  using T = TypeParam;
  std::vector<T> values = seaWith<T>(T{-9999}, 500);
  for (std::size_t i = 30; i < 60; ++i) {
    values[i] = static_cast<T>(1e20);
  }
  CompressOptions options = rangeOptions();
  options.fill = {-9999.0};
  const std::optional<FillValueFinding> found = findingOf(values, options);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->value, static_cast<double>(static_cast<T>(1e20)));
  EXPECT_EQ(found->range_without, 34.0);
  options.fill = {-9999.0, 1e20};
  EXPECT_FALSE(findingOf(values, options).has_value());
}

TYPED_TEST(FillValue, OtherBoundsAndAGivenRangeAreTaken) {
  using T = TypeParam;
  const std::vector<T> values = seaWith<T>(T{-9999}, 500);
  CompressOptions options = rangeOptions();
  options.mode = ErrorBoundMode::ABS;
  EXPECT_FALSE(findingOf(values, options).has_value());
  options.mode = ErrorBoundMode::REL;
  EXPECT_FALSE(findingOf(values, options).has_value());
  options.mode = ErrorBoundMode::NOA;
  EXPECT_TRUE(findingOf(values, options).has_value());
  options.params = {{"value_base", "34"}};
  EXPECT_FALSE(findingOf(values, options).has_value());
}

TYPED_TEST(FillValue, EveryPresetRefusesIt) {
  using T = TypeParam;
  for (const Preset& preset : allPresets()) {
    EXPECT_TRUE(findingOf(seaWith<T>(T{-9999}, 500), rangeOptions(preset.name.data())).has_value())
        << preset.name;
    EXPECT_FALSE(findingOf(sea<T>(5000), rangeOptions(preset.name.data())).has_value())
        << preset.name;
  }
}

TYPED_TEST(FillValue, APipelineItselfTakesTheRangeAsItIs) {
  using T = TypeParam;
  const std::vector<T> values = seaWith<T>(T{-9999}, 500);
  Pipeline pipeline;
  configure(pipeline, kDataTypeOf<T>, rangeOptions());
  const FrameBytes frame = frameOf(pipeline, values);
  const ByteView bytes(reinterpret_cast<const std::uint8_t*>(values.data()), byteCount(values));
  EXPECT_THROW(pipeline.requireRangeWithoutFill(bytes), FillValueError);
  EXPECT_EQ(frameOf(pipeline, values), frame) << "it goes on afterwards";
  pipeline.reset();
  EXPECT_NO_THROW(pipeline.requireRangeWithoutFill(bytes)) << "there is no frame";
}

TYPED_TEST(FillValue, ValuesNeedNoAlignment) {
  using T = TypeParam;
  for (const std::size_t n_found : {std::size_t{0}, std::size_t{1}, std::size_t{500}}) {
    const std::vector<T> values = seaWith<T>(T{-9999}, n_found == 0 ? 1 : n_found);
    std::vector<std::uint8_t> bytes(byteCount(values) + 1);
    std::memcpy(bytes.data() + 1, values.data(), byteCount(values));
    const auto run = [&] { compress(kDataTypeOf<T>, ByteView(bytes).subspan(1), rangeOptions()); };
    if (n_found > 1) {
      EXPECT_THROW(run(), FillValueError);
    } else {
      EXPECT_NO_THROW(run());
    }
  }
}

/// The rule as docs/cli.md has it, on sorted values.
template <class T>
bool refuses(const std::vector<T>& values) {
  std::multiset<double> sorted;
  for (const T x : values) {
    if (std::isfinite(x)) {
      sorted.insert(static_cast<double>(x));
    }
  }
  if (sorted.empty()) {
    return false;
  }
  const double range = *sorted.rbegin() - *sorted.begin();
  for (const double end : {*sorted.begin(), *sorted.rbegin()}) {
    std::multiset<double> rest = sorted;
    const std::size_t n_found = rest.erase(end);
    if (rest.empty() || n_found < 2 || n_found <= values.size() / 1000) {
      continue;
    }
    const double width = *rest.rbegin() - *rest.begin();
    const double scale = width > 0 ? width : std::fabs(*rest.begin());
    if (scale > 0 && range > 10 * scale) {
      return true;
    }
  }
  return false;
}

TYPED_TEST(FillValue, ASampleNeverChangesTheVerdict) {
  using T = TypeParam;
  std::mt19937 rng(17);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(rng()) % n; };
  std::size_t n_refused = 0;
  for (int trial = 0; trial < 400; ++trial) {
    constexpr std::size_t kSizes[] = {3, 40, 700, 5000, 30'000};
    std::vector<T> values(kSizes[pick(std::size(kSizes))]);
    const double low = static_cast<double>(pick(3)) - 1;
    const double width = std::ldexp(1.0, static_cast<int>(pick(12)) - 6);
    std::uniform_real_distribution<double> inner(low, low + width);
    std::generate(values.begin(), values.end(), [&] { return static_cast<T>(inner(rng)); });
    // Some values far out, in one place or all over, once or often.
    for (std::size_t kind = pick(3); kind > 0; --kind) {
      const T far = static_cast<T>((pick(2) == 0 ? -1 : 1) * width * static_cast<double>(pick(30)));
      const std::size_t n_found = pick(2) == 0 ? pick(4) : pick(values.size());
      const bool is_block = pick(2) == 0;
      const std::size_t first = pick(values.size());
      for (std::size_t i = 0; i < n_found; ++i) {
        values[is_block ? (first + i) % values.size() : pick(values.size())] = far;
      }
    }
    CompressOptions options = rangeOptions();
    options.threads = 1 + pick(4);
    const bool is_refused = findingOf(values, options).has_value();
    n_refused += is_refused ? 1 : 0;
    ASSERT_EQ(is_refused, refuses(values)) << "trial " << trial;
  }
  EXPECT_GT(n_refused, 40u);
  EXPECT_LT(n_refused, 360u);
}

TYPED_TEST(FillValue, EveryVectorTargetPassesOverNothingButKnownValues) {
  using T = TypeParam;
  std::mt19937 rng(5);
  forEachVectorTarget([&] {
    for (std::size_t n = 0; n < 200; ++n) {
      std::vector<T> values(n);
      ValueEnds<T> ends;
      for (const T x : {T{280}, T{285}, T{298}, T{299}}) {
        ends.add(x);
      }
      for (T& x : values) {
        constexpr double kKnown[] = {280, 285, 290, 290.5, 298, 299, NAN};
        x = static_cast<T>(kKnown[rng() % std::size(kKnown)]);
      }
      EXPECT_LE(countWithoutNews(values.data(), n, ends), n);
      EXPECT_GT(countWithoutNews(values.data(), n, ends) + 64, n);
      EXPECT_EQ(countEqual(values.data(), n, T{290}),
                static_cast<std::size_t>(std::count(values.begin(), values.end(), T{290})));
      if (n > 0) {
        constexpr double kNews[] = {279, 281, 298.5, 1e20,
                                    -std::numeric_limits<double>::infinity()};
        const std::size_t at = rng() % n;
        values[at] = static_cast<T>(kNews[rng() % std::size(kNews)]);
        EXPECT_LE(countWithoutNews(values.data(), n, ends), at);
      }
    }
  });
}

TEST(FillValue, OtherTypesAreNotLookedAt) {
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  pipeline.addStage<RLEStage<std::uint8_t>>();
  pipeline.finalize();
  const std::vector<std::uint8_t> bytes = {0, 0, 0, 255, 254, 253};
  frameOf(pipeline, bytes);
  EXPECT_NO_THROW(pipeline.requireRangeWithoutFill(bytes));
}

}  // namespace
}  // namespace fz::test
