#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "api/device_field.h"
#include "api/missing_values.h"
#include "fz.h"
#include "fz/batch.h"
#include "fz/host_api.h"
#include "pipeline/compressor.h"

namespace fz::c_api {

/// What the stages of a handle were loaded from, so that they can be loaded again.
struct Recipe {
  std::string toml;
  std::string name;  ///< for messages
  ConfigOverrides overrides;
  fz_options options = {};  ///< without the caller's pointers
};

/// A pipeline with a Mask before the stages of a recipe.
struct MaskedPipeline {
  MaskSettings settings;
  Pipeline pipeline;
};

}  // namespace fz::c_api

/// Everything behind a pipeline handle. The allocator stands before the pipelines, which give their
/// last memory back while they are destroyed.
struct fz_pipeline {
  fz_allocator allocator = {};
  bool device_memory = false;  ///< whether the caller's pointers are device memory
  bool can_compress = true;
  bool needs_bound = false;  ///< a preset without one: what it may lose is for the caller to say
  fz::c_api::Recipe recipe;
  std::vector<double> fill;
  /// Values that a Mask takes out for this pipeline; UNKNOWN: it gets none.
  fz::DataType masked_type = fz::DataType::UNKNOWN;
  fz::Pipeline pipeline;
  fz::DeviceField::Room room;  ///< for looks at values in device memory
  /// For fields with missing values; made when the first one comes, and again when one comes that
  /// needs other settings.
  std::unique_ptr<fz::c_api::MaskedPipeline> masked;
  std::unique_ptr<fz::DeviceBatch> batch;  ///< for batches in device memory, made by the first one
  mutable std::unique_ptr<fz::Pipeline>
      measured;  ///< of fz_compress_bound(), made by its first call
};

struct fz_archive {
  fz::FrameInfo info;
  /// Values of info.stages[i].params as text.
  std::vector<std::vector<std::string>> values;
};

namespace fz::c_api {

/// The caller's options in this version's shape, each within its range. Throws
/// Error(kInvalidArgument, kUnsupported).
fz_options checkedOptions(const fz_options* given);

/// Throws Error(kInvalidState) for a pipeline that only decodes, Error(kInvalidArgument) for that
/// of a preset without a bound.
void requireEncoder(const fz_pipeline& handle, const char* who);
/// Memory for a result, from the handle's allocator; never null. Throws Error(kOutOfMemory).
void* allocateResult(const fz_pipeline& handle, std::size_t n_bytes);
void releaseResult(const fz_pipeline& handle, void* memory, std::size_t n_bytes) noexcept;

/// Text that ends with a zero byte, into the caller's buffer. Throws Error(kBufferTooSmall) with
/// the size that would do in *text_bytes.
void giveText(const std::string& made,
              char* text,
              std::size_t capacity,
              std::size_t* text_bytes,
              const char* who);

/// Everything that the handle's options say of a pipeline besides its stages.
void applyOptions(fz_pipeline& handle, Pipeline& pipeline);
/// What the handle's recipe means to compress(), without its bound.
CompressOptions compressOptionsOf(const fz_pipeline& handle);
/// The bound of the handle's recipe, which its settings have as text. The last one counts.
void setBound(const fz_pipeline& handle, CompressOptions& options);
/// The stages of the handle's recipe into its plain pipeline. Throws as loadConfigText() does.
void loadStages(fz_pipeline& handle);
/// The handle's pipeline for this field, which has missing values. Throws as loading does.
/// Precondition: handle.masked_type is known.
Pipeline& maskedFor(fz_pipeline& handle, ByteView values);
/// The same for a field with these settings.
Pipeline& maskedFor(fz_pipeline& handle, const MaskSettings& settings);
/// Bytes that no archive of a field with missing values can exceed. The same precondition.
std::size_t maskedBound(const fz_pipeline& handle, std::size_t n_bytes);

/// TOML text of the pipeline that wrote a frame, with or without the Mask before its first stage.
/// Throws Error (kCorrupt, kUnsupported).
std::string configOfFrame(ByteView frame, bool with_mask);

}  // namespace fz::c_api
