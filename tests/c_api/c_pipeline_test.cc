// How pipelines come about.
#include <cmath>
#include <limits>

#include "c_api/c_api_support.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "pipeline/compressor.h"

namespace fz::test {
namespace {

constexpr std::array<std::size_t, 3> kShape = {50, 30, 4};

fz_options shapedOptions(DataType type) {
  fz_options options = cpuOptions();
  options.type = static_cast<int32_t>(type);
  std::copy(kShape.begin(), kShape.end(), options.dims);
  return options;
}

TEST(CPipeline, EveryPresetWritesTheBytesOfCxx) {
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    const Field field = smoothField(type, kShape);
    for (const Preset& preset : allPresets()) {
      const PipelineHandle pipeline = fromPreset(preset.name.data(), shapedOptions(type));
      ASSERT_NE(pipeline, nullptr) << preset.name;
      const Bytes archive = compressed(pipeline.get(), field.bytes);
      CompressOptions options;
      options.preset = preset.name;
      options.config_toml = preset.toml;
      options.dims = kShape;
      options.backend = Backend::CPU;
      const Frame frame = compress(type, field.bytes, options);
      EXPECT_EQ(archive, Bytes(frame.bytes().begin(), frame.bytes().end())) << preset.name;
      const Array back = decompress(archive);
      EXPECT_EQ(decompressed(pipeline.get(), archive, field.bytes.size()),
                Bytes(back.bytes().begin(), back.bytes().end()))
          << preset.name;
    }
  }
}

TEST(CPipeline, OneFromAnArchiveWritesItAgain) {
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    const Field field = smoothField(type, kShape);
    for (const Preset& preset : allPresets()) {
      const Bytes archive =
          compressed(fromPreset(preset.name.data(), shapedOptions(type)).get(), field.bytes);
      fz_options options = cpuOptions();
      // The one setting that no header has.
      const fz_param encode_mode = {"encode_mode", "Fine"};
      options.params = &encode_mode;
      options.n_params = preset.name == "cusz" ? 1 : 0;
      fz_pipeline* made = nullptr;
      ASSERT_EQ(fz_pipeline_from_archive(archive.data(), archive.size(), &options, &made), FZ_OK)
          << preset.name << ": " << fz_last_error();
      const PipelineHandle pipeline(made);
      EXPECT_EQ(compressed(pipeline.get(), field.bytes), archive) << preset.name;
    }
  }
}

TEST(CPipeline, OneFromAnArchiveTakesOtherDimsAndBounds) {
  const Bytes archive = sampleArchive();
  fz_options options = cpuOptions();
  options.error_bound = 0.25;
  options.bound_mode = FZ_BOUND_ABS;
  fz_pipeline* made = nullptr;
  ASSERT_EQ(fz_pipeline_from_archive(archive.data(), archive.size(), &options, &made), FZ_OK)
      << fz_last_error();
  const PipelineHandle pipeline(made);
  const Field field = smoothField(DataType::FLOAT32, {123, 1, 1});
  const FrameInfo info = inspect(compressed(pipeline.get(), field.bytes));
  ASSERT_TRUE(info.bound.has_value());
  EXPECT_EQ(info.bound->requested, 0.25);
  EXPECT_EQ(info.bound->mode, ErrorBoundMode::ABS);
}

