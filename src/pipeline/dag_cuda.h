#pragma once

#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cuda/run_block.h"
#include "cuda_check.h"
#include "pipeline/dag.h"

namespace fz {

/// What a graph keeps for its runs on a device.
struct CompressionDAG::CudaState {
  /// A device event that is made when first needed.
  class Event {
   public:
    Event() = default;
    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    ~Event() {
      if (event_ != nullptr) {
        FZ_CUDA_CHECK_WARN(cudaEventDestroy(event_));
      }
    }
    void record(cudaStream_t stream) {
      if (event_ == nullptr) {
        FZ_CUDA_CHECK(cudaEventCreate(&event_));
      }
      FZ_CUDA_CHECK(cudaEventRecord(event_, stream));
    }
    /// Milliseconds from `earlier` to this; both must have passed.
    float since(const Event& earlier) const {
      float ms = 0.0f;
      FZ_CUDA_CHECK(cudaEventElapsedTime(&ms, earlier.event_, event_));
      return ms;
    }

   private:
    cudaEvent_t event_ = nullptr;
  };

  explicit CudaState(MemoryPool* pool) : block(pool) {}

  cuda::RunBlock block;
  std::vector<std::vector<std::size_t>> capacities;  // by node, of the last attempt
  std::vector<Event> begin_events;
  std::vector<Event> end_events;
  bool timed = false;
};

}  // namespace fz
