#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fz/device_types.h"
#include "fz/fusion.h"
#include "fz/stream.h"
#include "fz/tile_op.h"
#include "pipeline/perf.h"

namespace fz {

class MemoryPool;
class Stage;
struct ExecContext;
struct RunProgress;
namespace cuda {
struct GroupKernel;
class DeviceRunState;
class RunContext;
}  // namespace cuda
struct CpuGroup;
struct TileCut;

// NOLINTBEGIN(readability-identifier-naming)
enum class MemoryStrategy {
  MINIMAL,      ///< allocate before a stage, free after its last consumer
  PREALLOCATE,  ///< all buffers at once, sharing memory where lifetimes allow; grown when needed
};
// NOLINTEND(readability-identifier-naming)

/// One edge of the graph: a stage's output, or data from outside.
struct BufferInfo {
  std::size_t size = 0;            ///< bytes in use
  std::size_t initial_size = 0;    ///< estimate from planning
  std::size_t allocated_size = 0;  ///< capacity
  void* d_ptr = nullptr;           ///< memory of the pipeline's backend
  std::string tag = {};
  int remaining_consumers = 0;
  std::vector<int> consumer_stage_ids = {};
  int producer_stage_id = -1;  ///< -1: from outside
  int producer_output_index = 0;
  bool is_allocated = false;
  bool is_persistent = false;  ///< survives reset()
  bool is_external = false;    ///< memory belongs to somebody else
  bool is_virtual = false;     ///< inside a fused group: has a size and never any memory
  int color = -1;              ///< region shared with other buffers; -1: none
  bool size_exact = false;     ///< on a device: `size` is the size, not only its limit
  std::size_t grown_size = 0;  ///< on a device: what an earlier run turned out to need
  /// On a device, for data from outside: where the exact size stands, `size` being its limit.
  const std::uint64_t* size_on_device = nullptr;
  /// On a device: the size is known beforehand, whatever the producer would estimate.
  bool has_planned_size = false;
  bool planned_exact = false;
  std::size_t planned_size = 0;
};

/// One stage in the graph.
struct DAGNode {
  int id = 0;
  Stage* stage = nullptr;
  std::string name;
  std::vector<int> input_buffer_ids;
  std::vector<int> output_buffer_ids;
  std::unordered_map<int, int> output_index_to_buffer_id;
  std::vector<DAGNode*> dependencies;
  std::vector<DAGNode*> dependents;
  int level = -1;            ///< longest path from a source
  int execution_order = -1;  ///< position in the canonical order
  cudaStream_t stream = nullptr;
  bool is_executed = false;
  int group = -1;  ///< index of the fused group that the stage is part of; -1: none
  TileOp tile_op;  ///< as it was when groups were planned
  float elapsed_ms = 0.0f;
  bool reports_exact_sizes = false;  ///< a size of 0 means empty, not "unknown"
  std::vector<void*> exec_inputs;
  std::vector<void*> exec_outputs;
  std::vector<std::size_t> exec_sizes;
  std::vector<std::size_t> exec_capacities;
};

/// A chain of stages that runs as one pass over memory.
struct FusedGroup {
  std::vector<DAGNode*> chain;  ///< from the field on, in either direction
  DAGNode* runs_at = nullptr;   ///< the stage in whose turn the group runs
  std::string name;
  std::size_t value_bytes = 1;                ///< of a value as the coder gets it
  const cuda::GroupKernel* kernel = nullptr;  ///< on a device
  unsigned pass = 0;                          ///< see GroupRun
  std::size_t tile_values = 0;                ///< on the CPU
  std::size_t coder_values = 1;               ///< on the CPU: unit of planes and coder
  std::shared_ptr<CpuGroup> cpu;              ///< shared only because the type is hidden here
};

/// Graph of stages with its buffers and its execution. Users normally need only Pipeline.
///
/// The order of execution and of everything derived from it depends on the graph alone, not on
/// the order in which stages were added.
class CompressionDAG {
 public:
  /// Throws InvalidArgument for a null pool.
  explicit CompressionDAG(MemoryPool* pool, MemoryStrategy strategy = MemoryStrategy::MINIMAL);
  CompressionDAG(const CompressionDAG&) = delete;
  CompressionDAG& operator=(const CompressionDAG&) = delete;
  ~CompressionDAG();