TEST(CPipeline, FromTextAsInCxxAndBack) {
  const std::string toml(findPreset("speed")->toml);
  const fz_options options = cpuOptions();
  fz_pipeline* made = nullptr;
  ASSERT_EQ(fz_pipeline_from_toml(toml.c_str(), &options, &made), FZ_OK) << fz_last_error();
  const PipelineHandle pipeline(made);
  EXPECT_EQ(fz_pipeline_backend(pipeline.get()), FZ_BACKEND_CPU);

  Pipeline cxx;
  cxx.setBackend(Backend::CPU);
  cxx.loadConfigText(toml, "toml");
  std::size_t n_bytes = 0;
  expectError(fz_pipeline_toml(pipeline.get(), nullptr, 0, &n_bytes), FZ_ERROR_BUFFER_TOO_SMALL,
              "fz_pipeline_toml");
  ASSERT_EQ(n_bytes, cxx.saveConfigText().size() + 1);
  std::string text(n_bytes, '?');
  expectError(fz_pipeline_toml(pipeline.get(), text.data(), n_bytes - 1, &n_bytes),
              FZ_ERROR_BUFFER_TOO_SMALL, "bytes");
  ASSERT_EQ(fz_pipeline_toml(pipeline.get(), text.data(), text.size(), &n_bytes), FZ_OK);
  EXPECT_STREQ(text.c_str(), cxx.saveConfigText().c_str());

  expectError(fz_pipeline_explain(pipeline.get(), nullptr, 0, &n_bytes), FZ_ERROR_BUFFER_TOO_SMALL,
              "fz_pipeline_explain");
  text.assign(n_bytes, '?');
  ASSERT_EQ(fz_pipeline_explain(pipeline.get(), text.data(), text.size(), &n_bytes), FZ_OK);
  EXPECT_STREQ(text.c_str(), cxx.explain().c_str());
}

TEST(CPipeline, BoundModeAndSettingsReachTheStages) {
  for (const auto& [mode, cxx] :
       {std::pair{FZ_BOUND_ABS, ErrorBoundMode::ABS}, std::pair{FZ_BOUND_REL, ErrorBoundMode::REL},
        std::pair{FZ_BOUND_NOA, ErrorBoundMode::NOA}}) {
    fz_options options = cpuOptions();
    options.error_bound = 0.01;
    options.bound_mode = mode;
    options.fallback = FZ_FALLBACK_NONE;
    const fz_param radius = {"quantizer.quant_radius", "1000"};
    options.params = &radius;
    options.n_params = 1;
    const PipelineHandle pipeline = fromPreset("speed", options);
    const FrameInfo info =
        inspect(compressed(pipeline.get(), smoothField(DataType::FLOAT32, {500, 1, 1}).bytes));
    ASSERT_TRUE(info.bound.has_value());
    EXPECT_EQ(info.bound->mode, cxx);
    EXPECT_EQ(info.bound->requested, 0.01);
    bool found = false;
    for (const auto& [key, value] : info.stages[0].params) {
      found = found || (key == "quant_radius" && value == ParamValue(std::int64_t{1000}));
    }
    EXPECT_TRUE(found);
  }
}

TEST(CPipeline, FusionAndThreadsChangeNoByte) {
  const Field field = smoothField(DataType::FLOAT32, {1000, 7, 1});
  const Bytes wanted = compressed(fromPreset("cuszp2", cpuOptions()).get(), field.bytes);
  fz_options options = cpuOptions();
  options.fusion = FZ_FUSION_OFF;
  options.n_threads = 1;
  EXPECT_EQ(compressed(fromPreset("cuszp2", options).get(), field.bytes), wanted);
}

TEST(CPipeline, NullArgumentsAreErrors) {
  fz_pipeline* made = nullptr;
  const Bytes archive = sampleArchive();
  expectError(fz_pipeline_from_preset(nullptr, nullptr, &made), FZ_ERROR_INVALID_ARGUMENT,
              "name is NULL");
  expectError(fz_pipeline_from_preset("pfpl", nullptr, nullptr), FZ_ERROR_INVALID_ARGUMENT,
              "pipeline is NULL");
  expectError(fz_pipeline_from_toml(nullptr, nullptr, &made), FZ_ERROR_INVALID_ARGUMENT,
              "toml is NULL");
  expectError(fz_pipeline_from_toml("", nullptr, nullptr), FZ_ERROR_INVALID_ARGUMENT,
              "pipeline is NULL");
  expectError(fz_pipeline_from_archive(nullptr, 10, nullptr, &made), FZ_ERROR_INVALID_ARGUMENT,
              "archive is NULL");
  expectError(fz_pipeline_from_archive(archive.data(), archive.size(), nullptr, nullptr),
              FZ_ERROR_INVALID_ARGUMENT, "pipeline is NULL");
  expectError(fz_pipeline_for_decoding(nullptr, nullptr), FZ_ERROR_INVALID_ARGUMENT,
              "pipeline is NULL");
  std::size_t n_bytes = 1;
  char text[4];
  expectError(fz_pipeline_toml(nullptr, text, 4, &n_bytes), FZ_ERROR_INVALID_ARGUMENT,
              "pipeline is NULL");
  EXPECT_EQ(n_bytes, 0u);
  expectError(fz_pipeline_explain(nullptr, text, 4, &n_bytes), FZ_ERROR_INVALID_ARGUMENT,
              "pipeline is NULL");
  const PipelineHandle pipeline = fromPreset("pfpl", cpuOptions());
  expectError(fz_pipeline_toml(pipeline.get(), text, 4, nullptr), FZ_ERROR_INVALID_ARGUMENT,
              "text_bytes is NULL");
  expectError(fz_pipeline_toml(pipeline.get(), nullptr, 1 << 20, &n_bytes),
              FZ_ERROR_INVALID_ARGUMENT, "text is NULL");
  expectError(fz_pipeline_explain(pipeline.get(), text, 4, nullptr), FZ_ERROR_INVALID_ARGUMENT,
              "text_bytes is NULL");
  EXPECT_EQ(fz_pipeline_backend(nullptr), FZ_BACKEND_AUTO);
  fz_pipeline_destroy(nullptr);
}

