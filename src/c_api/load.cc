// The pipelines of a handle: the plain one, and the one with a Mask.
#include <charconv>
#include <cstring>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "core/require.h"
#include "fz/presets.h"

namespace fz::c_api {

namespace {

constexpr std::size_t kBlockAlignment = 64;  // what a pool wants of its blocks

void* allocateBlock(std::size_t n_bytes, void* context) {
  const auto* allocator = static_cast<const fz_allocator*>(context);
  return allocator->allocate(n_bytes, kBlockAlignment, allocator->context);
}
void releaseBlock(void* memory, std::size_t n_bytes, void* context) {
  const auto* allocator = static_cast<const fz_allocator*>(context);
  allocator->release(memory, n_bytes, allocator->context);
}

void loadConfig(const Recipe& recipe, Pipeline& pipeline) {
  pipeline.loadConfigText(recipe.toml, recipe.name, recipe.overrides, false);
}

}  // namespace

void requireEncoder(const fz_pipeline& handle, const char* who) {
  FZ_REQUIRE(handle.can_compress, ErrorCode::kInvalidState,
             "{}: this pipeline was made for decoding", who);
  FZ_REQUIRE(!handle.needs_bound, ErrorCode::kInvalidArgument,
             "{}: preset '{}' needs an error bound, and any default would be a guess; set "
             "fz_options.bound_mode and error_bound, or take the preset \"lossless\"",
             who, handle.recipe.name);
}

void applyOptions(fz_pipeline& handle, Pipeline& pipeline) {
  const fz_options& options = handle.recipe.options;
  pipeline.setBackend(static_cast<Backend>(options.backend));
  if (options.fusion == FZ_FUSION_OFF) {
    pipeline.setFusion(Fusion::Off);
  }
  if (options.device >= 0) {
    pipeline.setDevice(options.device);
  }
  pipeline.setThreads(options.n_threads);
  pipeline.setLosslessFallback(options.fallback == FZ_FALLBACK_LOSSLESS);
  pipeline.setDecodeLimits({options.max_output_bytes, options.max_memory_bytes});
  MemoryPool& pool = pipeline.getMemoryPool();
  FZ_REQUIRE(!handle.device_memory || pool.getBackend() == Backend::CUDA, ErrorCode::kNoDevice,
             "fz_options: device memory was asked for, but this pipeline runs on the CPU");
  if (handle.allocator.allocate != nullptr && pool.getBackend() == Backend::CPU) {
    MemoryPoolConfig config;
    config.host_allocator = {&allocateBlock, &releaseBlock, &handle.allocator};
    pool.reconfigure(config);
  }
}

void giveText(const std::string& made,
              char* text,
              std::size_t capacity,
              std::size_t* text_bytes,
              const char* who) {
  *text_bytes = made.size() + 1;
  FZ_REQUIRE(*text_bytes <= capacity, ErrorCode::kBufferTooSmall,
             "{}: the text has {} bytes, the caller's buffer {}", who, *text_bytes, capacity);
  FZ_REQUIRE_POINTER(text);
  std::memcpy(text, made.c_str(), *text_bytes);
}

CompressOptions compressOptionsOf(const fz_pipeline& handle) {
  const Recipe& recipe = handle.recipe;
  CompressOptions options;
  options.preset = recipe.name;
  const Preset* const preset = findPreset(recipe.name);
  if (preset == nullptr || preset->toml != recipe.toml) {
    options.config_toml = recipe.toml;
  }
  options.dims = recipe.overrides.dims;
  for (const auto& [key, value] : recipe.overrides.params) {
    if (key != "error_bound" && key != "error_bound_mode") {
      options.params.emplace_back(key, value);
    }
  }
  options.backend = static_cast<Backend>(recipe.options.backend);
  options.threads = recipe.options.n_threads;
  options.lossless_fallback = recipe.options.fallback == FZ_FALLBACK_LOSSLESS;
  options.fill = handle.fill;
  options.suspect_fill = recipe.options.fill_check == FZ_FILL_CHECK;
  return options;
}

void setBound(const fz_pipeline& handle, CompressOptions& options) {
  for (const auto& [key, value] : handle.recipe.overrides.params) {
    if (key == "error_bound") {
      double bound = 0.0;
      const char* const end = value.data() + value.size();
      const auto [stop, failure] = std::from_chars(value.data(), end, bound);
      FZ_REQUIRE(failure == std::errc() && stop == end, ErrorCode::kConfig,
                 "error_bound is '{}', not a number", value);
      options.error_bound = bound;
    } else if (key == "error_bound_mode") {
      options.mode = errorBoundModeFromName(value);
      FZ_REQUIRE(options.mode.has_value(), ErrorCode::kConfig, "error_bound_mode is '{}'", value);
    }
  }
}

void loadStages(fz_pipeline& handle) {
  Pipeline& pipeline = handle.pipeline;
  loadConfig(handle.recipe, pipeline);
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    if (canBeMasked(pipeline, type)) {
      handle.masked_type = type;
    }
  }
  pipeline.finalize();
}

Pipeline& maskedFor(fz_pipeline& handle, ByteView values) {
  return maskedFor(handle,
                   maskSettingsFor(handle.pipeline, handle.masked_type, values, handle.fill));
}

Pipeline& maskedFor(fz_pipeline& handle, const MaskSettings& settings) {
  if (handle.masked == nullptr || handle.masked->settings != settings) {
    handle.masked.reset();
    auto made = std::make_unique<MaskedPipeline>();
    made->settings = settings;
    applyOptions(handle, made->pipeline);
    loadConfig(handle.recipe, made->pipeline);
    addMask(made->pipeline, handle.masked_type, handle.fill, settings);
    made->pipeline.finalize();
    handle.masked = std::move(made);
  }
  return handle.masked->pipeline;
}

std::size_t maskedBound(const fz_pipeline& handle, std::size_t n_bytes) {
  if (handle.measured == nullptr) {
    // Never runs, so it is on the CPU and takes no memory of the caller's; the bytes are the same.
    auto made = std::make_unique<Pipeline>();
    made->setBackend(Backend::CPU);
    made->setLosslessFallback(handle.recipe.options.fallback == FZ_FALLBACK_LOSSLESS);
    loadConfig(handle.recipe, *made);
    addMask(*made, handle.masked_type, handle.fill, {});
    made->finalize();
    handle.measured = std::move(made);
  }
  return handle.measured->getMaxCompressedSize(n_bytes);
}

}  // namespace fz::c_api
