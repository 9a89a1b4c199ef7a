// Bounds by result, through the C interface.
#include "c_api/c_api_support.h"

namespace fz::test {
namespace {

const Field& roughField() {
  static const Field kField = smoothField(DataType::FLOAT32, {120, 80, 3});
  return kField;
}

fz_options optionsOf(const Field& field) {
  fz_options options = cpuOptions();
  std::copy(field.dims.begin(), field.dims.end(), options.dims);
  return options;
}

TEST(CTarget, TheBoundReachesWhatItSays) {
  const Field& field = roughField();
  fz_options options = optionsOf(field);
  const PipelineHandle any = fromPreset("cusz", options);
  double bound = 0;
  double reached = 0;
  ASSERT_EQ(fz_find_bound(any.get(), FZ_TARGET_RATIO, 5.0, field.bytes.data(), field.bytes.size(),
                          &bound, &reached),
            FZ_OK)
      << fz_last_error();
  EXPECT_GE(reached, 5.0);
  options.bound_mode = FZ_BOUND_ABS;
  options.error_bound = bound;
  const Bytes archive = compressed(fromPreset("cusz", options).get(), field.bytes);
  EXPECT_DOUBLE_EQ(static_cast<double>(field.bytes.size()) / static_cast<double>(archive.size()),
                   reached);
}

TEST(CTarget, TheBoundOfThePipelineHasNoPartInIt) {
  const Field& field = roughField();
  fz_options options = optionsOf(field);
  double bound[2] = {};
  for (double& found : bound) {
    const PipelineHandle pipeline = fromPreset("pfpl", options);
    ASSERT_EQ(fz_find_bound(pipeline.get(), FZ_TARGET_PSNR, 60.0, field.bytes.data(),
                            field.bytes.size(), &found, nullptr),
              FZ_OK)
        << fz_last_error();
    options.bound_mode = FZ_BOUND_NOA;
    options.error_bound = 0.25;
  }
  EXPECT_GT(bound[0], 0.0);
  EXPECT_EQ(bound[0], bound[1]);
}

TEST(CTarget, SettingsThatWereFoundGiveTheBytesOfTheSearch) {
  const Field& field = roughField();
  fz_options options = optionsOf(field);
  options.bound_mode = FZ_BOUND_NOA;
  options.error_bound = 1e-3;
  const PipelineHandle best = fromPreset("best", options);
  std::size_t n_text = 0;
  EXPECT_EQ(
      fz_find_settings(best.get(), field.bytes.data(), field.bytes.size(), nullptr, 0, &n_text),
      FZ_ERROR_BUFFER_TOO_SMALL);
  std::string text(n_text, '?');
  ASSERT_EQ(fz_find_settings(best.get(), field.bytes.data(), field.bytes.size(), text.data(),
                             n_text, &n_text),
            FZ_OK)
      << fz_last_error();
  ASSERT_EQ(text.find('\0'), n_text - 1);
  const std::size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1, text.find('\n') - equals - 1);
  EXPECT_EQ(key, "predict.plan");
  const fz_param param = {key.c_str(), value.c_str()};
  options.params = &param;
  options.n_params = 1;
  EXPECT_EQ(compressed(fromPreset("best", options).get(), field.bytes),
            compressed(best.get(), field.bytes));
}

TEST(CTarget, PresetsThatSearchForNothingFindNothing) {
  const Field& field = roughField();
  fz_options options = optionsOf(field);
  options.bound_mode = FZ_BOUND_ABS;
  options.error_bound = 0.1;
  const PipelineHandle pipeline = fromPreset("pfpl", options);
  char text = '?';
  std::size_t n_text = 0;
  EXPECT_EQ(
      fz_find_settings(pipeline.get(), field.bytes.data(), field.bytes.size(), &text, 1, &n_text),
      FZ_OK);
  EXPECT_EQ(text, '\0');
  EXPECT_EQ(n_text, 1u);
  EXPECT_EQ(fz_find_settings(nullptr, nullptr, 0, &text, 1, &n_text), FZ_ERROR_INVALID_ARGUMENT);
}

TEST(CTarget, WhatIsWrongIsSaid) {
  const Field& field = roughField();
  const PipelineHandle pipeline = fromPreset("pfpl", optionsOf(field));
  double bound = 0;
  const auto find = [&](int32_t target, double value) {
    return fz_find_bound(pipeline.get(), target, value, field.bytes.data(), field.bytes.size(),
                         &bound, nullptr);
  };
  expectError(find(FZ_TARGET_RATIO, 1e9), FZ_ERROR_TARGET, "the best was ratio:");
  expectError(find(2, 5), FZ_ERROR_INVALID_ARGUMENT, "2 is no target");
  expectError(find(FZ_TARGET_PSNR, -1), FZ_ERROR_INVALID_ARGUMENT, "above 0");
  expectError(fz_find_bound(nullptr, 0, 5, field.bytes.data(), 4, &bound, nullptr),
              FZ_ERROR_INVALID_ARGUMENT, "pipeline is NULL");
  expectError(fz_find_bound(pipeline.get(), 0, 5, nullptr, 4, &bound, nullptr),
              FZ_ERROR_INVALID_ARGUMENT, "values is NULL");
  expectError(fz_find_bound(pipeline.get(), 0, 5, field.bytes.data(), 4, nullptr, nullptr),
              FZ_ERROR_INVALID_ARGUMENT, "bound is NULL");
}

}  // namespace
}  // namespace fz::test
