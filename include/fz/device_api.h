#pragma once

#include <cstddef>
#include <memory>

#include "fz/host_api.h"
#include "fz/stream.h"

/// Arrays in device memory in: what compress() of host_api.h does with host arrays.
namespace fz {

class Pipeline;
struct CompressedView;

/// Compresses arrays of one type and shape by a pipeline of the caller, and those with missing
/// values by another one, which has a Mask before its stages: the frames are those of compress().
/// For one thread at a time. In a build without CUDA, compress() throws Error(kNoDevice).
class DeviceCompressor {
 public:
  /// `pipeline` was made by configure() with the same type and options, for the CUDA backend, and
  /// must outlive this.
  DeviceCompressor(Pipeline& pipeline, DataType type, const CompressOptions& options);
  DeviceCompressor(const DeviceCompressor&) = delete;
  DeviceCompressor& operator=(const DeviceCompressor&) = delete;
  ~DeviceCompressor();

  /// The frame, in memory of one of the pipelines until the next call. Looks at a sample of the
  /// values first, as compress() does, and at all of them where a fill value is declared or a bound
  /// relative to the range is in doubt; waits for the stream. Extents beyond three axes are not
  /// written into the frame. Throws as compress() does.
  CompressedView compress(const void* values, std::size_t n_bytes, cudaStream_t stream = nullptr);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fz
