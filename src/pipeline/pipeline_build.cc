#include <algorithm>
#include <new>
#include <numeric>

#include "backends/cuda/device_guard.h"
#include "core/require.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

Pipeline::Impl::Impl(std::size_t hint, MemoryStrategy memory_strategy, float multiplier)
    : PipelineCore(hint, memory_strategy, multiplier),
      dag(std::make_unique<CompressionDAG>(*engine)),
      pool_multiplier(multiplier),
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
  impl_->on_device.reset();
  impl_->decoder.reset();
  impl_->dag.reset();
  impl_->writer.reset();
  impl_->engine.reset();
  impl_->entries.clear();
}

void Pipeline::Impl::removeStages() {
  const std::unique_ptr<Engine> old = std::move(engine);
  makeEngine(old->buffers.strategy());
  engine->checks_bounds = old->checks_bounds;
  engine->n_streams = old->n_streams;
  engine->shares_memory = old->shares_memory;
  dag = std::make_unique<CompressionDAG>(*engine);
  decoder.reset();
  entries.clear();
  n_connections = 0;
  is_ordered = false;
  is_wired = false;
  finalized = false;
}

void Pipeline::Impl::requireNotFinalized(const char* what) const {
  FZ_REQUIRE(!finalized, ErrorCode::kInvalidState, "Pipeline: {} called after finalize", what);
}
void Pipeline::Impl::requireFinalized(const char* what) const {
  FZ_REQUIRE(finalized, ErrorCode::kInvalidState, "Pipeline: {} called before finalize", what);
}

Pipeline::Impl::Entry& Pipeline::Impl::entryOf(const Stage* stage, const char* role) {
  for (Entry& entry : entries) {
    if (entry.stage.get() == stage) {
      return entry;
    }
  }
  detail::throwError(
      ErrorCode::kInvalidArgument,
      fmt::format("Pipeline::connect: the {} {} this pipeline", role,
                  stage == nullptr ? "is null, not a stage of" : "is not a stage of"));
}

