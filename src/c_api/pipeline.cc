// Pipelines from presets, texts and archives.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "c_api/versioned.h"
#include "fz/presets.h"
#include "fz/stage_descriptor.h"
#include "stage/stage.h"

using fz::ErrorCode;
using fz::c_api::giveText;
using fz::c_api::guarded;

namespace {

constexpr std::size_t kFirstOptionsBytes = offsetof(fz_options, fallback);

fz_options defaults() {
  fz_options options = {};
  options.struct_size = sizeof(options);
  options.type = FZ_TYPE_UNKNOWN;
  options.device = -1;
  return options;
}

void requireChoice(int32_t value, int32_t last, const char* what) {
  FZ_REQUIRE(value >= 0 && value <= last, ErrorCode::kInvalidArgument,
             "fz_options: {} is {}, allowed are 0 to {}", what, value, last);
}

fz::ConfigOverrides overridesOf(const fz_options& options) {
  fz::ConfigOverrides overrides;
  overrides.input_type = static_cast<fz::DataType>(options.type);
  overrides.dims = {options.dims[0], options.dims[1], options.dims[2]};
  // A NaN is not 0 either: it reaches the stage, which refuses it.
  if (options.error_bound != 0.0) {
    overrides.params.emplace_back("error_bound", fmt::format("{}", options.error_bound));
  }
  if (options.bound_mode != FZ_BOUND_DEFAULT) {
    const auto mode = static_cast<fz::ErrorBoundMode>(options.bound_mode - FZ_BOUND_ABS);
    overrides.params.emplace_back("error_bound_mode", fz::errorBoundModeName(mode));
  }
  for (std::size_t i = 0; i < options.n_params; ++i) {
    const fz_param& param = options.params[i];
    FZ_REQUIRE(param.key != nullptr && param.value != nullptr, ErrorCode::kInvalidArgument,
               "fz_options: key or value of params[{}] is NULL", i);
    overrides.params.emplace_back(param.key, param.value);
  }
  return overrides;
}

/// A handle with everything but stages.
std::unique_ptr<fz_pipeline> makeHandle(const fz_options& options) {
  auto handle = std::make_unique<fz_pipeline>();
  handle->allocator = options.allocator;
  handle->device_memory = options.memory == FZ_MEMORY_DEVICE;
  handle->recipe.options = options;
  handle->recipe.options.params = nullptr;  // the caller's
  handle->recipe.options.n_params = 0;
  handle->recipe.options.fill = nullptr;
  handle->recipe.options.n_fill = 0;
  fz::c_api::applyOptions(*handle, handle->pipeline);
  return handle;
}

std::unique_ptr<fz_pipeline> load(const std::string& toml,
                                  const std::string& name,
                                  const fz_options& options) {
  std::unique_ptr<fz_pipeline> handle = makeHandle(options);
  handle->recipe.toml = toml;
  handle->recipe.name = name;
  handle->recipe.overrides = overridesOf(options);
  handle->fill.assign(options.fill, options.fill + options.n_fill);
  fz::c_api::loadStages(*handle);
  return handle;
}

/// fz_find_bound() takes a preset without a bound, so only compressing needs one.
std::unique_ptr<fz_pipeline> loadPreset(const fz::Preset& preset, const fz_options& options) {
  const bool is_lossless = &preset == &fz::losslessPreset();
  bool has_bound = options.error_bound != 0.0;
  for (std::size_t i = 0; i < options.n_params; ++i) {
    const std::string_view key = options.params[i].key == nullptr ? "" : options.params[i].key;
    has_bound = has_bound || key == "error_bound" || key.ends_with(".error_bound");
  }
  FZ_REQUIRE(!is_lossless || !has_bound, ErrorCode::kInvalidArgument,
             "fz_options: preset 'lossless' keeps every bit and takes no bound; leave it out");
  fz_options with_width = options;
  std::vector<fz_param> params(options.params, options.params + options.n_params);
  std::string width;
  if (is_lossless && options.type != FZ_TYPE_UNKNOWN) {
    width = fmt::format("{}", fz_type_size(options.type));
    params.insert(params.begin(), fz_param{"element_width", width.c_str()});
    with_width.params = params.data();
    with_width.n_params = params.size();
  }
  auto handle = load(std::string(preset.toml), std::string(preset.name), with_width);
  handle->needs_bound = !is_lossless && !has_bound;
  return handle;
}

bool isLossy(const fz::Pipeline& pipeline) {
  const auto stages = pipeline.getStages();
  return std::any_of(stages.begin(), stages.end(), [](const fz::Stage* stage) {
    return stage->paramTable().find("error_bound") != nullptr;
  });
}

/// Declared values are kept, or the pipeline is refused before it loses the first of them.
fz_pipeline* withFillChecked(std::unique_ptr<fz_pipeline> handle) {
  if (handle->fill.empty()) {
    return handle.release();
  }
  const bool can_be_masked = handle->masked_type != fz::DataType::UNKNOWN;
  FZ_REQUIRE(can_be_masked || !isLossy(handle->pipeline), ErrorCode::kUnsupported,
             "fz_options: fill values cannot be taken out before these stages; they need one first "
             "stage that takes floats and is not a Mask");
  if (can_be_masked) {
    fz::c_api::maskedBound(*handle, 0);  // refuses more of them than an archive can name
  }
  return handle.release();
}

std::unique_ptr<fz_pipeline> loadArchive(fz::ByteView frame, fz_options options) {
  const fz::FrameInfo info = fz::inspect(frame);
  if (options.type == FZ_TYPE_UNKNOWN) {
    // Where the first stage takes any bytes, only the frame says of what type they were.
    options.type = static_cast<int32_t>(info.type);
  }
  // Its Mask was put there for a field with missing values, as it will be for the next such field.
  const bool is_masked = info.missing && info.missing->n_missing > 0;
  if (is_masked && !info.lossless) {
    fz_options with_fill = options;
    if (options.n_fill == 0) {
      with_fill.fill = info.missing->fill.data();
      with_fill.n_fill = info.missing->fill.size();
    }
    auto handle = load(fz::c_api::configOfFrame(frame, false), "archive", with_fill);
    if (handle->masked_type != fz::DataType::UNKNOWN) {
      return handle;
    }
  }
  return load(fz::c_api::configOfFrame(frame, true), "archive", options);
}

}  // namespace

