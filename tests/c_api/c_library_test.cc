// What does not need a pipeline: names, lists, versions of structs.
#include <cstring>
#include <set>
#include <thread>

#include "c_api/c_api_support.h"
#include "fz/backend.h"
#include "fz/error.h"
#include "fz/presets.h"
#include "fz/stage_descriptor.h"

namespace fz::test {
namespace {

TEST(CLibrary, VersionIsThatOfTheHeader) {
  EXPECT_EQ(std::string(fz_version()), std::to_string(FZ_VERSION_MAJOR) + "." +
                                           std::to_string(FZ_VERSION_MINOR) + "." +
                                           std::to_string(FZ_VERSION_PATCH));
}

TEST(CLibrary, EveryStatusHasItsOwnName) {
  std::set<std::string> names;
  for (fz_status status = FZ_OK; status <= FZ_ERROR_CANCELLED; ++status) {
    names.insert(fz_status_name(status));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(FZ_ERROR_CANCELLED + 1));
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_STREQ(fz_status_name(FZ_OK), "ok");
  EXPECT_STREQ(fz_status_name(FZ_ERROR_CORRUPT), errorCodeName(ErrorCode::kCorrupt));
  EXPECT_STREQ(fz_status_name(-1), "unknown");
  EXPECT_STREQ(fz_status_name(FZ_ERROR_CANCELLED + 1), "unknown");
}

TEST(CLibrary, TypesAreThoseOfFrames) {
  for (int32_t type = 0; type <= FZ_TYPE_FLOAT64; ++type) {
    EXPECT_EQ(fz_type_name(type), dataTypeToString(static_cast<DataType>(type)));
    EXPECT_EQ(fz_type_size(type), getDataTypeSize(static_cast<DataType>(type)));
  }
  for (const int32_t type : {-1, 10, 254, 255, 256, 264}) {
    EXPECT_STREQ(fz_type_name(type), "unknown") << type;
    EXPECT_EQ(fz_type_size(type), 0u) << type;
  }
}

TEST(CLibrary, BackendsAreAvailableAsInCxx) {
  EXPECT_EQ(fz_backend_available(FZ_BACKEND_CPU), 1);
  EXPECT_EQ(fz_backend_available(FZ_BACKEND_AUTO), 1);
  EXPECT_EQ(fz_backend_available(FZ_BACKEND_CUDA), isBackendAvailable(Backend::CUDA) ? 1 : 0);
  EXPECT_EQ(fz_backend_available(-1), 0);
  EXPECT_EQ(fz_backend_available(3), 0);
}

TEST(CLibrary, ListsEveryPreset) {
  ASSERT_EQ(fz_preset_count(), allPresets().size());
  for (std::size_t i = 0; i < fz_preset_count(); ++i) {
    fz_preset_info info = {};
    info.struct_size = sizeof(info);
    ASSERT_EQ(fz_preset_get(i, &info), FZ_OK) << fz_last_error();
    // The comparison reads up to the zero byte, which must be where the text ends.
    EXPECT_EQ(std::string(info.name), allPresets()[i].name);
    EXPECT_EQ(std::string(info.summary), allPresets()[i].summary);
    EXPECT_EQ(std::string(info.toml), allPresets()[i].toml);
  }
}

TEST(CLibrary, ListsEveryStageSettingAndChoice) {
  ASSERT_EQ(fz_stage_count(), allStages().size());
  for (std::size_t i = 0; i < fz_stage_count(); ++i) {
    const StageDescriptor& stage = *allStages()[i];
    fz_stage_info info = {};
    info.struct_size = sizeof(info);
    ASSERT_EQ(fz_stage_get(i, &info), FZ_OK) << fz_last_error();
    EXPECT_EQ(std::string(info.name), stage.name);
    EXPECT_EQ(std::string(info.category), stage.category);
    EXPECT_EQ(std::string(info.summary), stage.summary);
    EXPECT_EQ(info.id, stage.id);
    ASSERT_EQ(info.n_params, stage.params().rows().size());
    for (std::size_t k = 0; k < info.n_params; ++k) {
      const Param& param = stage.params().rows()[k];
      fz_param_info row = {};
      row.struct_size = sizeof(row);
      ASSERT_EQ(fz_stage_param_get(i, k, &row), FZ_OK) << fz_last_error();
      EXPECT_EQ(std::string(row.key), param.key);
      EXPECT_EQ(std::string(row.help), param.help);
      EXPECT_EQ(row.min, param.min);
      EXPECT_EQ(row.max, param.max);
      EXPECT_EQ(row.kind, param.kind == ParamKind::kText ? static_cast<int32_t>(FZ_PARAM_CHOICE)
                                                         : static_cast<int32_t>(param.kind));
      EXPECT_EQ(std::string(row.default_value),
                toTomlText(param.config_default.value_or(param.default_value)));
      ASSERT_EQ(row.n_choices, static_cast<int32_t>(param.choices.size()));
      for (std::size_t c = 0; c < param.choices.size(); ++c) {
        const char* text = nullptr;
        ASSERT_EQ(fz_stage_param_choice(i, k, c, &text), FZ_OK) << fz_last_error();
        EXPECT_EQ(std::string(text), param.choices[c]);
      }
      const char* text = "left";
      expectError(fz_stage_param_choice(i, k, param.choices.size(), &text),
                  FZ_ERROR_INVALID_ARGUMENT, "choice");
      EXPECT_EQ(text, nullptr);
    }
    fz_param_info row = {};
    row.struct_size = sizeof(row);
    expectError(fz_stage_param_get(i, info.n_params, &row), FZ_ERROR_INVALID_ARGUMENT, "setting");
  }
}

TEST(CLibrary, IndicesBeyondTheListsAreErrors) {
  fz_preset_info preset = {};
  preset.struct_size = sizeof(preset);
  expectError(fz_preset_get(fz_preset_count(), &preset), FZ_ERROR_INVALID_ARGUMENT,
              "fz_preset_get: ");
  fz_stage_info stage = {};
  stage.struct_size = sizeof(stage);
  expectError(fz_stage_get(fz_stage_count(), &stage), FZ_ERROR_INVALID_ARGUMENT, "fz_stage_get: ");
  fz_param_info param = {};
  param.struct_size = sizeof(param);
  expectError(fz_stage_param_get(SIZE_MAX, 0, &param), FZ_ERROR_INVALID_ARGUMENT, "stage");
  const char* text = nullptr;
  expectError(fz_stage_param_choice(SIZE_MAX, 0, 0, &text), FZ_ERROR_INVALID_ARGUMENT, "stage");
}

TEST(CLibrary, NullResultsAreErrors) {
  expectError(fz_preset_get(0, nullptr), FZ_ERROR_INVALID_ARGUMENT, "fz_preset_get: info is NULL");
  expectError(fz_stage_get(0, nullptr), FZ_ERROR_INVALID_ARGUMENT, "info is NULL");
  expectError(fz_stage_param_get(0, 0, nullptr), FZ_ERROR_INVALID_ARGUMENT, "info is NULL");
  expectError(fz_stage_param_choice(0, 0, 0, nullptr), FZ_ERROR_INVALID_ARGUMENT, "text is NULL");
  expectError(fz_options_init(nullptr, sizeof(fz_options)), FZ_ERROR_INVALID_ARGUMENT,
              "options is NULL");
}

TEST(CStructs, TooShortOnesAreRefusedAndNotWritten) {
  fz_preset_info info = {};
  for (const std::size_t n_bytes : {std::size_t{0}, sizeof(info) - 1}) {
    info.struct_size = n_bytes;
    expectError(fz_preset_get(0, &info), FZ_ERROR_INVALID_ARGUMENT, "struct_size");
    EXPECT_EQ(info.name, nullptr);
  }
  fz_options options;
  std::memset(&options, 0x5a, sizeof(options));
  expectError(fz_options_init(&options, offsetof(fz_options, fallback) - 1),
              FZ_ERROR_INVALID_ARGUMENT, "struct_size");
  EXPECT_EQ(options.type, 0x5a5a5a5a);
}

/// A struct as a later version of the header could have it.
template <class T>
struct Longer {
  T known;
  std::uint64_t added[3];
};

TEST(CStructs, LongerOnesOfLaterVersionsAreFilledWithZeros) {
  Longer<fz_preset_info> info = {};
  info.known.struct_size = sizeof(info);
  info.added[2] = 7;
  ASSERT_EQ(fz_preset_get(0, &info.known), FZ_OK) << fz_last_error();
  EXPECT_EQ(info.known.struct_size, sizeof(info));
  EXPECT_EQ(info.added[2], 0u);
  EXPECT_EQ(std::string(info.known.name), allPresets()[0].name);
}

TEST(CStructs, LongerOptionsAreTakenUnlessTheySayWhatIsNotKnown) {
  Longer<fz_options> options;
  std::memset(&options, 0x5a, sizeof(options));
  ASSERT_EQ(fz_options_init(&options.known, sizeof(options)), FZ_OK) << fz_last_error();
  EXPECT_EQ(options.added[2], 0u);
  fz_pipeline* made = nullptr;
  ASSERT_EQ(fz_pipeline_from_preset("pfpl", &options.known, &made), FZ_OK) << fz_last_error();
  fz_pipeline_destroy(made);
  options.added[2] = 1;
  expectError(fz_pipeline_from_preset("pfpl", &options.known, &made), FZ_ERROR_UNSUPPORTED,
              "does not know");
  EXPECT_EQ(made, nullptr);
}

TEST(CErrors, MessagesBelongToTheirThread) {
  expectError(fz_preset_get(0, nullptr), FZ_ERROR_INVALID_ARGUMENT, "fz_preset_get");
  std::thread([] {
    EXPECT_STREQ(fz_last_error(), "");
    expectError(fz_stage_get(0, nullptr), FZ_ERROR_INVALID_ARGUMENT, "fz_stage_get");
  }).join();
  EXPECT_NE(std::string(fz_last_error()).find("fz_preset_get"), std::string::npos);
}

TEST(CErrors, LongMessagesAreCut) {
  fz_pipeline* made = nullptr;
  const std::string name(5000, 'x');
  expectError(fz_pipeline_from_preset(name.c_str(), nullptr, &made), FZ_ERROR_INVALID_ARGUMENT,
              "no preset 'xxx");
  EXPECT_EQ(std::strlen(fz_last_error()), 1023u);
}

}  // namespace
}  // namespace fz::test
