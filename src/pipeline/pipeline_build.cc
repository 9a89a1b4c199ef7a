#include <algorithm>
#include <new>
#include <numeric>

#include "core/require.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_impl.h"

#if FZ_HAVE_CUDA
#include "backends/cuda/device_guard.h"
#include "pipeline/cuda_runner.h"
#endif

namespace fz {

Pipeline::Impl::Impl(std::size_t hint, MemoryStrategy memory_strategy, float multiplier)
    : pool_config(hint, multiplier),
      pool(pool_config),
      strategy(memory_strategy),
      dag(std::make_unique<CompressionDAG>(&pool, memory_strategy)),
      pool_multiplier(multiplier),
      hint_bytes(hint),
      frame(pool),
      padded_input(pool),
      decoded(pool) {
}

Pipeline::Pipeline(std::size_t input_data_size, MemoryStrategy strategy, float pool_multiplier) try
    : impl_(std::make_unique<Impl>(input_data_size, strategy, pool_multiplier)) {
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

Pipeline::Pipeline(const std::string& config_path) : Pipeline() {
  loadConfig(config_path);
}

Pipeline::~Pipeline() {
  // Buffers and stage scratch go back to the pool before the pool goes.
  impl_->cuda.reset();
  impl_->decoder.reset();
  impl_->dag.reset();
  impl_->entries.clear();
}

void Pipeline::Impl::removeStages() {
  const bool bounds_check = dag->isBoundsCheckEnabled();
  dag = std::make_unique<CompressionDAG>(&pool, strategy);
  dag->enableProfiling(profiling);
  dag->enableBoundsCheck(bounds_check);
  dag->configureStreams(n_streams);
  decoder.reset();
  entries.clear();
  n_connections = 0;
  is_ordered = false;
  is_wired = false;
  finalized = false;
}

void Pipeline::Impl::requireNotFinalized(const char* what) const {
  FZ_REQUIRE(!finalized, ErrorCode::kInvalidState, "Pipeline: {} after finalize", what);
}
void Pipeline::Impl::requireFinalized(const char* what) const {
  FZ_REQUIRE(finalized, ErrorCode::kInvalidState, "Pipeline: {} before finalize", what);
}

Pipeline::Impl::Entry& Pipeline::Impl::entryOf(const Stage* stage, const char* role) {
  for (Entry& entry : entries) {
    if (entry.stage.get() == stage) {
      return entry;
    }
  }
  detail::throwError(ErrorCode::kInvalidArgument,
                     fmt::format("Pipeline::connect: the {} {} this pipeline", role,
                                 stage == nullptr ? "is null, not a stage of" : "is no stage of"));
}

Stage* Pipeline::addStage(std::unique_ptr<Stage> stage, const std::string& name) try {
  impl_->requireNotFinalized("addStage");
  FZ_REQUIRE(stage != nullptr, ErrorCode::kInvalidArgument, "Pipeline: the stage is null");
  FZ_REQUIRE(impl_->entries.size() < FZM_MAX_STAGES, ErrorCode::kGraph,
             "Pipeline: at most {} stages", FZM_MAX_STAGES);
  Stage* raw = stage.get();
  raw->setPipelineDims(impl_->dims);
  std::string unique = name.empty() ? raw->getName() : name;
  const auto isTaken = [&](const std::string& text) {
    return std::any_of(impl_->entries.begin(), impl_->entries.end(),
                       [&](const Impl::Entry& e) { return e.name == text; });
  };
  const std::string base = unique;
  for (int i = 1; isTaken(unique); ++i) {
    unique = base + std::to_string(i);
  }
  DAGNode* node = impl_->dag->addStage(raw, unique);
  const std::vector<std::string> ports = raw->getOutputNames();
  for (std::size_t i = 0; i < raw->getNumOutputs(); ++i) {
    impl_->dag->addUnconnectedOutput(node, 0, static_cast<int>(i),
                                     unique + "." + (i < ports.size() ? ports[i] : "?"));
  }
  impl_->entries.push_back({std::move(stage), unique, node});
  return raw;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

int Pipeline::connect(Stage* dependent, Stage* producer, const std::string& output_name) try {
  impl_->requireNotFinalized("connect");
  Impl::Entry& to = impl_->entryOf(dependent, "consumer");
  Impl::Entry& from = impl_->entryOf(producer, "producer");
  const int port = producer->getOutputIndex(output_name);
  if (port < 0) {
    std::string names;
    for (const std::string& name : producer->getOutputNames()) {
      names += (names.empty() ? "" : ", ") + name;
    }
    detail::throwError(ErrorCode::kGraph,
                       fmt::format("Pipeline::connect: {} has no port '{}'; it has {}{}", from.name,
                                   output_name, names,
                                   output_name == "outlier_count"
                                       ? " (the outlier count is not a port: read it from "
                                         "getActualOutputSizesByName())"
                                       : ""));
  }
  if (from.node->output_index_to_buffer_id.count(port) == 0) {
    impl_->dag->addUnconnectedOutput(from.node, 0, port, from.name + "." + output_name);
  }
  impl_->dag->connectExistingOutput(from.node, to.node, port);
  ++impl_->n_connections;
  return from.node->output_index_to_buffer_id.at(port);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

int Pipeline::connect(Stage* dependent, const std::vector<Stage*>& producers) {
  int id = -1;
  for (Stage* producer : producers) {
    id = connect(dependent, producer);
  }
  return id;
}

/// Settings may have changed a stage's ports since it was added.
void Pipeline::Impl::refreshPorts() {
  for (Entry& entry : entries) {
    const std::size_t n_ports = entry.stage->getNumOutputs();
    std::vector<int> stale;
    for (const auto& [port, id] : entry.node->output_index_to_buffer_id) {
      if (static_cast<std::size_t>(port) >= n_ports) {
        FZ_REQUIRE(dag->getBufferInfo(id).consumer_stage_ids.empty(), ErrorCode::kGraph,
                   "{}: port {} is connected, but the stage's settings removed it", entry.name,
                   port);
        stale.push_back(port);
      }
    }
    for (const int port : stale) {
      dag->dropOutput(entry.node, port);
    }
    const std::vector<std::string> names = entry.stage->getOutputNames();
    for (std::size_t port = 0; port < n_ports; ++port) {
      if (entry.node->output_index_to_buffer_id.count(static_cast<int>(port)) == 0) {
        dag->addUnconnectedOutput(entry.node, 0, static_cast<int>(port),
                                  entry.name + "." + names[port]);
      }
    }
  }
}

void Pipeline::Impl::checkConnections() const {
  for (const Entry& entry : entries) {
    const std::size_t n_wired = entry.node->input_buffer_ids.size();
    const bool takes_part = n_wired > 0 || !entry.node->dependents.empty();
    FZ_REQUIRE(n_connections == 0 || takes_part, ErrorCode::kGraph,
               "Pipeline: stage {} is not connected to any other", entry.name);
    FZ_REQUIRE(n_wired == 0 || n_wired == entry.stage->getNumInputs(), ErrorCode::kGraph,
               "Pipeline: stage {} needs {} inputs, {} are connected", entry.name,
               entry.stage->getNumInputs(), n_wired);
  }
}

void Pipeline::Impl::checkTypes() const {
  for (const Entry& to : entries) {
    for (std::size_t slot = 0; slot < to.node->input_buffer_ids.size(); ++slot) {
      const BufferInfo& buffer = dag->getBufferInfo(to.node->input_buffer_ids[slot]);
      if (buffer.producer_stage_id < 0) {
        continue;
      }
      const Entry& from = entries[static_cast<std::size_t>(buffer.producer_stage_id)];
      const auto port = static_cast<std::size_t>(buffer.producer_output_index);
      const auto produced = static_cast<DataType>(from.stage->getOutputDataType(port));
      const auto consumed = static_cast<DataType>(to.stage->getInputDataType(slot));
      FZ_REQUIRE(areConnectable(produced, consumed), ErrorCode::kTypeMismatch,
                 "Pipeline: {} port '{}' gives {}, but {} takes {}", from.name,
                 from.stage->getOutputNames()[port], dataTypeToString(produced), to.name,
                 dataTypeToString(consumed));
    }
  }
}

void Pipeline::Impl::checkSingleSource() const {
  std::vector<std::string> sources;
  for (const Entry& entry : entries) {
    if (entry.node->dependencies.empty()) {
      sources.push_back(entry.name);
    }
  }
  std::string names;
  for (const std::string& name : sources) {
    names += (names.empty() ? "" : ", ") + name;
  }
  FZ_REQUIRE(!sources.empty(), ErrorCode::kGraph,
             "Pipeline: every stage waits for another one: the stages form a cycle");
  FZ_REQUIRE(sources.size() == 1, ErrorCode::kGraph,
             "Pipeline: one stage reads the input, but {} have no producer ({}); connect them, or "
             "use one pipeline per input",
             sources.size(), names);
  for (const Entry& entry : entries) {
    FZ_REQUIRE(!entry.node->dependencies.empty() || entry.stage->getNumInputs() == 1,
               ErrorCode::kGraph, "Pipeline: source {} needs {} inputs, a source has one",
               entry.name, entry.stage->getNumInputs());
  }
}

void Pipeline::Impl::checkGraphMode() const {
  if (!graph_mode) {
    return;
  }
  FZ_REQUIRE(strategy == MemoryStrategy::PREALLOCATE, ErrorCode::kInvalidState,
             "Pipeline: graph mode needs MemoryStrategy::PREALLOCATE");
  FZ_REQUIRE(hint_bytes > 0, ErrorCode::kInvalidState,
             "Pipeline: graph mode needs an input size in the constructor");
  FZ_REQUIRE(!pool.isFallbackMode(), ErrorCode::kInvalidState,
             "Pipeline: graph mode needs a memory pool, not its fallback");
}

/// Decides which buffers are stored, in which order, and their ids in the frame.
void Pipeline::Impl::placeSinks() {
  frame_ids.assign(dag->getBufferCount(), FZM_UNUSED_BUFFER_ID);
  std::uint16_t next = 0;
  for (const DAGNode* node : dag->getOrder()) {
    for (const int id : node->output_buffer_ids) {
      frame_ids[static_cast<std::size_t>(id)] = next++;
    }
  }
  frame_ids[static_cast<std::size_t>(source_buffer)] = next;
  sinks.clear();
  sink_names.clear();
  const auto& order = dag->getOrder();
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    FZ_REQUIRE((*node)->output_buffer_ids.size() <= FZM_MAX_PORTS &&
                   (*node)->input_buffer_ids.size() <= FZM_MAX_PORTS,
               ErrorCode::kGraph, "Pipeline: {} has more than {} inputs or outputs", (*node)->name,
               FZM_MAX_PORTS);
    for (const int id : (*node)->output_buffer_ids) {
      if (dag->getBufferInfo(id).consumer_stage_ids.empty()) {
        sinks.push_back(id);
        const std::vector<std::string> names = (*node)->stage->getOutputNames();
        const auto port = static_cast<std::size_t>(dag->getBufferInfo(id).producer_output_index);
        sink_names.push_back(port < names.size() ? names[port] : std::string());
      }
    }
  }
  FZ_REQUIRE(sinks.size() <= FZM_MAX_BUFFERS, ErrorCode::kGraph,
             "Pipeline: {} outputs to store, a frame holds {}", sinks.size(), FZM_MAX_BUFFERS);
  header_bytes = headerBytes(entries.size(), sinks.size());
  // The first segment, usually the largest, is written straight into the frame.
  dag->setExternalOutput(sinks.front(), nullptr, 0);
  dag->setExternalGrower([this](int /*id*/, std::size_t n) { return growFirstSegment(n); });
}

void Pipeline::Impl::planGroups() const {
#if FZ_HAVE_CUDA
  std::optional<cuda::DeviceGuard> guard;
  if (backend == Backend::CUDA) {
    guard.emplace(device);  // kernels are looked for on the current device
  }
#endif
  dag->planGroups();
}

/// The stages become a graph. Can be done again after it ran out of memory; once it is done, the
/// graph stays.
void Pipeline::Impl::wire() {
  if (is_wired) {
    return;
  }
  refreshPorts();
  checkConnections();
  checkTypes();
  checkSingleSource();
  checkGraphMode();
  alignment = 1;
  for (const Entry& entry : entries) {
    alignment =
        std::lcm(alignment, std::max<std::size_t>(1, entry.stage->getRequiredInputAlignment()));
    if (entry.node->dependencies.empty()) {
      source_buffer = entry.node->input_buffer_ids.empty()
                          ? dag->setInputBuffer(entry.node, hint_bytes, "input")
                          : entry.node->input_buffer_ids.front();
    }
  }
  if (!is_ordered) {
    dag->finalize();
    is_ordered = true;
  }
  placeSinks();
  is_wired = true;
}

/// What compress() needs beforehand.
void Pipeline::Impl::takeMemory() {
  for (Entry& entry : entries) {
    entry.stage->onFinalize(hint_bytes, &pool);
  }
  planGroups();
  dag->preallocateBuffers();
#if FZ_HAVE_CUDA
  if (!warmup_on_finalize && cuda != nullptr && strategy == MemoryStrategy::PREALLOCATE &&
      warmupBytes() > 0) {
    cuda->prepare(warmupBytes());
  }
#endif
}

void Pipeline::finalize() try {
  Impl& p = *impl_;
  p.requireNotFinalized("finalize");
  p.resolveBackend("Pipeline::finalize");
  FZ_REQUIRE(!p.entries.empty(), ErrorCode::kGraph, "Pipeline: no stages");
  for (Impl::Entry& entry : p.entries) {
    entry.stage->setPipelineDims(p.dims);
  }
  p.wire();
  p.decoder.reset();  // one from before does not know the stages outside the library
  p.dag->setColoringEnabled(p.coloring_requested);
  p.dag->enableProfiling(p.profiling);
  if (p.executor == nullptr) {
    setThreads(p.n_threads);
  }
  p.dag->setExecContext(&p.context);
  for (Impl::Entry& entry : p.entries) {
    entry.stage->setExecContext(&p.context);
  }
  p.finalized = true;
  try {
    p.takeMemory();
    if (p.warmup_on_finalize) {
      warmup();
    }
  } catch (...) {
    p.finalized = false;  // so that the caller can try again
    throw;
  }
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
