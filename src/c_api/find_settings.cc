#include "c_api/guard.h"
#include "c_api/handles.h"
#include "core/require.h"
#include "fz/tune.h"

fz_status fz_find_settings(const fz_pipeline* pipeline,
                           const void* values,
                           size_t n_bytes,
                           char* text,
                           size_t capacity,
                           size_t* text_bytes) {
  return fz::c_api::guarded("fz_find_settings", [&](const char* who) {
    FZ_REQUIRE_POINTER(text_bytes);
    *text_bytes = 0;
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE(values != nullptr || n_bytes == 0, fz::ErrorCode::kInvalidArgument,
               "{}: values is NULL", who);
    FZ_REQUIRE(!pipeline->device_memory && pipeline->masked_type != fz::DataType::UNKNOWN,
               fz::ErrorCode::kUnsupported,
               "{}: it takes floats in host memory and a pipeline with a bound", who);
    fz::CompressOptions options = fz::c_api::compressOptionsOf(*pipeline);
    fz::c_api::setBound(*pipeline, options);
    const fz::FoundSettings found = fz::findSettings(
        pipeline->masked_type, {static_cast<const std::uint8_t*>(values), n_bytes}, options);
    std::string lines;
    for (const auto& [key, value] : found.params) {
      lines.append(key).append("=").append(value).append("\n");
    }
    fz::c_api::giveText(lines, text, capacity, text_bytes, who);
  });
}
