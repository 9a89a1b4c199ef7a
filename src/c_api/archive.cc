// What an archive says about itself.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "c_api/versioned.h"
#include "fz/params.h"

using fz::ErrorCode;
using fz::c_api::guarded;
using fz::c_api::writeVersioned;

namespace {

constexpr std::size_t kFirstInfoBytes = offsetof(fz_archive_info, n_missing);

const fz::FrameStageInfo& stageAt(const fz_archive& archive, std::size_t index, const char* who) {
  FZ_REQUIRE(index < archive.info.stages.size(), ErrorCode::kInvalidArgument, "{}: stage {} of {}",
             who, index, archive.info.stages.size());
  return archive.info.stages[index];
}

fz_archive_info describe(const fz::FrameInfo& info) {
  fz_archive_info row = {};
  row.version_major = info.version_major;
  row.version_minor = info.version_minor;
  row.type = static_cast<int32_t>(info.type);
  row.n_dims = info.ndim;
  std::copy(info.dims.begin(), info.dims.end(), row.dims);
  row.original_bytes = info.original_bytes;
  row.header_bytes = info.header_bytes;
  row.payload_bytes = info.payload_bytes;
  row.archive_bytes = info.frameBytes();
  row.bound_mode = FZ_BOUND_DEFAULT;
  if (info.bound) {
    row.has_bound = 1;
    row.bound_mode = static_cast<int32_t>(info.bound->mode) + FZ_BOUND_ABS;
    row.bound_requested = info.bound->requested;
    row.bound_absolute = info.bound->absolute;
  }
  row.is_lossless = info.lossless ? 1 : 0;
  row.has_checksums = info.has_checksums ? 1 : 0;
  row.n_stages = static_cast<uint32_t>(info.stages.size());
  row.n_segments = static_cast<uint32_t>(info.segments.size());
  if (info.missing) {
    row.n_missing = info.missing->n_missing;
    row.n_filled = info.missing->n_filled;
    row.n_fill = static_cast<uint32_t>(info.missing->fill.size());
  }
  return row;
}

}  // namespace

fz_status fz_archive_inspect(const void* archive, size_t archive_bytes, fz_archive** inspection) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(inspection);
    *inspection = nullptr;
    FZ_REQUIRE_POINTER(archive);
    auto made = std::make_unique<fz_archive>();
    made->info = fz::inspect({static_cast<const std::uint8_t*>(archive), archive_bytes});
    for (const fz::FrameStageInfo& stage : made->info.stages) {
      std::vector<std::string>& values = made->values.emplace_back();
      for (const auto& [key, value] : stage.params) {
        values.push_back(fz::toTomlText(value));
      }
    }
    *inspection = made.release();
  });
}

void fz_archive_destroy(fz_archive* inspection) {
  delete inspection;
}

fz_status fz_archive_get(const fz_archive* inspection, fz_archive_info* info) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(inspection);
    FZ_REQUIRE_POINTER(info);
    writeVersioned(describe(inspection->info), info, kFirstInfoBytes, "fz_archive_info");
  });
}

fz_status fz_archive_stage_get(const fz_archive* inspection,
                               size_t index,
                               fz_archive_stage_info* info) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(inspection);
    FZ_REQUIRE_POINTER(info);
    const fz::FrameStageInfo& stage = stageAt(*inspection, index, who);
    fz_archive_stage_info row = {};
    row.name = stage.name.c_str();
    row.id = stage.id;
    row.version = stage.version;
    row.n_params = static_cast<uint32_t>(stage.params.size());
    row.n_types = static_cast<uint32_t>(std::min(stage.types.size(), std::size(row.types)));
    std::fill(std::begin(row.types), std::end(row.types), FZ_TYPE_UNKNOWN);
    std::transform(stage.types.begin(), stage.types.begin() + row.n_types, row.types,
                   [](fz::DataType type) { return static_cast<int32_t>(type); });
    writeVersioned(row, info, sizeof(*info), "fz_archive_stage_info");
  });
}

fz_status fz_archive_stage_param(const fz_archive* inspection,
                                 size_t stage,
                                 size_t index,
                                 const char** key,
                                 const char** value) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(inspection);
    FZ_REQUIRE_POINTER(key);
    FZ_REQUIRE_POINTER(value);
    *key = nullptr;
    *value = nullptr;
    const auto& params = stageAt(*inspection, stage, who).params;
    FZ_REQUIRE(index < params.size(), ErrorCode::kInvalidArgument, "{}: setting {} of {}", who,
               index, params.size());
    *key = params[index].first.c_str();
    *value = inspection->values[stage][index].c_str();
  });
}

fz_status fz_archive_segment_get(const fz_archive* inspection,
                                 size_t index,
                                 fz_archive_segment_info* info) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(inspection);
    FZ_REQUIRE_POINTER(info);
    const auto& segments = inspection->info.segments;
    FZ_REQUIRE(index < segments.size(), ErrorCode::kInvalidArgument, "{}: segment {} of {}", who,
               index, segments.size());
    fz_archive_segment_info row = {};
    row.stage = segments[index].stage.c_str();
    row.port = segments[index].port.c_str();
    row.n_bytes = segments[index].n_bytes;
    row.type = static_cast<int32_t>(segments[index].type);
    writeVersioned(row, info, sizeof(*info), "fz_archive_segment_info");
  });
}

fz_status fz_archive_fill(const fz_archive* inspection, size_t index, double* value) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(value);
    *value = 0.0;
    FZ_REQUIRE_POINTER(inspection);
    const auto& missing = inspection->info.missing;
    const std::size_t n_fill = missing ? missing->fill.size() : 0;
    FZ_REQUIRE(index < n_fill, ErrorCode::kInvalidArgument, "{}: fill value {} of {}", who, index,
               n_fill);
    *value = missing->fill[index];
  });
}
