#include <cmath>
#include <gtest/gtest.h>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "pipeline/compressor.h"
#include "support/fields.h"

namespace fz::test {
namespace {

/// LorenzoQuant calls a bound relative to the largest magnitude REL; only Quantizer is pointwise.
bool isPointwise(const FrameInfo& info) {
  return info.bound->mode == ErrorBoundMode::REL && info.bound->absolute == 0.0;
}

void expectWithinBound(const Field& field, const CompressOptions& options) {
  const Frame frame = compress(field.type, field.bytes, options);
  const FrameInfo info = inspect(frame);
  ASSERT_TRUE(info.bound.has_value());
  EXPECT_EQ(info.type, field.type);
  EXPECT_EQ(info.dims, field.dims);
  EXPECT_EQ(info.original_bytes, field.bytes.size());
  if (options.error_bound) {
    EXPECT_EQ(info.bound->requested, *options.error_bound);
    if (options.mode == ErrorBoundMode::ABS) {
      EXPECT_LE(info.bound->absolute, *options.error_bound);
    }
    if (options.mode == ErrorBoundMode::NOA && valueRange(field) > 0) {
      EXPECT_LE(info.bound->absolute, *options.error_bound * valueRange(field) * (1 + 1e-15));
    }
  }
  const Array array = decompress(frame);
  ASSERT_EQ(array.bytes().size(), field.bytes.size());
  const bool relative = isPointwise(info);
  const double bound = relative ? info.bound->requested : info.bound->absolute;
  EXPECT_EQ(countViolations(field, array.bytes().data(), bound, relative), 0u);
}

TEST(Presets, AllOfThemLoadAndSaveAndLoadAgain) {
  ASSERT_GE(allPresets().size(), 11u);
  for (const Preset& preset : allPresets()) {
    SCOPED_TRACE(std::string(preset.name));
    Pipeline pipeline;
    pipeline.loadConfigText(std::string(preset.toml), std::string(preset.name));
    const std::string saved = pipeline.saveConfigText();
    Pipeline again;
    again.loadConfigText(saved, "saved");
    EXPECT_EQ(again.saveConfigText(), saved);
    EXPECT_FALSE(preset.summary.empty());
  }
}

TEST(Presets, SmoothFieldsOfBothTypesAndAllDimensionsStayWithinBound) {
  const std::array<std::size_t, 3> shapes[] = {
      {100'003, 1, 1}, {317, 211, 1}, {53, 47, 31}, {1, 1, 1}, {5, 1, 1}};
  for (const Preset& preset : allPresets()) {
    for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
      for (const auto& shape : shapes) {
        SCOPED_TRACE(std::string(preset.name) + " " + std::string(dataTypeToString(type)) + " " +
                     std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "x" +
                     std::to_string(shape[2]));
        const Field field = smoothField(type, shape);
        CompressOptions options;
        options.preset = preset.name;
        options.config_toml = preset.toml;
        options.dims = field.dims;
        expectWithinBound(field, options);
        options.mode = ErrorBoundMode::ABS;
        options.error_bound = 0.001;  // the number typed, not its nearest float
        if (field.name.find("fill") != std::string::npos) {
          EXPECT_THROW(compress(field.type, field.bytes, options), FillValueError);
          continue;
        }
        expectWithinBound(field, options);
        if (testing::Test::HasFailure()) {
          return;
        }
      }
    }
  }
}

TEST(Presets, WithoutABoundAreRefusedWithWhatToWrite) {
  const Field field = smoothField(DataType::FLOAT32, {100, 20, 1});
  for (const Preset& preset : allPresets()) {
    CompressOptions options;
    options.preset = preset.name;
    options.dims = field.dims;
    try {
      compress(field.type, field.bytes, options);
      ADD_FAILURE() << preset.name << " guessed a bound";
    } catch (const InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find("set error_bound and mode, or the preset 'lossless'"),
                std::string::npos)
          << e.what();
    }
    options.params = {{"error_bound", "0.01"}};  // another way to say it
    EXPECT_NO_THROW(compress(field.type, field.bytes, options)) << preset.name;
  }
}

TEST(Presets, LosslessKeepsEveryBitAndTakesNoBound) {
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    Field field = smoothField(type, {317, 211, 1});
    field.bytes[3] = field.bytes[7] = 0xff;  // a NaN with a payload
    CompressOptions options;
    options.preset = "lossless";
    options.dims = field.dims;
    const Frame frame = compress(field.type, field.bytes, options);
    const FrameInfo info = inspect(frame);
    EXPECT_TRUE(info.lossless);
    EXPECT_EQ(info.type, type);
    EXPECT_EQ(info.dims, field.dims);
    EXPECT_GT(info.ratio(), 1.05);
    const Array array = decompress(frame);
    EXPECT_TRUE(std::equal(field.bytes.begin(), field.bytes.end(), array.bytes().begin(),
                           array.bytes().end()));
    options.error_bound = 1e-3;
    EXPECT_THROW(compress(field.type, field.bytes, options), InvalidArgument);
  }
}

TEST(Presets, EmptyInputRoundTrips) {
  for (const Preset& preset : allPresets()) {
    SCOPED_TRACE(std::string(preset.name));
    CompressOptions options;
    options.preset = preset.name;
    options.config_toml = preset.toml;
    const Frame frame = compress(std::span<const float>(), options);
    EXPECT_EQ(decompress(frame).bytes().size(), 0u);
  }
}

TEST(Presets, ThreadsDoNotChangeTheFrame) {
  const Field field = smoothField(DataType::FLOAT32, {300, 200, 3});
  for (const Preset& preset : allPresets()) {
    SCOPED_TRACE(std::string(preset.name));
    CompressOptions options;
    options.preset = preset.name;
    options.config_toml = preset.toml;
    options.dims = field.dims;
    options.threads = 1;
    const Frame one = compress(field.type, field.bytes, options);
    for (const std::size_t n : {2, 7}) {
      options.threads = n;
      const Frame many = compress(field.type, field.bytes, options);
      EXPECT_TRUE(std::equal(one.bytes().begin(), one.bytes().end(), many.bytes().begin(),
                             many.bytes().end()));
    }
  }
}

TEST(Presets, WithoutANameBalancedIsTakenAndPfplForRelativeBounds) {
  const Field field = smoothField(DataType::FLOAT32, {64, 48, 1});
  for (const auto& [mode, name] :
       {std::pair(ErrorBoundMode::ABS, "balanced"), std::pair(ErrorBoundMode::NOA, "balanced"),
        std::pair(ErrorBoundMode::REL, "pfpl")}) {
    CompressOptions options;
    options.dims = field.dims;
    options.error_bound = 1e-3;
    options.mode = mode;
    const Frame unnamed = compress(field.type, field.bytes, options);
    options.preset = name;
    const Frame named = compress(field.type, field.bytes, options);
    EXPECT_TRUE(std::equal(unnamed.bytes().begin(), unnamed.bytes().end(), named.bytes().begin(),
                           named.bytes().end()))
        << name;
    options.preset.clear();
    options.error_bound.reset();
    EXPECT_THROW(compress(field.type, field.bytes, options), InvalidArgument);
  }
}

TEST(Presets, EveryRealFieldStaysWithinBoundOrIsRefusedForItsNansOrFillValues) {
  const std::vector<Field> fields = realFields();
  if (fields.empty()) {
    GTEST_SKIP() << "no real fields beside the project";
  }
  std::size_t index = 0;
  for (const Field& field : fields) {
    for (const Preset& preset : allPresets()) {
      for (const double bound : {1e-2, 1e-4}) {
        if (index++ % FZ_TEST_STEP != 0) {
          continue;
        }
        SCOPED_TRACE(field.name + " " + std::string(preset.name) + " " + std::to_string(bound));
        CompressOptions options;
        options.preset = preset.name;
        options.config_toml = preset.toml;
        options.dims = field.dims;
        options.error_bound = bound;
        options.mode = ErrorBoundMode::NOA;
        if (field.name.find("fill") != std::string::npos) {
          EXPECT_THROW(compress(field.type, field.bytes, options), FillValueError);
          continue;
        }
        expectWithinBound(field, options);
        if (testing::Test::HasFailure()) {
          return;
        }
      }
    }
  }
}

TEST(Presets, RelativeBoundHoldsForEveryValueOfEveryRealField) {
  const std::vector<Field> fields = realFields();
  if (fields.empty()) {
    GTEST_SKIP() << "no real fields beside the project";
  }
  for (const Field& field : fields) {
    for (const double bound : {1e-1, 1e-3, 1e-6}) {
      SCOPED_TRACE(field.name + " " + std::to_string(bound));
      CompressOptions options;
      options.dims = field.dims;
      options.error_bound = bound;
      options.mode = ErrorBoundMode::REL;
      expectWithinBound(field, options);
    }
  }
}

}  // namespace
}  // namespace fz::test