TEST(CPipeline, OptionsOutsideTheirRangeAreErrors) {
  const auto expectRefused = [](auto change, fz_status status, const char* part) {
    fz_options options = cpuOptions();
    change(options);
    fz_pipeline* made = reinterpret_cast<fz_pipeline*>(&options);
    expectError(fz_pipeline_from_preset("speed", &options, &made), status, part);
    EXPECT_EQ(made, nullptr);
  };
  const fz_status argument = FZ_ERROR_INVALID_ARGUMENT;
  expectRefused([](fz_options& o) { o.struct_size = 0; }, argument, "struct_size");
  expectRefused([](fz_options& o) { o.struct_size = offsetof(fz_options, fallback) - 1; }, argument,
                "struct_size");
  expectRefused([](fz_options& o) { o.fallback = 2; }, argument, "fallback");
  expectRefused([](fz_options& o) { o.reserved = 1; }, argument, "reserved");
  expectRefused([](fz_options& o) { o.type = 10; }, argument, "not a type");
  expectRefused([](fz_options& o) { o.type = -1; }, argument, "not a type");
  expectRefused([](fz_options& o) { o.backend = 3; }, argument, "backend");
  expectRefused([](fz_options& o) { o.backend = -1; }, argument, "backend");
  expectRefused([](fz_options& o) { o.memory = 2; }, argument, "memory");
  expectRefused([](fz_options& o) { o.bound_mode = 4; }, argument, "bound_mode");
  expectRefused([](fz_options& o) { o.fusion = 2; }, argument, "fusion");
  expectRefused([](fz_options& o) { o.device = -2; }, argument, "device");
  expectRefused([](fz_options& o) { o.n_params = 1; }, argument, "params is NULL");
  expectRefused([](fz_options& o) { o.memory = FZ_MEMORY_DEVICE; }, FZ_ERROR_NO_DEVICE, "device");
  expectRefused([](fz_options& o) { o.allocator.release = [](void*, size_t, void*) {}; }, argument,
                "allocator");
  static const fz_param kNullValue[] = {{"quant_radius", nullptr}};
  static const fz_param kUnknownKey[] = {{"no_such_key", "1"}};
  static const fz_param kBadValue[] = {{"quant_radius", "many"}};
  const auto with = [](const fz_param* params) {
    return [params](fz_options& o) {
      o.params = params;
      o.n_params = 1;
    };
  };
  expectRefused(with(kNullValue), argument, "params[0]");
  expectRefused(with(kUnknownKey), argument, "no_such_key");
  expectRefused(with(kBadValue), argument, "quant_radius");
  expectRefused([](fz_options& o) { o.error_bound = -1.0; }, argument, "error_bound");
  expectRefused([](fz_options& o) { o.error_bound = std::nan(""); }, argument, "error_bound");
  expectRefused([](fz_options& o) { o.type = FZ_TYPE_INT8; }, FZ_ERROR_CONFIG, "int8");
  if (!isBackendAvailable(Backend::CUDA)) {
    expectRefused([](fz_options& o) { o.backend = FZ_BACKEND_CUDA; }, FZ_ERROR_NO_DEVICE, "CUDA");
  }
}

