// Results asked for instead of bounds: the frame has them, with a bound that is no tighter or wider
// than it has to be.
#include "fz/target.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "fz/archive.h"
#include "fz/presets.h"
#include "pipeline/bound_check.h"
#include "support/stage_case.h"

namespace fz {
namespace {

constexpr std::array<std::size_t, 3> kDims = {60, 50, 20};

/// Waves of any height, with noise.
template <class T>
std::vector<T> waves(double height, double noise, double offset = 0.0) {
  std::mt19937 rng(3);
  std::uniform_real_distribution<double> grain(-noise, noise);
  std::vector<T> values;
  for (std::size_t z = 0; z < kDims[2]; ++z) {
    for (std::size_t y = 0; y < kDims[1]; ++y) {
      for (std::size_t x = 0; x < kDims[0]; ++x) {
        const double wave = std::sin(0.11 * static_cast<double>(x)) *
                            std::cos(0.07 * static_cast<double>(y) + 0.3 * static_cast<double>(z));
        values.push_back(static_cast<T>(offset + height * wave + grain(rng)));
      }
    }
  }
  return values;
}

template <class T>
ByteView bytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

CompressOptions optionsOf(std::string_view preset) {
  CompressOptions options;
  options.preset = preset;
  options.dims = kDims;
  options.backend = Backend::CPU;
  options.threads = 1;
  return options;
}

template <class T>
Frame compressWith(const std::vector<T>& values, CompressOptions options, double bound) {
  options.error_bound = bound;
  options.mode = ErrorBoundMode::ABS;
  return compress(std::span<const T>(values), options);
}

template <class T>
CheckReport reportOf(const std::vector<T>& values,
                     const Frame& frame,
                     const std::vector<double>& fill = {}) {
  const Array decoded = decompress(frame);
  return checkValues(kDataTypeOf<T>, bytesOf(values), decoded.bytes(),
                     {BoundRule::Kind::kAbsolute, inspect(frame).bound.value().absolute, fill});
}

template <class T>
double ratioOf(const std::vector<T>& values, const Frame& frame) {
  return static_cast<double>(values.size() * sizeof(T)) / static_cast<double>(frame.size());
}

TEST(Target, APsnrIsReachedWithLittleToSpareByEveryPreset) {
  const std::vector<float> values = waves<float>(100, 0.5);
  for (const Preset& preset : allPresets()) {
    const CompressOptions options = optionsOf(preset.name);
    const bool searches =
        preset.name == std::string_view("best") || preset.name == std::string_view("auto");
    for (const double wanted : {50.0, 80.0}) {
      if (searches && wanted < 80.0) {
        continue;  // each trial looks for a plan, which takes its time
      }
      const TargetBound found = findBound(DataType::FLOAT32, bytesOf(values),
                                          {ResultTarget::Kind::kPsnr, wanted}, options);
      const CheckReport report = reportOf(values, compressWith(values, options, found.absolute));
      EXPECT_GE(report.psnr(), wanted) << preset.name;
      EXPECT_LE(report.psnr(), wanted + 1.0) << preset.name;
      EXPECT_EQ(report.psnr(), found.reached) << preset.name;
      EXPECT_TRUE(report.passed());
      EXPECT_LE(found.n_trials, 5u);
    }
  }
}

TEST(Target, ARatioIsReachedWithLittleToSpare) {
  const std::vector<float> values = waves<float>(100, 0.5, 1000);
  for (const char* preset : {"pfpl", "cusz", "fzgpu"}) {
    const CompressOptions options = optionsOf(preset);
    for (const double wanted : {4.0, 8.0, 14.0}) {
      const TargetBound found = findBound(DataType::FLOAT32, bytesOf(values),
                                          {ResultTarget::Kind::kRatio, wanted}, options);
      const Frame frame = compressWith(values, options, found.absolute);
      EXPECT_GE(ratioOf(values, frame), wanted) << preset;
      EXPECT_LE(ratioOf(values, frame), wanted * 1.25) << preset;
      EXPECT_TRUE(reportOf(values, frame).passed());
      EXPECT_LE(found.n_trials, 5u);
    }
  }
}

TEST(Target, DoublesAreTakenAsWell) {
  const std::vector<double> values = waves<double>(1e-6, 1e-9);
  const CompressOptions options = optionsOf("pfpl");
  const TargetBound found =
      findBound(DataType::FLOAT64, bytesOf(values), {ResultTarget::Kind::kPsnr, 120.0}, options);
  EXPECT_GE(reportOf(values, compressWith(values, options, found.absolute)).psnr(), 120.0);
}

TEST(Target, MissingValuesHaveNoPartInIt) {
  std::vector<float> values = waves<float>(10, 0.1);
  for (std::size_t i = 0; i < values.size(); i += 7) {
    values[i] = i % 2 == 0 ? -9999.0F : std::numeric_limits<float>::quiet_NaN();
  }
  CompressOptions options = optionsOf("pfpl");
  options.fill = {-9999.0};
  const TargetBound found =
      findBound(DataType::FLOAT32, bytesOf(values), {ResultTarget::Kind::kPsnr, 60.0}, options);
  const CheckReport report =
      reportOf(values, compressWith(values, options, found.absolute), options.fill);
  EXPECT_GE(report.psnr(), 60.0);
  EXPECT_LE(report.psnr(), 61.0);
  EXPECT_LT(found.absolute, 1.0);  // of a range of 20, not of 10,000
}

TEST(Target, AFillValueThatNobodyDeclaredIsRefused) {
  std::vector<float> values = waves<float>(100, 0.5, 300.0);
  for (std::size_t i = 0; i < values.size(); i += 3) {
    values[i] = 1e20F;
  }
  const CompressOptions options = optionsOf("balanced");
  for (const ResultTarget& target : {ResultTarget{ResultTarget::Kind::kPsnr, 60.0},
                                     ResultTarget{ResultTarget::Kind::kRatio, 4.0}}) {
    try {
      findBound(DataType::FLOAT32, bytesOf(values), target, options);
      FAIL();
    } catch (const FillValueError& error) {
      EXPECT_EQ(error.finding().value, static_cast<double>(1e20F));
      EXPECT_LT(error.finding().bound_without, 1.0);
    }
    CompressOptions declared = options;
    declared.fill = {static_cast<double>(1e20F)};
    EXPECT_LT(findBound(DataType::FLOAT32, bytesOf(values), target, declared).absolute, 100.0);
    CompressOptions trusting = options;
    trusting.suspect_fill = false;
    EXPECT_NO_THROW(findBound(DataType::FLOAT32, bytesOf(values), target, trusting));
  }
}

TEST(Target, LargeFieldsOfAnyAxesAreTriedOnAPartFirst) {
  // Above 64 MiB; a ramp, which is quick to compress.
  const AxisValues extents = {4096, 64, 33, 1, 2};
  std::vector<float> values(valueCount(extents));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 4096) + static_cast<float>(i % 7) * 0.1F;
  }
  CompressOptions options = optionsOf("cuszp2");
  options.dims = {0, 1, 1};
  options.extents = extents;
  const TargetBound found =
      findBound(DataType::FLOAT32, bytesOf(values), {ResultTarget::Kind::kRatio, 4.0}, options);
  EXPECT_GE(found.reached, 4.0);
}

