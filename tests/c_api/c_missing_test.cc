// Missing values through the C interface.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "c_api/c_api_support.h"
#include "fz/host_api.h"
#include "fz/presets.h"

namespace fz::test {
namespace {

constexpr double kFill = -9999.0;
constexpr std::array<std::size_t, 3> kShape = {60, 50, 4};
constexpr std::size_t kValues = 60 * 50 * 4;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
BitsOf<T> bitsOf(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}

/// A smooth field with gaps of NaN of two payloads, infinities and the fill value.
template <class T>
std::vector<T> fieldWithGaps(double scale = 1.0) {
  const T kinds[] = {std::numeric_limits<T>::quiet_NaN(), -std::numeric_limits<T>::quiet_NaN(),
                     std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                     static_cast<T>(kFill)};
  std::vector<T> values(kValues);
  for (std::size_t i = 0; i < kValues; ++i) {
    const auto x = static_cast<double>(i);
    const bool is_missing = std::sin(0.013 * x) > 0.4;
    values[i] = is_missing
                    ? kinds[i % 5]
                    : static_cast<T>(scale * (10.0 * std::sin(0.02 * x) + std::cos(0.001 * x)));
  }
  return values;
}

template <class T>
Bytes bytesOf(const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  return Bytes(bytes, bytes + values.size() * sizeof(T));
}

fz_options optionsWith(const double& fill, DataType type, int32_t mode, double bound) {
  fz_options options = cpuOptions();
  options.type = static_cast<int32_t>(type);
  std::copy(kShape.begin(), kShape.end(), options.dims);
  options.bound_mode = mode;
  options.error_bound = bound;
  options.fill = &fill;
  options.n_fill = 1;
  return options;
}

template <class T>
void expectKept(const std::vector<T>& values, const Bytes& decoded, double bound) {
  ASSERT_EQ(decoded.size(), values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T back;
    std::memcpy(&back, decoded.data() + i * sizeof(T), sizeof(T));
    if (!std::isfinite(values[i]) || values[i] == static_cast<T>(kFill)) {
      ASSERT_EQ(bitsOf(values[i]), bitsOf(back)) << i;
    } else {
      ASSERT_LE(std::fabs(static_cast<double>(values[i]) - static_cast<double>(back)), bound) << i;
    }
  }
}

Bytes archiveOfCxx(std::string_view preset, DataType type, const Bytes& values, CompressOptions o) {
  o.preset = preset;
  o.dims = kShape;
  o.backend = Backend::CPU;
  const Frame frame = compress(type, values, o);
  return Bytes(frame.bytes().begin(), frame.bytes().end());
}

template <class T>
class CMissing : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(CMissing, FloatTypes);

TYPED_TEST(CMissing, SurviveEveryPresetAndGiveTheBytesOfCxx) {
  using T = TypeParam;
  const std::vector<T> values = fieldWithGaps<T>();
  const Bytes bytes = bytesOf(values);
  for (const Preset& preset : allPresets()) {
    for (const auto& [mode, cxx_mode, bound] :
         {std::tuple{FZ_BOUND_ABS, ErrorBoundMode::ABS, 0.01},
          std::tuple{FZ_BOUND_NOA, ErrorBoundMode::NOA, 1e-3}}) {
      SCOPED_TRACE(preset.name);
      const PipelineHandle pipeline =
          fromPreset(preset.name.data(), optionsWith(kFill, kDataTypeOf<T>, mode, bound));
      const Bytes archive = compressed(pipeline.get(), bytes);
      CompressOptions options;
      options.mode = cxx_mode;
      options.error_bound = bound;
      options.fill = {kFill};
      EXPECT_TRUE(archive == archiveOfCxx(preset.name, kDataTypeOf<T>, bytes, options));
      const FrameInfo info = inspect(archive);
      ASSERT_TRUE(info.bound.has_value());
      EXPECT_LT(info.bound->absolute, 0.03);
      expectKept(values, decompressed(pipeline.get(), archive, bytes.size()), info.bound->absolute);
    }
  }
}

TYPED_TEST(CMissing, OneHandleTakesFieldsOfAnyKindInAnyOrder) {
  using T = TypeParam;
  const Bytes plain = smoothField(kDataTypeOf<T>, kShape).bytes;
  const Bytes constant = bytesOf(std::vector<T>(kValues, static_cast<T>(kFill)));
  const Bytes narrow = bytesOf(fieldWithGaps<T>());
  const Bytes wide = bytesOf(fieldWithGaps<T>(1000.0));
  for (const Preset& preset : allPresets()) {
    const PipelineHandle pipeline =
        fromPreset(preset.name.data(), optionsWith(kFill, kDataTypeOf<T>, FZ_BOUND_NOA, 1e-3));
    CompressOptions options;
    options.mode = ErrorBoundMode::NOA;
    options.error_bound = 1e-3;
    options.fill = {kFill};
    for (const Bytes* field : {&narrow, &plain, &wide, &constant, &wide, &narrow, &plain}) {
      EXPECT_TRUE(compressed(pipeline.get(), *field) ==
                  archiveOfCxx(preset.name, kDataTypeOf<T>, *field, options))
          << preset.name;
    }
  }
}

TYPED_TEST(CMissing, NeverExceedTheBoundOfTheLength) {
  using T = TypeParam;
  std::vector<T> values(5000);
  std::uint64_t state = 1;
  for (T& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Every third one is a NaN with a payload of its own.
    value = state % 3 == 0 ? std::bit_cast<T>(static_cast<BitsOf<T>>(
                                 bitsOf(std::numeric_limits<T>::quiet_NaN()) | state >> 45))
                           : static_cast<T>(static_cast<double>(state >> 40));
  }
  const Bytes bytes = bytesOf(values);
  for (const Preset& preset : allPresets()) {
    for (const int32_t fallback : {FZ_FALLBACK_LOSSLESS, FZ_FALLBACK_NONE}) {
      fz_options options = cpuOptions();
      options.type = static_cast<int32_t>(kDataTypeOf<T>);
      options.bound_mode = FZ_BOUND_ABS;
      options.error_bound = 0.25;
      options.fallback = fallback;
      const PipelineHandle pipeline = fromPreset(preset.name.data(), options);
      // compressed() gives a buffer of fz_compress_bound() bytes.
      const Bytes archive = compressed(pipeline.get(), bytes);
      expectKept(values, decompressed(pipeline.get(), archive, bytes.size()), 0.25);
    }
  }
}

TEST(CMissing, ThatHideFromTheSampleAreFoundWhereAStageCannotStoreThem) {
  std::vector<float> values(1'000'000, 1.0f);
  values[777'777] = std::numeric_limits<float>::quiet_NaN();
  fz_options options = cpuOptions();
  options.bound_mode = FZ_BOUND_ABS;
  options.error_bound = 0.01;
  const PipelineHandle pipeline = fromPreset("cuszp2", options);
  const Bytes archive = compressed(pipeline.get(), bytesOf(values));
  EXPECT_EQ(inspect(archive).missing->n_missing, 1u);
  expectKept(values, decompressed(pipeline.get(), archive, values.size() * 4), 0.01);
}

ArchiveHandle inspected(const Bytes& bytes) {
  fz_archive* made = nullptr;
  EXPECT_EQ(fz_archive_inspect(bytes.data(), bytes.size(), &made), FZ_OK) << fz_last_error();
  return ArchiveHandle(made);
}

TEST(CMissing, AreCountedInTheArchiveWithTheirFillValues) {
  const std::vector<float> values = fieldWithGaps<float>();
  const double fills[] = {kFill, std::nan(""), 1e20, kFill};
  fz_options options = optionsWith(kFill, DataType::FLOAT32, FZ_BOUND_ABS, 0.01);
  options.fill = fills;
  options.n_fill = 4;
  const Bytes bytes = compressed(fromPreset("pfpl", options).get(), bytesOf(values));
  const ArchiveHandle archive = inspected(bytes);
  fz_archive_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(fz_archive_get(archive.get(), &info), FZ_OK) << fz_last_error();
  const FrameInfo wanted = inspect(bytes);
  EXPECT_EQ(info.n_missing, wanted.missing->n_missing);
  EXPECT_EQ(info.n_filled,
            static_cast<std::uint64_t>(std::count(values.begin(), values.end(), -9999.0f)));
  ASSERT_EQ(info.n_fill, 2u);  // a NaN is missing anyway, and nothing counts twice
  double value = 0.0;
  ASSERT_EQ(fz_archive_fill(archive.get(), 0, &value), FZ_OK);
  EXPECT_EQ(value, kFill);
  ASSERT_EQ(fz_archive_fill(archive.get(), 1, &value), FZ_OK);
  EXPECT_EQ(value, 1e20);
  expectError(fz_archive_fill(archive.get(), 2, &value), FZ_ERROR_INVALID_ARGUMENT,
              "fill value 2 of 2");
  EXPECT_EQ(value, 0.0);
  expectError(fz_archive_fill(archive.get(), 0, nullptr), FZ_ERROR_INVALID_ARGUMENT,
              "value is NULL");
  expectError(fz_archive_fill(nullptr, 0, &value), FZ_ERROR_INVALID_ARGUMENT, "inspection is NULL");
}

TEST(CMissing, AnArchiveWithoutAnyHasNoneAndNoFillValues) {
  const ArchiveHandle archive = inspected(sampleArchive());
  fz_archive_info info;
  std::memset(&info, 0xee, sizeof(info));
  info.struct_size = sizeof(info);
  ASSERT_EQ(fz_archive_get(archive.get(), &info), FZ_OK) << fz_last_error();
  EXPECT_EQ(info.n_missing, 0u);
  EXPECT_EQ(info.n_filled, 0u);
  EXPECT_EQ(info.n_fill, 0u);
  double value = 1.0;
  expectError(fz_archive_fill(archive.get(), 0, &value), FZ_ERROR_INVALID_ARGUMENT,
              "fill value 0 of 0");
}

TEST(CMissing, ArePartOfWhatAPipelineFromTheArchiveKnows) {
  const Bytes values = bytesOf(fieldWithGaps<float>());
  for (const Preset& preset : allPresets()) {
    const Bytes archive = compressed(
        fromPreset(preset.name.data(), optionsWith(kFill, DataType::FLOAT32, FZ_BOUND_NOA, 1e-3))
            .get(),
        values);
    fz_options options = cpuOptions();
    const fz_param encode_mode = {"encode_mode", "Fine"};  // the one setting that no header has
    options.params = &encode_mode;
    options.n_params = preset.name == "cusz" ? 1 : 0;
    fz_pipeline* made = nullptr;
    ASSERT_EQ(fz_pipeline_from_archive(archive.data(), archive.size(), &options, &made), FZ_OK)
        << preset.name << ": " << fz_last_error();
    const PipelineHandle pipeline(made);
    EXPECT_TRUE(compressed(pipeline.get(), values) == archive) << preset.name;
    const Bytes plain = smoothField(DataType::FLOAT32, kShape).bytes;
    EXPECT_FALSE(inspect(compressed(pipeline.get(), plain)).missing.has_value()) << preset.name;
  }
}

TEST(CMissing, AMaskOfTheConfigurationIsPartOfWhatAnArchiveSays) {
  const std::string mask = "[[stage]]\nname = \"m\"\ntype = \"Mask\"\nfill = \"-9999\"\n";
  const std::string shuffle =
      "[[stage]]\nname = \"b\"\ntype = \"Bitshuffle\"\ninputs = [{ from = \"m\" }]\n";
  const std::string quantizer =
      "[[stage]]\nname = \"q\"\ntype = \"Quantizer\"\nerror_bound = 0.5\n"
      "error_bound_mode = \"ABS\"\ninputs = [{ from = \"m\" }]\n";
  const std::string quantized = mask + quantizer;
  const std::string coder =
      "[[stage]]\nname = \"r\"\ntype = \"RZE\"\ninputs = [{ from = \"m\", port = \"mask\" }]\n";
  fz_options options = cpuOptions();
  options.fallback = FZ_FALLBACK_NONE;
  const std::vector<float> values = fieldWithGaps<float>();
  for (const std::string& toml : {mask, mask + shuffle, quantized, quantized + coder}) {
    SCOPED_TRACE(toml);
    fz_pipeline* made = nullptr;
    ASSERT_EQ(fz_pipeline_from_toml(toml.c_str(), &options, &made), FZ_OK) << fz_last_error();
    const PipelineHandle pipeline(made);
    const Bytes archive = compressed(pipeline.get(), bytesOf(values));
    expectKept(values, decompressed(pipeline.get(), archive, values.size() * 4), 0.5);
    ASSERT_EQ(fz_pipeline_from_archive(archive.data(), archive.size(), &options, &made), FZ_OK)
        << fz_last_error();
    EXPECT_TRUE(compressed(PipelineHandle(made).get(), bytesOf(values)) == archive);
  }
}

TEST(CMissing, AFillValueThatNobodyDeclaredIsRefusedUnlessTheCallerIsTrusted) {
  std::vector<float> values = fieldWithGaps<float>();
  for (float& value : values) {
    value = std::isfinite(value) ? value : 0.5f;
  }
  const Bytes bytes = bytesOf(values);
  fz_options options = optionsWith(kFill, DataType::FLOAT32, FZ_BOUND_NOA, 1e-3);
  options.fill = nullptr;
  options.n_fill = 0;
  Bytes archive(bytes.size() + 592);
  std::size_t n_bytes = 1;
  expectError(fz_compress(fromPreset("pfpl", options).get(), bytes.data(), bytes.size(),
                          archive.data(), archive.size(), &n_bytes, nullptr),
              FZ_ERROR_FILL_VALUE, "-9999");
  EXPECT_EQ(n_bytes, 0u);
  options.fill_check = FZ_FILL_TRUST;
  EXPECT_GT(inspect(compressed(fromPreset("pfpl", options).get(), bytes)).bound->absolute, 9.0);
}

TEST(CMissing, WrongFillOptionsAreErrors) {
  const auto expectRefused = [](auto change, fz_status status, const char* part) {
    fz_options options = cpuOptions();
    change(options);
    fz_pipeline* made = reinterpret_cast<fz_pipeline*>(&options);
    expectError(fz_pipeline_from_preset("pfpl", &options, &made), status, part);
    EXPECT_EQ(made, nullptr);
  };
  static const double kFills[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const fz_status argument = FZ_ERROR_INVALID_ARGUMENT;
  expectRefused([](fz_options& o) { o.n_fill = 1; }, argument, "fill is NULL, but n_fill is 1");
  expectRefused([](fz_options& o) { o.fill_check = 2; }, argument, "fill_check");
  expectRefused([](fz_options& o) { o.fill_check = -1; }, argument, "fill_check");
  expectRefused([](fz_options& o) { o.reserved_2 = 1; }, argument, "reserved_2");
  const auto declare = [](fz_options& o) {
    o.fill = kFills;
    o.n_fill = 9;
  };
  expectRefused(declare, argument, "at most 8 fill values, not 9");
}

TEST(CMissing, FillValuesOfALosslessPipelineAreHarmless) {
  fz_options options = cpuOptions();
  options.fill = &kFill;
  options.n_fill = 1;
  fz_pipeline* made = nullptr;
  ASSERT_EQ(
      fz_pipeline_from_toml("[[stage]]\nname = \"b\"\ntype = \"Bitshuffle\"\n", &options, &made),
      FZ_OK)
      << fz_last_error();
  const PipelineHandle pipeline(made);
  const Bytes values = bytesOf(fieldWithGaps<float>());
  const Bytes archive = compressed(pipeline.get(), values);
  EXPECT_TRUE(decompressed(pipeline.get(), archive, values.size()) == values);
}

TEST(CMissing, FillValuesThatNoMaskCanTakeOutAreRefused) {
  fz_options options = cpuOptions();
  options.fill = &kFill;
  options.n_fill = 1;
  const char* toml =
      "[[stage]]\nname = \"m\"\ntype = \"Mask\"\n[[stage]]\nname = \"q\"\ntype = \"Quantizer\"\n"
      "error_bound = 0.5\ninputs = [{ from = \"m\" }]\n";
  fz_pipeline* made = nullptr;
  expectError(fz_pipeline_from_toml(toml, &options, &made), FZ_ERROR_UNSUPPORTED, "not a Mask");
  EXPECT_EQ(made, nullptr);
}

TEST(CMissing, NanAsFillValueChangesNothing) {
  const Bytes values = bytesOf(fieldWithGaps<float>());
  const double nans[] = {std::nan(""), std::numeric_limits<double>::infinity(), -std::nan("")};
  fz_options options = optionsWith(kFill, DataType::FLOAT32, FZ_BOUND_ABS, 0.01);
  options.fill = nans;
  options.n_fill = 3;
  const Bytes archive = compressed(fromPreset("cuszp2", options).get(), values);
  options.fill = nullptr;
  options.n_fill = 0;
  EXPECT_TRUE(archive == compressed(fromPreset("cuszp2", options).get(), values));
}

TEST(CMissing, ACallerFromBeforeFillValuesStillWorks) {
  fz_options options;
  std::memset(&options, 0xee, sizeof(options));
  ASSERT_EQ(fz_options_init(&options, offsetof(fz_options, fill)), FZ_OK) << fz_last_error();
  options.backend = FZ_BACKEND_CPU;
  options.bound_mode = FZ_BOUND_ABS;
  options.error_bound = 0.01;
  const std::vector<float> values = fieldWithGaps<float>();
  const Bytes archive = compressed(fromPreset("pfpl", options).get(), bytesOf(values));
  const ArchiveHandle archive_handle = inspected(archive);
  fz_archive_info info;
  std::memset(&info, 0xee, sizeof(info));
  info.struct_size = offsetof(fz_archive_info, n_missing);
  ASSERT_EQ(fz_archive_get(archive_handle.get(), &info), FZ_OK) << fz_last_error();
  EXPECT_EQ(info.n_missing, 0xeeeeeeeeeeeeeeeeu);
  EXPECT_EQ(info.archive_bytes, archive.size());
}

TEST(CMissing, FillValuesNeedToLiveOnlyDuringTheCallThatTakesThem) {
  const Bytes values = bytesOf(fieldWithGaps<float>());
  auto fill = std::make_unique<double>(kFill);
  const fz_options options = optionsWith(*fill, DataType::FLOAT32, FZ_BOUND_ABS, 0.01);
  const PipelineHandle pipeline = fromPreset("cuszp2", options);
  *fill = 1.0;
  fill.reset();
  EXPECT_EQ(inspect(compressed(pipeline.get(), values)).missing->fill, std::vector<double>{kFill});
}

}  // namespace
}  // namespace fz::test
