#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "format/frame_header.h"
#include "mem/scratch.h"
#include "pipeline/run/engine.h"

namespace fz {

class MemoryPool;
class Stage;

/// The inverse of a frame's graph, ready to run.
struct DecodePlan {
  DecodePlan(MemoryPool* pool, MemoryStrategy strategy) : engine(pool, strategy) {}

  /// Gives the stages the settings of a frame with this plan's graph. Throws Error(kCorrupt).
  void configure(const FrameHeader& header);

  std::vector<std::uint16_t> key;
  std::vector<std::unique_ptr<Stage>> owned;
  std::vector<Stage*> stages;  // by record; null where the inverse does not need the stage
  std::vector<bool> is_custom;
  std::vector<DAGNode*> nodes;  // by record, as stages
  Engine engine;
  std::map<std::uint16_t, int> segment_buffers;  // frame buffer id -> graph buffer
  std::vector<Scratch> aligned_segments{FZM_MAX_BUFFERS};
  int result_buffer = -1;
};

/// What must be equal for a plan to serve another frame: the graph and the element types. Versions
/// and configs, which may change from frame to frame, are set for every one.
void putPlanKey(const FrameHeader& header, std::vector<std::uint16_t>& key);

/// Plans the decoding of frames with this graph. `custom_stages`, by position, serve the types that
/// the registry does not know. Throws Error (kCorrupt, kUnsupported).
std::unique_ptr<DecodePlan> makeDecodePlan(const FrameHeader& header,
                                           const std::vector<Stage*>& custom_stages,
                                           MemoryPool* pool,
                                           MemoryStrategy strategy);

}  // namespace fz
