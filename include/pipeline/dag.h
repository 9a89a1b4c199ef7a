#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fz/stream.h"
#include "mem/mempool.h"
#include "pipeline/dag_node.h"
#include "pipeline/perf.h"

namespace fz {

class Engine;
class Stage;

/// A graph of stages driven by hand, as FZGPUModules has it. Programs normally need only Pipeline.
/// Unknown ids and edits after finalize() throw Error.
class CompressionDAG {
 public:
  /// Throws InvalidArgument for a null pool.
  explicit CompressionDAG(MemoryPool* pool, MemoryStrategy strategy = MemoryStrategy::MINIMAL);
  /// A view of what a pipeline runs, which must outlive it.
  explicit CompressionDAG(Engine& engine);
  ~CompressionDAG();

  DAGNode* addStage(Stage* stage, const std::string& name = "");
  int addDependency(DAGNode* dependent, DAGNode* dependency, std::size_t n_bytes = 0, int port = 0);
  int setInputBuffer(DAGNode* node, std::size_t n_bytes, const std::string& tag = "input");
  int setOutputBuffer(DAGNode* node, std::size_t n_bytes, const std::string& tag = "output");
  int addUnconnectedOutput(DAGNode* node, std::size_t n_bytes, int port, const std::string& = "");
  bool connectExistingOutput(DAGNode* producer, DAGNode* consumer, int port);
  void updateBufferTag(int buffer_id, const std::string& tag);
  void setBufferPersistent(int buffer_id, bool persistent);
  void finalize();
  void configureStreams(int n_streams);  ///< accepted; stages run one after the other
  void execute(cudaStream_t stream);     ///< on the CPU
  void preallocateBuffers(cudaStream_t stream = nullptr);
  void reset(cudaStream_t stream = nullptr);
  void* getBuffer(int buffer_id) const;
  void setExternalPointer(int buffer_id, void* memory);
  void updateBufferSize(int buffer_id, std::size_t n_bytes);
  std::size_t getTotalBufferSize() const;
  std::size_t computeTopoPoolSize() const;
  std::size_t getPeakMemoryUsage() const;
  std::size_t getCurrentMemoryUsage() const;
  std::size_t getBufferSize(int buffer_id) const;
  const BufferInfo& getBufferInfo(int buffer_id) const;
  std::size_t getBufferCount() const;
  const std::vector<std::vector<DAGNode*>>& getLevels() const;
  const std::vector<std::unique_ptr<DAGNode>>& getNodes() const;
  std::size_t getMaxParallelism() const;
  int getStreamCount() const;
  void printDAG() const;
  void printBufferLifetimes() const;
  void enableBoundsCheck(bool on);
  bool isBoundsCheckEnabled() const;
  void setColoringEnabled(bool on);
  bool isColoringEnabled() const;
  std::size_t getColorRegionCount() const;
  void setCaptureMode(bool on);  ///< accepted; Pipeline::captureGraph() captures
  bool isCaptureMode() const;
  void enableProfiling(bool on);
  bool isProfilingEnabled() const;
  std::vector<StageTimingResult> collectTimings() const;
  Engine& engine() const { return *engine_; }  ///< for the library itself

 private:
  std::unique_ptr<Engine> owned_;
  Engine* engine_;
};

}  // namespace fz