fz_options fz::c_api::checkedOptions(const fz_options* given) {
  if (given == nullptr) {
    return defaults();
  }
  const fz_options options = fz::c_api::readVersioned(*given, kFirstOptionsBytes, "fz_options");
  FZ_REQUIRE(options.type == FZ_TYPE_UNKNOWN || fz_type_size(options.type) > 0,
             ErrorCode::kInvalidArgument, "fz_options: {} is not a type", options.type);
  requireChoice(options.backend, FZ_BACKEND_CUDA, "backend");
  requireChoice(options.memory, FZ_MEMORY_DEVICE, "memory");
  requireChoice(options.bound_mode, FZ_BOUND_NOA, "bound_mode");
  requireChoice(options.fusion, FZ_FUSION_OFF, "fusion");
  requireChoice(options.fallback, FZ_FALLBACK_NONE, "fallback");
  requireChoice(options.reserved, 0, "reserved");
  FZ_REQUIRE(options.device >= -1, ErrorCode::kInvalidArgument, "fz_options: invalid device {}",
             options.device);
  FZ_REQUIRE(options.params != nullptr || options.n_params == 0, ErrorCode::kInvalidArgument,
             "fz_options: params is NULL, but n_params is {}", options.n_params);
  requireChoice(options.fill_check, FZ_FILL_TRUST, "fill_check");
  requireChoice(options.reserved_2, 0, "reserved_2");
  FZ_REQUIRE(options.fill != nullptr || options.n_fill == 0, ErrorCode::kInvalidArgument,
             "fz_options: fill is NULL, but n_fill is {}", options.n_fill);
  FZ_REQUIRE((options.allocator.allocate == nullptr) == (options.allocator.release == nullptr),
             ErrorCode::kInvalidArgument,
             "fz_options: an allocator needs both of its functions, or none");
  return options;
}

