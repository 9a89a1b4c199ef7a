#pragma once

#include <functional>

#include "fz/span.h"
#include "pipeline/compressor.h"

namespace fz {

class FieldWatch;
struct FrameHeader;

/// A frame, and its header where somebody has read that already.
struct ReadFrame {
  ByteView bytes;
  const FrameHeader* header = nullptr;
};

/// What the library itself asks of a pipeline, beyond what programs may.
struct PipelineAccess {
  /// Of every compress() on the CPU from here on; null: none. Must live as long.
  static void setWatch(Pipeline& pipeline, FieldWatch* watch);
  /// As Pipeline::decompressFrame().
  static void decompressFrame(Pipeline& pipeline,
                              const ReadFrame& frame,
                              void** d_out,
                              std::size_t* out_bytes);
  static std::size_t decompressFrame(Pipeline& pipeline,
                                     const ReadFrame& frame,
                                     const std::function<void*(std::size_t n_bytes)>& provide);
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