  void setStrategy(MemoryStrategy strategy) { strategy_ = strategy; }
  DAGNode* addStage(Stage* stage, const std::string& name = "");
  /// New buffer from an output of `dependency` to the next input of `dependent`; returns its id.
  int addDependency(DAGNode* dependent,
                    DAGNode* dependency,
                    std::size_t n_bytes = 0,
                    int output_index = 0);
  /// The next input of `node` comes from outside; returns the buffer id.
  int setInputBuffer(DAGNode* node, std::size_t n_bytes, const std::string& tag = "input");
  int setOutputBuffer(DAGNode* node, std::size_t n_bytes, const std::string& tag = "output");
  int addUnconnectedOutput(DAGNode* node,
                           std::size_t n_bytes,
                           int output_index,
                           const std::string& tag = "");
  /// Makes an existing output the next input of `consumer`; false when there is no such output.
  bool connectExistingOutput(DAGNode* producer, DAGNode* consumer, int output_index);
  void dropOutput(DAGNode* node, int output_index);
  void updateBufferTag(int buffer_id, const std::string& tag);
  void setBufferPersistent(int buffer_id, bool persistent);

  /// Orders the stages. Throws Error(kGraph) naming the stages of a cycle.
  void finalize();
  /// Accepted for compatibility; stages run one after the other, on the CPU each over all threads,
  /// on a device all on the stream of the call.
  void configureStreams(int n_streams);
  /// Runs all stages. Throws what a stage throws; the graph can be run again afterwards.
  void execute(cudaStream_t stream);
  /// On a device, without waiting: enqueues all stages. The records of the run (see CudaRun) are in
  /// runState(), which the caller reads back and hands to finishCuda() once the stream is through.
  void enqueueCuda(cuda::RunContext& run);
  /// Takes the results over, in order. False: an output was too small, its buffer will be larger
  /// next time, enqueue again. Throws what a stage throws.
  bool finishCuda(cudaStream_t stream);
  cuda::DeviceRunState& runState();
  /// Called when records are cleared and no stage has begun; empty: nothing.
  void setBeforeStages(std::function<void(cudaStream_t)> f) { before_stages_ = std::move(f); }
  /// Called once, before the first kernel is enqueued that may write to a buffer of the graph; a
  /// group looks over its input before. Empty: nothing. Where the run has a word on the device
  /// that says whether outputs may be written, groups look at it themselves, and f is called when
  /// the first one is enqueued.
  void setBeforeOutput(std::function<void()> f) { before_output_ = std::move(f); }
  BufferInfo& editBuffer(int buffer_id) { return bufferAt(buffer_id); }
  /// Estimates every buffer for these external inputs and allocates (PREALLOCATE only).
  void preallocateBuffers(cudaStream_t stream = nullptr);
  /// Frees what is not persistent and forgets the last run.
  void reset(cudaStream_t stream = nullptr);

  void* getBuffer(int buffer_id) const;
  /// Lends memory for a buffer: an input, or an output of at least `capacity_bytes`.
  void setExternalPointer(int buffer_id, void* memory);
  void setExternalOutput(int buffer_id, void* memory, std::size_t capacity_bytes);
  void updateBufferSize(int buffer_id, std::size_t n_bytes);
  /// Called when an external output is too small; must return memory of at least that size.
  void setExternalGrower(std::function<void*(int buffer_id, std::size_t n_bytes)> grow);
  /// Bytes that buffers, the stages' work memory and the `n_elsewhere` bytes that the run needs
  /// elsewhere may take together; more throws Error(kLimit). 0: no limit.
  void setMemoryLimit(std::size_t n_bytes, std::size_t n_elsewhere = 0) {
    memory_limit_bytes_ = n_bytes;
    elsewhere_bytes_ = n_elsewhere;
  }
  /// While it lives, what Scratch takes from the pool counts as work memory of this graph.
  class ScratchScope {
   public:
    explicit ScratchScope(CompressionDAG& dag);
    ScratchScope(const ScratchScope&) = delete;
    ScratchScope& operator=(const ScratchScope&) = delete;
    ~ScratchScope();