fz_status fz_options_init(fz_options* options, size_t struct_size) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(options);
    FZ_REQUIRE(struct_size >= kFirstOptionsBytes, ErrorCode::kInvalidArgument,
               "{}: struct_size is {}, at least {} is needed", who, struct_size,
               kFirstOptionsBytes);
    options->struct_size = struct_size;
    fz::c_api::writeVersioned(defaults(), options, kFirstOptionsBytes, who);
  });
}

fz_status fz_pipeline_from_preset(const char* name,
                                  const fz_options* options,
                                  fz_pipeline** pipeline) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(pipeline);
    *pipeline = nullptr;
    FZ_REQUIRE_POINTER(name);
    const fz::Preset* preset = fz::findPreset(name);
    if (preset == nullptr) {
      std::string names;
      for (const fz::Preset& known : fz::allPresets()) {
        names += fmt::format("{}, ", known.name);
      }
      FZ_REQUIRE(false, ErrorCode::kInvalidArgument, "{}: no preset '{}'; the presets are {}{}",
                 who, name, names, fz::losslessPreset().name);
    }
    *pipeline = withFillChecked(loadPreset(*preset, fz::c_api::checkedOptions(options)));
  });
}

fz_status fz_pipeline_from_toml(const char* toml,
                                const fz_options* options,
                                fz_pipeline** pipeline) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(pipeline);
    *pipeline = nullptr;
    FZ_REQUIRE_POINTER(toml);
    *pipeline = withFillChecked(load(toml, "toml", fz::c_api::checkedOptions(options)));
  });
}

fz_status fz_pipeline_from_archive(const void* archive,
                                   size_t archive_bytes,
                                   const fz_options* options,
                                   fz_pipeline** pipeline) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(pipeline);
    *pipeline = nullptr;
    FZ_REQUIRE_POINTER(archive);
    const fz::ByteView frame(static_cast<const std::uint8_t*>(archive), archive_bytes);
    *pipeline = withFillChecked(loadArchive(frame, fz::c_api::checkedOptions(options)));
  });
}

fz_status fz_pipeline_for_decoding(const fz_options* options, fz_pipeline** pipeline) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(pipeline);
    *pipeline = nullptr;
    std::unique_ptr<fz_pipeline> handle = makeHandle(fz::c_api::checkedOptions(options));
    handle->can_compress = false;
    // Decoding into a caller's buffer wants a finalized pipeline; its stages do not matter.
    const fz::StageDescriptor& any = *fz::allStages().front();
    handle->pipeline.addStage(any.make(any.type_combinations.front()));
    handle->pipeline.finalize();
    *pipeline = handle.release();
  });
}

void fz_pipeline_destroy(fz_pipeline* pipeline) {
  delete pipeline;
}

int32_t fz_pipeline_backend(const fz_pipeline* pipeline) {
  return pipeline == nullptr ? static_cast<int32_t>(FZ_BACKEND_AUTO)
                             : static_cast<int32_t>(pipeline->pipeline.getBackend());
}

fz_status fz_pipeline_toml(const fz_pipeline* pipeline,
                           char* text,
                           size_t capacity,
                           size_t* text_bytes) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(text_bytes);
    *text_bytes = 0;
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE(pipeline->can_compress, ErrorCode::kInvalidState,
               "{}: a pipeline for decoding has no configuration", who);
    giveText(pipeline->pipeline.saveConfigText(), text, capacity, text_bytes, who);
  });
}

fz_status fz_pipeline_explain(const fz_pipeline* pipeline,
                              char* text,
                              size_t capacity,
                              size_t* text_bytes) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(text_bytes);
    *text_bytes = 0;
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE(pipeline->can_compress, ErrorCode::kInvalidState,
               "{}: a pipeline for decoding has no stages of its own", who);
    giveText(pipeline->pipeline.explain(), text, capacity, text_bytes, who);
  });
}