TEST(CPipeline, WrongPresetsTextsAndArchivesAreErrors) {
  fz_pipeline* made = nullptr;
  expectError(fz_pipeline_from_preset("nosuch", nullptr, &made), FZ_ERROR_INVALID_ARGUMENT,
              "no preset 'nosuch'; the presets are fast, balanced, best, auto");
  expectError(fz_pipeline_from_toml("stage = [", nullptr, &made), FZ_ERROR_CONFIG, "toml:1");
  expectError(fz_pipeline_from_toml("[[stage]]\nname = \"a\"\ntype = \"Nosuch\"\n", nullptr, &made),
              FZ_ERROR_CONFIG, "Nosuch");
  expectError(fz_pipeline_from_archive("no archive", 10, nullptr, &made), FZ_ERROR_CORRUPT, "");
  Bytes archive = sampleArchive();
  for (std::size_t n_bytes = 0; n_bytes < 600; n_bytes += 7) {
    EXPECT_NE(fz_pipeline_from_archive(archive.data(), n_bytes, nullptr, &made), FZ_OK) << n_bytes;
    EXPECT_EQ(made, nullptr);
  }
}

TEST(CPipeline, ADecoderRefusesToCompress) {
  const PipelineHandle pipeline = decoder(cpuOptions());
  std::size_t n_bytes = 1;
  void* memory = nullptr;
  char buffer[16] = {};
  expectError(fz_compress_bound(pipeline.get(), 16, &n_bytes), FZ_ERROR_INVALID_STATE, "decoding");
  EXPECT_EQ(n_bytes, 0u);
  expectError(fz_compress(pipeline.get(), buffer, 16, buffer, 16, &n_bytes, nullptr),
              FZ_ERROR_INVALID_STATE, "decoding");
  expectError(fz_compress_alloc(pipeline.get(), buffer, 16, &memory, &n_bytes, nullptr),
              FZ_ERROR_INVALID_STATE, "decoding");
  expectError(fz_pipeline_toml(pipeline.get(), buffer, 16, &n_bytes), FZ_ERROR_INVALID_STATE,
              "decoding");
  expectError(fz_pipeline_explain(pipeline.get(), buffer, 16, &n_bytes), FZ_ERROR_INVALID_STATE,
              "decoding");
}

TEST(CPipeline, PresetWithoutABoundCompressesNothingAndSaysWhatToSet) {
  const fz_options options = cpuOptions();
  fz_pipeline* made = nullptr;
  ASSERT_EQ(fz_pipeline_from_preset("cuszp2", &options, &made), FZ_OK) << fz_last_error();
  const PipelineHandle pipeline(made);
  Bytes archive(sampleField().bytes.size() * 2);
  std::size_t n_bytes = 0;
  expectError(fz_compress(pipeline.get(), sampleField().bytes.data(), sampleField().bytes.size(),
                          archive.data(), archive.size(), &n_bytes, nullptr),
              FZ_ERROR_INVALID_ARGUMENT, "needs an error bound");
}

TEST(CPipeline, LosslessPresetKeepsEveryBitOfBothTypes) {
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    const Field field = smoothField(type, {40, 20, 1});
    fz_options options = cpuOptions();
    options.type = static_cast<int32_t>(type);
    const PipelineHandle pipeline = fromPreset("lossless", options);
    const Bytes archive = compressed(pipeline.get(), field.bytes);
    EXPECT_TRUE(inspect(archive).lossless);
    EXPECT_EQ(decompressed(pipeline.get(), archive, field.bytes.size()), field.bytes);
    options.error_bound = 1e-3;
    fz_pipeline* made = nullptr;
    expectError(fz_pipeline_from_preset("lossless", &options, &made), FZ_ERROR_INVALID_ARGUMENT,
                "takes no bound");
  }
}

}  // namespace
}  // namespace fz::test
