#pragma once

#include <functional>

#include "fz/span.h"
#include "pipeline/compressor.h"

namespace fz {

class FieldWatch;
struct BatchAddresses;
struct BatchRecording;
struct FrameHeader;

/// A frame, and its header where somebody has read that already.
struct ReadFrame {
  ByteView bytes;
  const FrameHeader* header = nullptr;
  cudaStream_t stream = nullptr;  ///< of the calls on a device
};

/// What the library itself asks of a pipeline, beyond what programs may.
struct PipelineAccess {
  /// Of every compress() on the CPU from here on; null: none. Must live as long.
  static void setWatch(Pipeline& pipeline, FieldWatch* watch);
  /// As Pipeline::decompressFrame().
  static std::size_t decompressFrame(Pipeline& pipeline,
                                     const ReadFrame& frame,
                                     const std::function<void*(std::size_t n_bytes)>& provide);
  /// One that nobody else uses, for calls with memory of the host: others may then be under way at
  /// the same time. Null on the CPU.
  static cudaStream_t ownStream(Pipeline& pipeline);
  /// Values of the host where the pipeline's backend takes them: on the CPU where they are, else in
  /// memory of the pipeline until the next call. Throws Error (kOutOfMemory, kCuda).
  static const void* upload(Pipeline& pipeline, ByteView values, cudaStream_t stream);
  /// As DeviceRunner has them. Precondition: the pipeline is on a device.
  static bool recordCompress(Pipeline& pipeline,
                             std::size_t n_bytes,
                             const BatchAddresses& at,
                             BatchRecording& recording);
  static bool recordDecompress(Pipeline& pipeline,
                               std::size_t original_bytes,
                               const BatchAddresses& at,
                               BatchRecording& recording);
  /// Copies between any two places of the backend's world and waits. Throws Error(kCuda).
  static void copyAndWait(const Pipeline& pipeline,
                          void* to,
                          const void* from,
                          std::size_t n_bytes,
                          cudaStream_t stream);
};

/// A pipeline's watch, for a time.
class WatchScope {
 public:
  WatchScope(Pipeline& pipeline, FieldWatch* watch) : pipeline_(pipeline) {
    PipelineAccess::setWatch(pipeline, watch);
  }
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;
  ~WatchScope() { PipelineAccess::setWatch(pipeline_, nullptr); }

 private:
  Pipeline& pipeline_;
};

}  // namespace fz
