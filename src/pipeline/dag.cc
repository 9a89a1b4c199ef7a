#include "pipeline/dag.h"

#include <algorithm>

#include "core/require.h"
#include "log.h"
#include "pipeline/run/engine.h"

namespace fz {

CompressionDAG::CompressionDAG(MemoryPool* pool, MemoryStrategy strategy)
    : owned_(std::make_unique<Engine>(pool, strategy)), engine_(owned_.get()) {
}
CompressionDAG::CompressionDAG(Engine& engine) : engine_(&engine) {
}
CompressionDAG::~CompressionDAG() = default;

DAGNode* CompressionDAG::addStage(Stage* stage, const std::string& name) {
  return engine_->graph.addStage(stage, name);
}
int CompressionDAG::addDependency(DAGNode* dependent,
                                  DAGNode* dependency,
                                  std::size_t n_bytes,
                                  int port) {
  FZ_REQUIRE(n_bytes > 0, ErrorCode::kInvalidArgument,
             "CompressionDAG: a dependency of 0 bytes from {} to {}", dependency->name,
             dependent->name);
  if (dependency->output_index_to_buffer_id.count(port) == 0) {
    addUnconnectedOutput(dependency, n_bytes, port);
  }
  connectExistingOutput(dependency, dependent, port);
  return dependency->output_index_to_buffer_id.at(port);
}
int CompressionDAG::setInputBuffer(DAGNode* node, std::size_t n_bytes, const std::string& tag) {
  return engine_->graph.addInput(*node, n_bytes, tag);
}
int CompressionDAG::setOutputBuffer(DAGNode* node, std::size_t n_bytes, const std::string& tag) {
  return addUnconnectedOutput(node, n_bytes, static_cast<int>(node->output_buffer_ids.size()), tag);
}
int CompressionDAG::addUnconnectedOutput(DAGNode* node,
                                         std::size_t n_bytes,
                                         int port,
                                         const std::string& tag) {
  return engine_->graph.addOutput(*node, port, n_bytes, tag);
}
bool CompressionDAG::connectExistingOutput(DAGNode* producer, DAGNode* consumer, int port) {
  return engine_->graph.connect(*producer, *consumer, port);
}
void CompressionDAG::updateBufferTag(int buffer_id, const std::string& tag) {
  engine_->graph.setTag(buffer_id, tag);
  engine_->buffers.adopt(engine_->graph);
}
void CompressionDAG::setBufferPersistent(int buffer_id, bool persistent) {
  engine_->buffers.adopt(engine_->graph);
  engine_->buffers.at(buffer_id).is_persistent = persistent;
}
void CompressionDAG::finalize() {
  engine_->finalize();
}
void CompressionDAG::configureStreams(int n_streams) {
  engine_->n_streams = std::max(1, n_streams);
}
void CompressionDAG::execute(cudaStream_t stream) {
  const ExecContext no_threads{.fusion = Fusion::Off};
  runOnCpu(*engine_, {.context = engine_->context != nullptr ? engine_->context : &no_threads},
           stream);
}
void CompressionDAG::preallocateBuffers(cudaStream_t stream) {
  engine_->preallocate(stream);
}
void CompressionDAG::reset(cudaStream_t stream) {
  engine_->reset(stream);
}
void* CompressionDAG::getBuffer(int buffer_id) const {
  return engine_->buffers.at(buffer_id).d_ptr;
}
void CompressionDAG::setExternalPointer(int buffer_id, void* memory) {
  engine_->buffers.lendInput(buffer_id, memory);
}
void CompressionDAG::updateBufferSize(int buffer_id, std::size_t n_bytes) {
  engine_->buffers.at(buffer_id).size = n_bytes;
}
std::size_t CompressionDAG::getTotalBufferSize() const {
  return totalBytes(engine_->graph, engine_->buffers);
}
std::size_t CompressionDAG::computeTopoPoolSize() const {
  return peakBytes(engine_->graph, engine_->plan, engine_->buffers);
}
std::size_t CompressionDAG::getPeakMemoryUsage() const {
  return engine_->buffers.peakBytes();
}
std::size_t CompressionDAG::getCurrentMemoryUsage() const {
  return engine_->buffers.currentBytes();
}
std::size_t CompressionDAG::getBufferSize(int buffer_id) const {
  return engine_->buffers.at(buffer_id).size;
}
const BufferInfo& CompressionDAG::getBufferInfo(int buffer_id) const {
  return engine_->buffers.at(buffer_id);
}
std::size_t CompressionDAG::getBufferCount() const {
  return engine_->graph.edges().size();
}
const std::vector<std::vector<DAGNode*>>& CompressionDAG::getLevels() const {
  return engine_->graph.levels();
}
const std::vector<std::unique_ptr<DAGNode>>& CompressionDAG::getNodes() const {
  return engine_->graph.nodes();
}
std::size_t CompressionDAG::getMaxParallelism() const {
  std::size_t most = 0;
  for (const auto& level : getLevels()) {
    most = std::max(most, level.size());
  }
  return most;
}
int CompressionDAG::getStreamCount() const {
  return engine_->n_streams;
}

void CompressionDAG::printDAG() const {
  const auto join = [](const std::vector<int>& ids) {
    std::string text;
    for (const int id : ids) {
      text += fmt::format(" {}", id);
    }
    return text;
  };
  for (const auto& level : getLevels()) {
    for (const DAGNode* node : level) {
      FZ_PRINT("level %d: %s  in:%s  out:%s", node->level, node->name.c_str(),
               join(node->input_buffer_ids).c_str(), join(node->output_buffer_ids).c_str());
    }
  }
}

void CompressionDAG::printBufferLifetimes() const {
  for (std::size_t id = 0; id < engine_->buffers.count(); ++id) {
    const Buffer& buffer = engine_->buffers.all()[id];
    const Lifetime life = engine_->plan.lifetimeOf(static_cast<int>(id));
    FZ_PRINT("buffer %zu (%s): levels %d to %d, %zu bytes, region %d", id, buffer.tag.c_str(),
             life.first, life.last, buffer.allocated_size, buffer.region);
  }
}

void CompressionDAG::enableBoundsCheck(bool on) {
  engine_->checks_bounds = on;
}
bool CompressionDAG::isBoundsCheckEnabled() const {
  return engine_->checks_bounds;
}
void CompressionDAG::setColoringEnabled(bool on) {
  engine_->shares_memory = on;
}
bool CompressionDAG::isColoringEnabled() const {
  return engine_->buffers.regionCount() > 0;
}
std::size_t CompressionDAG::getColorRegionCount() const {
  return engine_->buffers.regionCount();
}
void CompressionDAG::setCaptureMode(bool on) {
  engine_->capture_mode = on;
}
bool CompressionDAG::isCaptureMode() const {
  return engine_->capture_mode;
}
void CompressionDAG::enableProfiling(bool on) {
  engine_->profiling = on;
}
bool CompressionDAG::isProfilingEnabled() const {
  return engine_->profiling;
}
std::vector<StageTimingResult> CompressionDAG::collectTimings() const {
  return engine_->collectTimings();
}

}  // namespace fz
