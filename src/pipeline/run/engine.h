#pragma once

#include <memory>
#include <vector>

#include "pipeline/graph.h"
#include "pipeline/perf.h"
#include "pipeline/plan/plan.h"
#include "pipeline/run/buffers.h"
#include "pipeline/run/executor.h"
#include "pipeline/run/sizes.h"

namespace fz {

class CudaExecutor;

/// A graph, the plan to run it, its buffers, and what runs keep from one to the next. A pipeline
/// has one for its own stages and one for the inverse of the frames that it decodes.
class Engine {
 public:
  Engine(MemoryPool* pool, MemoryStrategy strategy) : plan(graph), buffers(pool, strategy) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Graph graph;
  Plan plan;
  Buffers buffers;
  std::vector<NodeRun> node_runs;  // by node
  bool shares_memory = true;       ///< whether buffers of PREALLOCATE may share regions

  // Settings that CompressionDAG names.
  const ExecContext* context = nullptr;
  int n_streams = 1;
  bool checks_bounds = true;
  bool capture_mode = false;
  bool profiling = false;

  /// The graph is complete: orders it and makes its buffers. Throws Error(kGraph).
  void finalize();
  /// The plan for these settings, and the buffers that it needs or no longer needs. Called before
  /// every run; does nothing when nothing has changed.
  void replan(const ExecContext& wanted, cudaStream_t stream);
  /// Estimates every buffer and takes its memory (PREALLOCATE only).
  void preallocate(cudaStream_t stream);
  void shareMemory();
  /// Forgets the last run.
  void reset(cudaStream_t stream);

  NodeRun& runOf(const DAGNode& node) { return node_runs[static_cast<std::size_t>(node.id)]; }
  void prepareInputs(const DAGNode& node);
  /// Memory for every output of a stage; inside a fused chain an output has a capacity alone.
  void provideOutputs(const DAGNode& node, cudaStream_t stream);
  /// One row per step, in order of execution.
  std::vector<StageTimingResult> collectTimings() const;

  /// For runs on a device; made when first asked for. Only in builds with CUDA.
  CudaExecutor& cuda();
  /// After a run on a device that broke off: waits for what was enqueued of it, whose memory is
  /// handed out again, and lets the next one begin anew. A stream that the caller captures cannot
  /// be waited for.
  void abandonCuda(cudaStream_t stream) noexcept;

 private:
  SizeEstimate estimate_;
  std::shared_ptr<CudaExecutor> cuda_;  // shared because the type is hidden here
};

}  // namespace fz
