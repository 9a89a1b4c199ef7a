// Bounds by result for arrays that become archives of chunks.
#include "fz/target.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "archive/support.h"
#include "pipeline/bound_check.h"

namespace fz::test {
namespace {

constexpr float kFill = -9999.0F;

/// Waves with noise, and gaps where asked for.
std::vector<float> field(const AxisValues& extents, bool has_gaps = false) {
  std::vector<float> values = waves(extents);
  std::mt19937 random(3);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] += static_cast<float>(random() % 1000) * 1e-5F;
    if (has_gaps && i / 7 % 5 == 0) {
      values[i] = i % 2 == 0 ? kFill : std::numeric_limits<float>::quiet_NaN();
    }
  }
  return values;
}

double psnrOf(const std::vector<float>& values,
              const std::vector<std::uint8_t>& archive,
              const AxisValues& extents,
              const std::vector<double>& fill = {}) {
  const std::vector<float> back = readBox(ArchiveReader(sourceOf(archive)), wholeOf(extents));
  return checkValues(DataType::FLOAT32, bytesOf(values), bytesOf(back),
                     {BoundRule::Kind::kBits, 0.0, fill})
      .psnr();
}

ArchiveOptions withBound(ArchiveOptions options, const TargetBound& found) {
  options.compress.error_bound = found.absolute;
  options.compress.mode = ErrorBoundMode::ABS;
  return options;
}

TEST(ArchiveTarget, TheArchiveHasTheRatioThatWasAskedFor) {
  const AxisValues extents = {60, 50, 40};
  const std::vector<float> values = field(extents);
  for (const char* preset : {"balanced", "cuszp2"}) {
    ArchiveOptions options = optionsWith(extents, {60, 50, 7});
    options.compress.preset = preset;
    const TargetBound found =
        findBound(DataType::FLOAT32, bytesOf(values), {ResultTarget::Kind::kRatio, 6.0}, options);
    const std::vector<std::uint8_t> archive = archiveOf(values, withBound(options, found));
    const double ratio =
        static_cast<double>(values.size() * sizeof(float)) / static_cast<double>(archive.size());
    EXPECT_GE(ratio, 6.0) << preset;
    EXPECT_DOUBLE_EQ(ratio, found.reached) << preset;
    EXPECT_LE(found.n_trials, 5U);
    EXPECT_GT(ArchiveReader(sourceOf(archive)).info().n_chunks, 1U);
  }
}

TEST(ArchiveTarget, TheArchiveHasThePsnrThatWasAskedForOverItsValidValues) {
  const AxisValues extents = {60, 50, 40};
  for (const bool has_gaps : {false, true}) {
    const std::vector<float> values = field(extents, has_gaps);
    ArchiveOptions options = optionsWith(extents, {30, 50, 9});
    if (has_gaps) {
      options.compress.fill = {kFill};
    }
    const TargetBound found =
        findBound(DataType::FLOAT32, bytesOf(values), {ResultTarget::Kind::kPsnr, 70.0}, options);
    const double psnr = psnrOf(values, archiveOf(values, withBound(options, found)), extents,
                               options.compress.fill);
    EXPECT_GE(psnr, 70.0) << has_gaps;
    EXPECT_LE(psnr, 71.5) << has_gaps;
    EXPECT_NEAR(psnr, found.reached, 1e-6) << has_gaps;
  }
}

TEST(ArchiveTarget, ItIsTheSameForAnyThreadsAndAsksForWholeBoxesOnly) {
  const AxisValues extents = {40, 30, 20};
  const std::vector<float> values = field(extents);
  std::optional<double> first;
  for (const std::size_t n_threads : {1U, 2U, 5U}) {
    ArchiveOptions options = optionsWith(extents, {40, 30, 6});
    options.compress.threads = n_threads;
    const TargetBound found =
        findBound(DataType::FLOAT32, bytesOf(values), {ResultTarget::Kind::kPsnr, 60.0}, options);
    EXPECT_EQ(found.absolute, first.value_or(found.absolute)) << n_threads;
    first = found.absolute;
  }
}

TEST(ArchiveTarget, WhatIsOutOfReachSaysTheBestThatWasReached) {
  const AxisValues extents = {40, 30, 20};
  const std::vector<float> values = field(extents);
  try {
    findBound(DataType::FLOAT32, bytesOf(values), {ResultTarget::Kind::kRatio, 1e7},
              optionsWith(extents, {40, 30, 6}));
    FAIL();
  } catch (const TargetError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTarget);
    EXPECT_GT(error.best().reached, 1.0);
  }
}

TEST(ArchiveTarget, AFillValueThatNobodyDeclaredIsRefused) {
  const AxisValues extents = {40, 30, 20};
  std::vector<float> values = field(extents);
  for (std::size_t i = 0; i < values.size(); i += 4) {
    values[i] = 1e20F;
  }
  ArchiveOptions options = optionsWith(extents, {40, 30, 6});
  for (const auto kind : {ResultTarget::Kind::kPsnr, ResultTarget::Kind::kRatio}) {
    const ResultTarget target{kind, 5.0};
    options.compress.fill.clear();
    options.compress.suspect_fill = true;
    EXPECT_THROW(findBound(DataType::FLOAT32, bytesOf(values), target, options), FillValueError);
    options.compress.suspect_fill = false;
    EXPECT_NO_THROW(findBound(DataType::FLOAT32, bytesOf(values), target, options));
    options.compress.suspect_fill = true;
    options.compress.fill = {static_cast<double>(1e20F)};
    EXPECT_NO_THROW(findBound(DataType::FLOAT32, bytesOf(values), target, options));
  }
}

TEST(ArchiveTarget, AnArrayThatGrowsOrHasAnotherLengthIsRefused) {
  const ResultTarget target{ResultTarget::Kind::kPsnr, 60.0};
  const auto read = [](const Box&, MutableByteView) { FAIL(); };
  EXPECT_THROW(findBound(DataType::FLOAT32, optionsWith({40, 30, 0}, {40, 30, 6}), target, read),
               InvalidArgument);
  const std::vector<float> values(100);
  EXPECT_THROW(findBound(DataType::FLOAT32, bytesOf(values), target, optionsWith({10, 9}, {10, 3})),
               Error);
}

}  // namespace
}  // namespace fz::test
