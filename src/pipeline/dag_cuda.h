#pragma once

#include <vector>

#include "backends/cuda/run_state.h"
#include "backends/cuda/timing_event.h"
#include "pipeline/dag.h"

namespace fz {

/// What a graph keeps for its runs on a device.
struct CompressionDAG::CudaState {
  explicit CudaState(MemoryPool* pool) : block(pool) {}

  cuda::DeviceRunState block;
  std::vector<std::vector<std::size_t>> capacities;  // by node, of the last attempt
  std::vector<cuda::TimingEvent> begin_events;
  std::vector<cuda::TimingEvent> end_events;
  bool timed = false;
};

/// After a run that broke off: waits for what was enqueued of it, whose memory is handed out again,
/// and lets the next one begin anew. A stream that the caller captures cannot be waited for.
void abandonRun(CompressionDAG& dag, cudaStream_t stream) noexcept;

}  // namespace fz
