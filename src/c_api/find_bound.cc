#include "c_api/guard.h"
#include "c_api/handles.h"
#include "core/require.h"
#include "fz/target.h"

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
                      {kind, target_value}, fz::c_api::compressOptionsOf(*pipeline));
    *bound = found.absolute;
    if (reached != nullptr) {
      *reached = found.reached;
    }
  });
}
