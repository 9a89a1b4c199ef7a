#pragma once

#include <cstddef>
#include <vector>

#include "backends/cuda/run_context.h"
#include "backends/cuda/run_state.h"
#include "backends/cuda/timing_event.h"
#include "fz/cuda_part.h"
#include "pipeline/run/engine.h"

namespace fz {

/// Runs an engine's plan on a device: every stage is enqueued with sizes that stay there, and one
/// readback tells how it went.
class CudaExecutor {
 public:
  explicit CudaExecutor(Engine& engine);

  /// Enqueues all steps, without waiting unless a stage has no kernels. The records of the run are
  /// in state(), which the caller brings to the host before finish().
  void enqueue(const Request& request, cuda::RunContext& run);
  /// Takes the results over, in order. False: an output was too small or a stage wants another
  /// pass; enqueue again. Throws what a stage throws.
  bool finish(cudaStream_t stream);
  cuda::DeviceRunState& state() { return state_; }

 private:
  /// One stage's share of a run.
  struct Share {
    SimpleStage* stage;
    CudaPart* part;
    std::vector<CudaInput> inputs;
    std::vector<CudaOutput> outputs;
    StageRecord* record;
  };

  void planSizes();
  void planOpenSizes(const DAGNode& node);
  void dissolveUnsettled();
  void sendStartValues(const Request& request, cudaStream_t stream);
  void enqueueStep(Step& step, const Request& request, cuda::RunContext& run);
  void enqueueSingle(const DAGNode& node, const Request& request, cuda::RunContext& run);
  void enqueueFused(Step& step, const Request& request, cuda::RunContext& run);
  void enqueueKernel(const Step& step,
                     const std::vector<Share>& shares,
                     const GroupRun& group,
                     cuda::RunContext& run);
  void endGroup(const std::vector<Share>& shares,
                const GroupRun& group,
                cuda::RunContext& run,
                bool ends_run);
  void runForeign(const DAGNode& node, const Request& request, cudaStream_t stream);
  void settleInputs(const DAGNode& node, cudaStream_t stream);
  bool takeResult(const DAGNode& node);
  bool hasWholeField(const Step& step) const;
  Share shareOf(const DAGNode& node);
  cuda::Call callOf(const Share& share, cuda::RunContext& run) const;
  std::vector<CudaInput> inputsOf(const DAGNode& node);
  std::vector<CudaOutput> outputsOf(const DAGNode& node);
  void releaseInputs(DAGNode& node, cudaStream_t stream);
  void announceOutput(const Request& request);

  Engine& engine_;
  cuda::DeviceRunState state_;
  std::vector<cuda::TimingEvent> begin_events_;  // by node
  std::vector<cuda::TimingEvent> end_events_;
  bool is_timed_ = false;
  bool is_output_announced_ = false;
};

}  // namespace fz
