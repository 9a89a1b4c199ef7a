// Fields of which no value, or hardly any, is valid; and fields with a mask that are kept without
// loss.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "support/pipelines.h"

namespace fz::test {
namespace {

constexpr double kFill = -9999.0;
constexpr std::size_t kValues = 100'000;
/// "A few hundred bytes".
constexpr std::size_t kFewBytes = 600;

CompressOptions optionsFor(const Preset& preset, ErrorBoundMode mode, double bound = 1e-3) {
  CompressOptions options;
  options.preset = preset.name;
  options.backend = Backend::CPU;
  options.mode = mode;
  options.error_bound = bound;
  options.fill = {kFill};
  return options;
}

template <class T>
std::vector<T> onlyMissing(std::size_t n_values, double missing) {
  return std::vector<T>(n_values, static_cast<T>(missing));
}

template <class T>
bool hasSameBits(const std::vector<T>& values, const Frame& frame) {
  const Array decoded = decompress(frame, {.backend = Backend::CPU});
  const ByteView back = decoded.bytes();
  return back.size() == byteCount(values) &&
         std::memcmp(back.data(), values.data(), back.size()) == 0;
}

template <class T>
Frame frameFor(const std::vector<T>& values, const CompressOptions& options) {
  return compress(std::span<const T>(values), options);
}

template <class T>
class FewValidValues : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(FewValidValues, FloatTypes);

TYPED_TEST(FewValidValues, NoneTakesAFewHundredBytesWithEveryPresetModeAndKindOfMissingValue) {
  using T = TypeParam;
  for (const Preset& preset : allPresets()) {
    for (const ErrorBoundMode mode : {ErrorBoundMode::ABS, ErrorBoundMode::NOA}) {
      for (const double missing : {std::numeric_limits<double>::quiet_NaN(), kFill}) {
        SCOPED_TRACE(testing::Message()
                     << preset.name << " " << errorBoundModeName(mode) << " " << missing);
        const std::vector<T> values = onlyMissing<T>(kValues, missing);
        const Frame frame = frameFor(values, optionsFor(preset, mode));
        EXPECT_LE(frame.size(), kFewBytes);
        EXPECT_TRUE(hasSameBits(values, frame));
        const FrameInfo info = inspect(frame);
        ASSERT_TRUE(info.missing.has_value());
        EXPECT_EQ(info.missing->n_missing, kValues);
        EXPECT_EQ(info.missing->n_filled, missing == kFill ? kValues : 0u);
        ASSERT_TRUE(info.bound.has_value());
        EXPECT_EQ(info.bound->requested, 1e-3);
        EXPECT_EQ(info.bound->mode, mode);
      }
    }
  }
}

TYPED_TEST(FewValidValues, NoneOfThreeDimensionsTakesNoMore) {
  using T = TypeParam;
  const std::vector<T> values = onlyMissing<T>(100 * 50 * 20, kFill);
  for (const Preset& preset : allPresets()) {
    CompressOptions options = optionsFor(preset, ErrorBoundMode::NOA);
    options.dims = {100, 50, 20};
    const Frame frame = frameFor(values, options);
    EXPECT_LE(frame.size(), kFewBytes) << preset.name;
    EXPECT_EQ(inspect(frame).dims, options.dims);
    EXPECT_TRUE(hasSameBits(values, frame)) << preset.name;
  }
}

TYPED_TEST(FewValidValues, NoneOfFiftyTimesAsManyTakesHardlyMore) {
  using T = TypeParam;
  const std::vector<T> values = onlyMissing<T>(50 * kValues, kFill);
  for (const char* name : {"cuszp2", "pfpl", "cusz", "fzgpu"}) {
    const Frame frame = frameFor(values, optionsFor(*findPreset(name), ErrorBoundMode::ABS));
    EXPECT_LE(frame.size(), 2000u) << name;
    EXPECT_TRUE(hasSameBits(values, frame)) << name;
  }
}

TYPED_TEST(FewValidValues, OneTakesHardlyMoreThanNone) {
  using T = TypeParam;
  std::vector<T> values = onlyMissing<T>(kValues, kFill);
  values[33'333] = static_cast<T>(271.3);
  for (const Preset& preset : allPresets()) {
    const Frame frame = frameFor(values, optionsFor(preset, ErrorBoundMode::ABS));
    EXPECT_LE(frame.size(), kFewBytes) << preset.name;
    const Array back = decompress(frame, {.backend = Backend::CPU});
    EXPECT_LE(std::fabs(static_cast<double>(back.as<T>()[33'333]) - 271.3), 1.001e-3)
        << preset.name;
    EXPECT_EQ(back.as<T>()[33'334], static_cast<T>(kFill)) << preset.name;
  }
}

/// Where coders keep little for each of their blocks, the lossy frame is the smaller one.
TYPED_TEST(FewValidValues, TheSmallerFrameIsKept) {
  using T = TypeParam;
  std::vector<T> values = onlyMissing<T>(kValues, kFill);
  std::mt19937 rng(3);
  for (int i = 0; i < 1500; ++i) {
    values[rng() % kValues] = static_cast<T>(270.0 + 1e-4 * static_cast<double>(rng() % 10'000));
  }
  bool was_lossy = false;
  bool was_lossless = false;
  for (const Preset& preset : allPresets()) {
    CompressOptions options = optionsFor(preset, ErrorBoundMode::ABS, 0.1);
    const Frame frame = frameFor(values, options);
    options.lossless_fallback = false;
    const Frame lossy = frameFor(values, options);
    EXPECT_LE(frame.size(), lossy.size()) << preset.name;
    was_lossless = was_lossless || inspect(frame).isFallback();
    was_lossy = was_lossy || frame.size() == lossy.size();
  }
  EXPECT_TRUE(was_lossy && was_lossless);
}

TYPED_TEST(FewValidValues, GiveTheSameBytesForAnyThreadsAndInAKeptPipeline) {
  using T = TypeParam;
  std::vector<T> values = onlyMissing<T>(kValues, std::numeric_limits<double>::quiet_NaN());
  values[99'999] = T{1};
  CompressOptions options = optionsFor(*findPreset("cuszp2"), ErrorBoundMode::ABS);
  options.threads = 1;
  const Frame one = frameFor(values, options);
  ASSERT_TRUE(inspect(one).isFallback());
  options.threads = 3;
  const Frame three = frameFor(values, options);
  EXPECT_TRUE(std::equal(one.bytes().begin(), one.bytes().end(), three.bytes().begin(),
                         three.bytes().end()));
}

/// The fallback is the caller's to refuse.
TEST(FewValidValuesOnly, WithoutTheFallbackStagesAreLeftToThemselves) {
  const std::vector<float> values = onlyMissing<float>(kValues, kFill);
  CompressOptions options = optionsFor(*findPreset("cuszp2"), ErrorBoundMode::ABS);
  options.lossless_fallback = false;
  const Frame frame = frameFor(values, options);
  EXPECT_GT(frame.size(), 5000u);
  EXPECT_FALSE(inspect(frame).isFallback());
  EXPECT_TRUE(hasSameBits(values, frame));
}

template <class T>
std::vector<T> noiseWithGaps(std::size_t n) {
  std::vector<T> values(n);
  std::mt19937_64 rng(11);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = i / 300 % 3 == 1 ? static_cast<T>(i % 2 == 0 ? kFill : std::nan(""))
                                 : static_cast<T>(uniform(rng));
  }
  return values;
}

TYPED_TEST(FewValidValues, AFrameWithoutLossCountsItsMissingValues) {
  using T = TypeParam;
  const std::vector<T> values = noiseWithGaps<T>(60'000);
  for (const char* name : {"pfpl", "quantizer_lorenzo_bitpack"}) {
    SCOPED_TRACE(name);
    CompressOptions options = optionsFor(*findPreset(name), ErrorBoundMode::ABS, 1e-9);
    if (sizeof(T) == 8) {
      options.error_bound = 1e-15;
    }
    const Frame frame = frameFor(values, options);
    const FrameInfo info = inspect(frame);
    ASSERT_TRUE(info.isFallback());
    ASSERT_TRUE(info.missing.has_value());
    EXPECT_EQ(info.missing->n_missing, 20'100u);
    EXPECT_EQ(info.missing->n_filled, 10'050u);
    EXPECT_EQ(info.missing->fill, std::vector<double>{kFill});
    EXPECT_TRUE(hasSameBits(values, frame));
    EXPECT_LT(frame.size(), byteCount(values) * 3 / 4) << "missing values cost as much as others";
  }
}

/// A third of a few values: no mask is worth its header.
TEST(FewValidValuesOnly, NoFrameExceedsItsDataByMoreThanAStoredOne) {
  for (std::size_t n = 1; n <= 400; n += n < 20 ? 1 : 37) {
    const std::vector<float> values = noiseWithGaps<float>(n + 280);
    const std::vector<float> part(values.end() - static_cast<std::ptrdiff_t>(n), values.end());
    for (const Preset& preset : allPresets()) {
      const CompressOptions options = optionsFor(preset, ErrorBoundMode::ABS, 1e-3);
      const Frame frame = frameFor(part, options);
      EXPECT_LE(frame.size(), byteCount(part) + kStoredFrameBytes) << preset.name << ' ' << n;
      EXPECT_LE(frame.size(), compressBound(DataType::FLOAT32, byteCount(part), options));
    }
  }
}

}  // namespace
}  // namespace fz::test