Stage* Pipeline::addStage(std::unique_ptr<Stage> stage, const std::string& name) try {
  impl_->requireNotFinalized("addStage");
  FZ_REQUIRE(stage != nullptr, ErrorCode::kInvalidArgument, "Pipeline: the stage is null");
  FZ_REQUIRE(impl_->entries.size() < FZM_MAX_STAGES, ErrorCode::kGraph,
             "Pipeline: at most {} stages", FZM_MAX_STAGES);
  Stage* raw = stage.get();
  raw->setPipelineDims(impl_->frame_settings.dims);
  std::string unique = name.empty() ? raw->getName() : name;
  const auto isTaken = [&](const std::string& text) {
    return std::any_of(impl_->entries.begin(), impl_->entries.end(),
                       [&](const Impl::Entry& e) { return e.name == text; });
  };
  const std::string base = unique;
  for (int i = 1; isTaken(unique); ++i) {
    unique = base + std::to_string(i);
  }
  DAGNode* node = impl_->engine->graph.addStage(raw, unique);
  const std::vector<std::string> ports = raw->getOutputNames();
  for (std::size_t i = 0; i < raw->getNumOutputs(); ++i) {
    impl_->engine->graph.addOutput(*node, static_cast<int>(i), 0,
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
                       fmt::format("Pipeline::connect: {} has no port '{}'; its ports are {}{}",
                                   from.name, output_name, names,
                                   output_name == "outlier_count"
                                       ? " (the outlier count is not a port: read it from "
                                         "getActualOutputSizesByName())"
                                       : ""));
  }
  if (from.node->output_index_to_buffer_id.count(port) == 0) {
    impl_->engine->graph.addOutput(*from.node, port, 0, from.name + "." + output_name);
  }
  impl_->engine->graph.connect(*from.node, *to.node, port);
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
        FZ_REQUIRE(engine->graph.edge(id).consumers.empty(), ErrorCode::kGraph,
                   "{}: port {} is connected, but the stage's settings removed it", entry.name,
                   port);
        stale.push_back(port);
      }
    }
    for (const int port : stale) {
      engine->graph.dropOutput(*entry.node, port);
    }
    const std::vector<std::string> names = entry.stage->getOutputNames();
    for (std::size_t port = 0; port < n_ports; ++port) {
      if (entry.node->output_index_to_buffer_id.count(static_cast<int>(port)) == 0) {
        engine->graph.addOutput(*entry.node, static_cast<int>(port), 0,
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
      const Edge& edge = engine->graph.edge(to.node->input_buffer_ids[slot]);
      if (edge.isFromOutside()) {
        continue;
      }
      const Entry& from = entries[static_cast<std::size_t>(edge.producer)];
      const auto port = static_cast<std::size_t>(edge.port);
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
  FZ_REQUIRE(
      sources.size() == 1, ErrorCode::kGraph,
      "Pipeline: only one stage can read the input, but {} have no producer ({}); connect them, or use one pipeline per input",
      sources.size(), names);
  for (const Entry& entry : entries) {
    FZ_REQUIRE(!entry.node->dependencies.empty() || entry.stage->getNumInputs() == 1,
               ErrorCode::kGraph, "Pipeline: source {} needs {} inputs, but a source has one",
               entry.name, entry.stage->getNumInputs());
  }
}

void Pipeline::Impl::checkGraphMode() const {
  if (!graph_mode) {
    return;
  }
  FZ_REQUIRE(engine->buffers.strategy() == MemoryStrategy::PREALLOCATE, ErrorCode::kInvalidState,
             "Pipeline: graph mode needs MemoryStrategy::PREALLOCATE");
  FZ_REQUIRE(hint_bytes > 0, ErrorCode::kInvalidState,
             "Pipeline: graph mode needs an input size in the constructor");
  FZ_REQUIRE(!pool.isFallbackMode(), ErrorCode::kInvalidState,
             "Pipeline: graph mode needs a memory pool, not its fallback");
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
  int source_buffer = -1;
  for (const Entry& entry : entries) {
    alignment =
        std::lcm(alignment, std::max<std::size_t>(1, entry.stage->getRequiredInputAlignment()));
    if (entry.node->dependencies.empty()) {
      source_buffer = entry.node->input_buffer_ids.empty()
                          ? engine->graph.addInput(*entry.node, hint_bytes, "input")
                          : entry.node->input_buffer_ids.front();
    }
  }
  if (!is_ordered) {
    engine->finalize();
    is_ordered = true;
  }
  writer->placeSinks(source_buffer);
  // The first segment, usually the largest, is written straight into the frame.
  engine->buffers.lendOutput(writer->sinks().front(), nullptr, 0);
  engine->buffers.setGrower([this](int /*id*/, std::size_t n) { return growFirstSegment(n); });
  is_wired = true;
}

/// What compress() needs beforehand.
void Pipeline::Impl::takeMemory() {
  for (Entry& entry : entries) {
    entry.stage->onFinalize(hint_bytes, &pool);
  }
  {
    const cuda::DeviceGuard guard(device);  // kernels are looked for on the current device
    engine->replan(context, nullptr);
  }
  engine->preallocate(nullptr);
  if (!warmup_on_finalize && on_device != nullptr && warmupBytes() > 0 &&
      engine->buffers.strategy() == MemoryStrategy::PREALLOCATE) {
    on_device->prepare(warmupBytes());
  }
}

void Pipeline::finalize() try {
  Impl& p = *impl_;
  p.requireNotFinalized("finalize");
  p.resolveBackend("Pipeline::finalize");
  FZ_REQUIRE(!p.entries.empty(), ErrorCode::kGraph, "Pipeline: no stages");
  for (Impl::Entry& entry : p.entries) {
    entry.stage->setPipelineDims(p.frame_settings.dims);
  }
  p.wire();
  p.decoder.reset();  // one from before does not know the stages outside the library
  if (p.executor == nullptr) {
    setThreads(p.n_threads);
  }
  p.engine->context = &p.context;
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
