#pragma once

#include <functional>

#include "fz/span.h"
#include "pipeline/compressor.h"

namespace fz {

struct FrameHeader;

/// A frame, and its header where somebody has read that already.
struct ReadFrame {
  ByteView bytes;
  const FrameHeader* header = nullptr;
};

/// What the library itself asks of a pipeline, beyond what programs may.
struct PipelineAccess {
  /// As Pipeline::decompressFrame().
  static void decompressFrame(Pipeline& pipeline,
                              const ReadFrame& frame,
                              void** d_out,
                              std::size_t* out_bytes);
  static std::size_t decompressFrame(Pipeline& pipeline,
                                     const ReadFrame& frame,
                                     const std::function<void*(std::size_t n_bytes)>& provide);
};

}  // namespace fz
