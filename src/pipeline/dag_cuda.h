#pragma once

#include <vector>

#include "backends/cuda/run_block.h"
#include "backends/cuda/timing_event.h"
#include "pipeline/dag.h"

namespace fz {

/// What a graph keeps for its runs on a device.
struct CompressionDAG::CudaState {
  explicit CudaState(MemoryPool* pool) : block(pool) {}

  cuda::RunBlock block;
  std::vector<std::vector<std::size_t>> capacities;  // by node, of the last attempt
  std::vector<cuda::TimingEvent> begin_events;
  std::vector<cuda::TimingEvent> end_events;
  bool timed = false;
};

}  // namespace fz
