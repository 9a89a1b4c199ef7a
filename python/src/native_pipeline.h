#pragma once

#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fz/backend.h"
#include "fz/data_type.h"
#include "fz/device_api.h"
#include "fz/host_api.h"
#include "fz/limits.h"
#include "pipeline/compressor.h"

namespace fz::python {

/// A pipeline and the lock that lets any Python thread call it. The lock is taken without the GIL
/// and given up before the GIL is asked for again.
struct Session {
  std::mutex mutex;
  Pipeline pipeline;
};

/// What a pipeline is built from, besides its configuration.
struct PipelineSettings {
  DataType input_type = DataType::UNKNOWN;
  /// x fastest; nothing: one dimension of any length.
  std::optional<AxisValues> extents;
  std::vector<std::pair<std::string, std::string>> params;
  Backend backend = Backend::CPU;
  std::size_t threads = 0;
  bool lossless_fallback = true;
  std::vector<double> fill;
  bool suspect_fill = true;
};

/// What fz::compress() needs to do what a pipeline of these does.
CompressOptions optionsOf(const std::string& toml,
                          const std::string& source_name,
                          const PipelineSettings& settings);

/// A finalized pipeline for one element type and shape.
class NativePipeline {
 public:
  NativePipeline(const std::string& toml,
                 const std::string& source_name,
                 const PipelineSettings& settings);

  const std::shared_ptr<Session>& session() const { return session_; }
  Pipeline& pipeline() const { return session_->pipeline; }
  /// For arrays on a device, on pipeline() and one more; the session's lock is held.
  DeviceCompressor& deviceCompressor() const;

  /// What fz::compress() needs to do the same.
  const CompressOptions& options() const { return options_; }
  DataType type() const { return type_; }

 private:
  CompressOptions options_;
  DataType type_;
  std::shared_ptr<Session> session_;
  mutable std::unique_ptr<DeviceCompressor> device_compressor_;
};

/// How a frame is decoded.
struct DecodeSettings {
  DecodeLimits limits;
  Backend backend = Backend::CPU;
  std::size_t threads = 0;
};

/// A session that can decode into memory of the caller, which a pipeline without stages cannot.
std::shared_ptr<Session> decodingSession(const DecodeSettings& settings);

/// NativePipeline, stages_to_toml(), decompress(), decompress_into().
void bindPipeline(nanobind::module_& module);
/// compress_device(), decompress_device() and DeviceMemory; absent in builds without CUDA.
void bindDevice(nanobind::module_& module);

}  // namespace fz::python