   private:
    CompressionDAG& dag_;
    std::size_t before_bytes_;
  };

  /// Estimates from the external input sizes, through every stage. `proven` asks for the sizes
  /// that no input can exceed. Returns one size per buffer.
  std::vector<std::size_t> propagateSizes(bool proven) const;

  std::size_t getTotalBufferSize() const;
  /// Bytes that a run needs at its peak: simulated for MINIMAL, all regions for PREALLOCATE.
  std::size_t computeTopoPoolSize() const;
  std::size_t getPeakMemoryUsage() const { return peak_bytes_; }
  std::size_t getCurrentMemoryUsage() const { return current_bytes_; }
  std::size_t getBufferSize(int buffer_id) const;
  const BufferInfo& getBufferInfo(int buffer_id) const;
  const std::vector<std::vector<DAGNode*>>& getLevels() const { return levels_; }
  const std::vector<std::unique_ptr<DAGNode>>& getNodes() const { return nodes_; }
  /// Stages in canonical order.
  const std::vector<DAGNode*>& getOrder() const { return order_; }
  std::size_t getBufferCount() const { return buffers_.size(); }
  /// Looks for chains that can run as one, with the stages' present settings. Does nothing when
  /// nothing has changed. Called before every run.
  void planGroups(cudaStream_t stream = nullptr);
  const std::vector<FusedGroup>& getGroups() const { return groups_; }
  /// Why neighbouring stages are not fused, for people.
  const std::vector<std::string>& getFusionNotes() const { return fusion_notes_; }
  std::size_t getMaxParallelism() const;
  int getStreamCount() const { return n_streams_; }

  /// Text for people, through the log.
  void printDAG() const;
  void printBufferLifetimes() const;

  void enableBoundsCheck(bool on) { bounds_check_ = on; }
  bool isBoundsCheckEnabled() const { return bounds_check_; }
  void setColoringEnabled(bool on) { coloring_requested_ = on; }
  bool isColoringEnabled() const { return !regions_.empty(); }
  std::size_t getColorRegionCount() const { return regions_.size(); }
  /// On a device: whether the caller waits for each run and may run it again.
  void setCallerWaits(bool on) { caller_waits_ = on; }
  void setCaptureMode(bool on) { capture_mode_ = on; }
  bool isCaptureMode() const { return capture_mode_; }
  void enableProfiling(bool on) { profiling_ = on; }
  bool isProfilingEnabled() const { return profiling_; }
  /// One row per stage, in execution order.
  std::vector<StageTimingResult> collectTimings() const;

  /// Threads and backend for the stages; must outlive the graph's runs.
  void setExecContext(const ExecContext* context) { exec_context_ = context; }
  /// Counts stages as they are done; null: nobody looks. Must outlive the graph's runs.
  void setProgress(RunProgress* progress) { progress_ = progress; }

 private:
  struct Region {
    std::vector<int> buffer_ids;
    void* memory = nullptr;
    std::size_t capacity_bytes = 0;
  };

  /// Storage of a size estimate, kept so that the next one allocates nothing.
  struct SizeWork {
    std::vector<std::size_t> buffer_bytes;
    std::vector<std::size_t> inputs;
    std::vector<std::size_t> outputs;
  };

  BufferInfo& bufferAt(int buffer_id);
  const BufferInfo& bufferAt(int buffer_id) const;
  void requireEditable(const char* what) const;
  int newBuffer(BufferInfo info);

