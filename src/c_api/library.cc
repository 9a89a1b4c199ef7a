// What the library is and has: version, types, presets, stages.
#include <cstring>

#include "c_api/guard.h"
#include "c_api/versioned.h"
#include "fz/backend.h"
#include "fz/data_type.h"
#include "fz/presets.h"
#include "fz/stage_descriptor.h"

#define FZ_TEXT_OF(x) #x
#define FZ_VERSION_TEXT(major, minor, patch) \
  FZ_TEXT_OF(major) "." FZ_TEXT_OF(minor) "." FZ_TEXT_OF(patch)

namespace {

using fz::ErrorCode;

constexpr char kVersion[] = FZ_VERSION_TEXT(FZ_VERSION_MAJOR, FZ_VERSION_MINOR, FZ_VERSION_PATCH);
static_assert(std::string_view(kVersion) == FZ_PROJECT_VERSION,
              "fz.h does not match the library's version");

// Names and texts come from literals, so that a zero byte follows each of them; the tests look.
const char* literal(std::string_view view) {
  return view.data();
}

const fz::StageDescriptor& stageAt(std::size_t index, const char* who) {
  const auto stages = fz::allStages();
  FZ_REQUIRE(index < stages.size(), ErrorCode::kInvalidArgument, "{}: stage {} of {}", who, index,
             stages.size());
  return *stages[index];
}

const fz::Param& paramAt(std::size_t stage, std::size_t index, const char* who) {
  const fz::StageDescriptor& descriptor = stageAt(stage, who);
  const auto& rows = descriptor.params().rows();
  FZ_REQUIRE(index < rows.size(), ErrorCode::kInvalidArgument, "{}: setting {} of {} of {}", who,
             index, rows.size(), descriptor.name);
  return rows[index];
}

int kindOf(fz::ParamKind kind) {
  switch (kind) {
    case fz::ParamKind::kBool:
      return FZ_PARAM_BOOL;
    case fz::ParamKind::kInt:
      return FZ_PARAM_INT;
    case fz::ParamKind::kReal:
      return FZ_PARAM_REAL;
    case fz::ParamKind::kChoice:
    case fz::ParamKind::kText:  // a choice among any texts
      break;
  }
  return FZ_PARAM_CHOICE;
}

fz::DataType typeOf(int32_t type) {
  return type >= 0 && type <= FZ_TYPE_FLOAT64 ? static_cast<fz::DataType>(type)
                                              : fz::DataType::UNKNOWN;
}

}  // namespace

const char* fz_version(void) {
  return kVersion;
}

const char* fz_type_name(int32_t type) {
  return literal(fz::dataTypeToString(typeOf(type)));
}

size_t fz_type_size(int32_t type) {
  const fz::DataType known = typeOf(type);
  return fz::isKnown(known) ? fz::getDataTypeSize(known) : 0;
}

int32_t fz_backend_available(int32_t backend) {
  return backend >= FZ_BACKEND_AUTO && backend <= FZ_BACKEND_CUDA &&
                 fz::isBackendAvailable(static_cast<fz::Backend>(backend))
             ? 1
             : 0;
}

size_t fz_preset_count(void) {
  return fz::allPresets().size();
}

fz_status fz_preset_get(size_t index, fz_preset_info* info) {
  return fz::c_api::guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(info);
    const auto presets = fz::allPresets();
    FZ_REQUIRE(index < presets.size(), ErrorCode::kInvalidArgument, "{}: {} of {}", who, index,
               presets.size());
    const fz::Preset& preset = presets[index];
    fz_preset_info row = {};
    row.name = literal(preset.name);
    row.summary = literal(preset.summary);
    row.toml = literal(preset.toml);
    fz::c_api::writeVersioned(row, info, sizeof(fz_preset_info), "fz_preset_info");
  });
}

size_t fz_stage_count(void) {
  return fz::allStages().size();
}

fz_status fz_stage_get(size_t index, fz_stage_info* info) {
  return fz::c_api::guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(info);
    const fz::StageDescriptor& stage = stageAt(index, who);
    fz_stage_info row = {};
    row.name = literal(stage.name);
    row.category = literal(stage.category);
    row.summary = literal(stage.summary);
    row.id = stage.id;
    row.n_params = static_cast<uint32_t>(stage.params().rows().size());
    fz::c_api::writeVersioned(row, info, sizeof(fz_stage_info), "fz_stage_info");
  });
}

fz_status fz_stage_param_get(size_t stage, size_t index, fz_param_info* info) {
  return fz::c_api::guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(info);
    const fz::Param& param = paramAt(stage, index, who);
    fz_param_info row = {};
    row.key = literal(param.key);
    row.help = literal(param.help);
    row.min = param.min;
    row.max = param.max;
    row.kind = kindOf(param.kind);
    row.n_choices = static_cast<int32_t>(param.choices.size());
    const std::string value = fz::toTomlText(param.config_default.value_or(param.default_value));
    FZ_ASSERT(value.size() < sizeof(row.default_value));
    std::memcpy(row.default_value, value.c_str(), value.size() + 1);
    fz::c_api::writeVersioned(row, info, sizeof(fz_param_info), "fz_param_info");
  });
}

fz_status fz_stage_param_choice(size_t stage, size_t index, size_t choice, const char** text) {
  return fz::c_api::guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(text);
    *text = nullptr;
    const fz::Param& param = paramAt(stage, index, who);
    FZ_REQUIRE(choice < param.choices.size(), ErrorCode::kInvalidArgument,
               "{}: choice {} of {} of {}", who, choice, param.choices.size(), param.key);
    *text = literal(param.choices[choice]);
  });
}
