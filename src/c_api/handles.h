#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "fz.h"
#include "fz/host_api.h"
#include "pipeline/compressor.h"

/// Everything behind a pipeline handle. The allocator stands before the pipeline, which gives its
/// last memory back while it is destroyed.
struct fz_pipeline {
  fz_allocator allocator = {};
  bool device_memory = false;  ///< whether the caller's pointers are device memory
  bool can_compress = true;
  fz::Pipeline pipeline;
};

struct fz_archive {
  fz::FrameInfo info;
  /// Values of info.stages[i].params as text.
  std::vector<std::vector<std::string>> values;
};

namespace fz::c_api {

/// Memory for a result, from the handle's allocator; never null. Throws Error(kOutOfMemory).
void* allocateResult(const fz_pipeline& handle, std::size_t n_bytes);
void releaseResult(const fz_pipeline& handle, void* memory, std::size_t n_bytes) noexcept;

/// TOML text of the pipeline that wrote a frame. Throws Error (kCorrupt, kUnsupported).
std::string configOfFrame(ByteView frame);

}  // namespace fz::c_api