  void assignLevels();
  std::vector<std::size_t> ranksInLevel() const;
  void sortLevels();
  void colorBuffers();
  void propagateSizes(bool proven, SizeWork& work) const;
  std::vector<std::size_t> sizesInMemory() const;

  struct CudaState;
  CudaState& cudaState();
  void planSizesCuda();
  void enqueueNodeCuda(DAGNode& node, cuda::RunContext& run);
  void runForeignCuda(DAGNode& node, cudaStream_t stream);
  void settleInputsCuda(DAGNode& node, cudaStream_t stream);
  bool takeResultCuda(DAGNode& node);
  void planRegions();

  bool areGroupsCurrent() const;
  void dissolveGroups();
  DAGNode* nextInChain(const DAGNode& node) const;
  void splitChain(const std::vector<DAGNode*>& chain);
  void groupChain(const std::vector<DAGNode*>& chain);
  bool tryGroup(std::vector<DAGNode*> chain);
  void dropUnsettledGroups();
  int levelOf(int stage_id) const;
  void dropRegions();
  void runGroup(FusedGroup& group, cudaStream_t stream);
  void beginGroup(FusedGroup& group, const TileCut& cut, cudaStream_t stream);
  bool isGroupDone(FusedGroup& group);
  void provideOutputs(DAGNode& node, std::vector<std::size_t>& capacities, cudaStream_t stream);
  void enqueueGroupCuda(FusedGroup& group, cuda::RunContext& run);
  void announceOutput();
  std::vector<CudaInput> inputsCuda(const DAGNode& node);
  std::vector<CudaOutput> outputsCuda(const DAGNode& node,
                                      const std::vector<std::size_t>& capacities);

  void runNode(DAGNode& node, cudaStream_t stream);
  void prepareInputs(DAGNode& node) const;
  void runUntilDone(DAGNode& node, std::vector<std::size_t>& capacities, cudaStream_t stream);
  void provideOutput(int buffer_id, std::size_t n_bytes, cudaStream_t stream);
  void takeActualSizes(DAGNode& node, const std::vector<std::size_t>& capacities);
  void releaseInputs(DAGNode& node, cudaStream_t stream);
  void freeBuffer(BufferInfo& buffer, cudaStream_t stream);
  void growRegion(Region& region, std::size_t n_bytes, cudaStream_t stream);
  void* allocate(std::size_t n_bytes, const std::string& tag, cudaStream_t stream);
  /// What the memory limit leaves; all that there can be when there is none.
  std::size_t bytesLeft() const;

  MemoryPool* pool_;
  MemoryStrategy strategy_;
  std::vector<std::unique_ptr<DAGNode>> nodes_;
  std::vector<BufferInfo> buffers_;
  std::vector<std::vector<DAGNode*>> levels_;
  std::vector<DAGNode*> order_;
  std::vector<Region> regions_;
  SizeWork size_work_;
  std::function<void*(int, std::size_t)> grow_external_;
  const ExecContext* exec_context_ = nullptr;
  RunProgress* progress_ = nullptr;
  std::function<void(cudaStream_t)> before_stages_;
  std::function<void()> before_output_;
  std::shared_ptr<CudaState> cuda_;  // shared only because the type is hidden here
  std::size_t memory_limit_bytes_ = 0;
  std::size_t elsewhere_bytes_ = 0;
  std::size_t scratch_bytes_ = 0;  // that stages took in runs of this graph
  std::size_t current_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  int n_streams_ = 1;
  bool finalized_ = false;
  bool bounds_check_ = true;
  bool coloring_requested_ = true;
  bool capture_mode_ = false;
  bool caller_waits_ = true;
  std::vector<FusedGroup> groups_;
  std::vector<std::string> fusion_notes_;
  bool groups_planned_ = false;
  cudaStream_t planning_stream_ = nullptr;  // memory that groups give up is freed in its order
  Fusion planned_fusion_ = Fusion::Off;
  bool profiling_ = false;
};

}  // namespace fz
