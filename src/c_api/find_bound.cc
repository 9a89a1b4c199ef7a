#include "c_api/guard.h"
#include "c_api/handles.h"
#include "core/require.h"
#include "fz/target.h"

namespace {

/// What the handle's recipe means to compress(), without its bound.
fz::CompressOptions optionsOf(const fz_pipeline& handle) {
  const fz::c_api::Recipe& recipe = handle.recipe;
  fz::CompressOptions options;
  options.preset = recipe.name;
  options.config_toml = recipe.toml;
  options.dims = recipe.overrides.dims;
  for (const auto& [key, value] : recipe.overrides.params) {
    if (key != "error_bound" && key != "error_bound_mode") {
      options.params.emplace_back(key, value);
    }
  }
  options.backend = static_cast<fz::Backend>(recipe.options.backend);
  options.threads = recipe.options.n_threads;
  options.lossless_fallback = recipe.options.fallback == FZ_FALLBACK_LOSSLESS;
  options.fill = handle.fill;
  options.suspect_fill = recipe.options.fill_check == FZ_FILL_CHECK;
  return options;
}

}  // namespace

fz_status fz_find_bound(const fz_pipeline* pipeline,
                        int32_t target,
                        double target_value,
                        const void* values,
                        size_t n_bytes,
                        double* bound,
                        double* reached) {
  return fz::c_api::guarded("fz_find_bound", [&](const char* who) {
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE_POINTER(bound);
    FZ_REQUIRE(values != nullptr || n_bytes == 0, fz::ErrorCode::kInvalidArgument,
               "{}: values is NULL", who);
    FZ_REQUIRE(target == FZ_TARGET_PSNR || target == FZ_TARGET_RATIO,
               fz::ErrorCode::kInvalidArgument, "{}: {} is no target", who, target);
    FZ_REQUIRE(!pipeline->device_memory && pipeline->masked_type != fz::DataType::UNKNOWN,
               fz::ErrorCode::kUnsupported,
               "{}: it takes floats in host memory and a pipeline with a bound", who);
    const auto kind =
        target == FZ_TARGET_PSNR ? fz::ResultTarget::Kind::kPsnr : fz::ResultTarget::Kind::kRatio;
    const fz::TargetBound found =
        fz::findBound(pipeline->masked_type, {static_cast<const std::uint8_t*>(values), n_bytes},
                      {kind, target_value}, optionsOf(*pipeline));
    *bound = found.absolute;
    if (reached != nullptr) {
      *reached = found.reached;
    }
  });
}