TEST(Target, ARatioOutOfReachIsAnErrorWithTheBest) {
  const std::vector<float> values = waves<float>(100, 50);
  try {
    static_cast<void>(findBound(DataType::FLOAT32, bytesOf(values),
                                {ResultTarget::Kind::kRatio, 1e6}, optionsOf("pfpl")));
    FAIL() << "reached";
  } catch (const TargetError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTarget);
    EXPECT_GT(error.best().reached, 2.0);
    EXPECT_GT(error.best().absolute, 50.0);
    EXPECT_NE(std::string(error.what()).find("no bound reaches ratio:1000000"), std::string::npos)
        << error.what();
  }
}

TEST(Target, AFieldOfOneValueLosesNothing) {
  const std::vector<float> values(kDims[0] * kDims[1] * kDims[2], 273.15F);
  const TargetBound found = findBound(DataType::FLOAT32, bytesOf(values),
                                      {ResultTarget::Kind::kPsnr, 80.0}, optionsOf("pfpl"));
  EXPECT_TRUE(std::isinf(found.reached));
}

TEST(Target, AFieldWithoutValuesIsTaken) {
  const std::vector<float> values(kDims[0] * kDims[1] * kDims[2],
                                  std::numeric_limits<float>::quiet_NaN());
  const TargetBound found = findBound(DataType::FLOAT32, bytesOf(values),
                                      {ResultTarget::Kind::kPsnr, 80.0}, optionsOf("pfpl"));
  EXPECT_TRUE(std::isinf(found.reached));
  EXPECT_GT(found.absolute, 0.0);
}

TEST(Target, ThreadsDoNotChangeTheBound) {
  const std::vector<float> values = waves<float>(100, 0.5);
  CompressOptions options = optionsOf("pfpl");
  const ResultTarget target = {ResultTarget::Kind::kRatio, 7.0};
  const TargetBound one = findBound(DataType::FLOAT32, bytesOf(values), target, options);
  options.threads = 3;
  const TargetBound three = findBound(DataType::FLOAT32, bytesOf(values), target, options);
  EXPECT_EQ(one.absolute, three.absolute);
  EXPECT_EQ(one.reached, three.reached);
}

TEST(Target, NumbersThatMeanNothingAreRefused) {
  const std::vector<float> values(10);
  for (const double value : {0.0, -3.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(findBound(DataType::FLOAT32, bytesOf(values), {ResultTarget::Kind::kPsnr, value}),
                 InvalidArgument);
  }
}

}  // namespace
}  // namespace fz
