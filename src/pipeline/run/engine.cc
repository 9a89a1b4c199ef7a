#include "pipeline/run/engine.h"

#include <algorithm>

#include "core/require.h"
#include "stage/stage.h"

namespace fz {

void Engine::finalize() {
  // The graph last: when memory runs out before that, all of it can be done again.
  buffers.adopt(graph);
  node_runs.resize(graph.nodes().size());
  graph.finalize();
}

void Engine::replan(const ExecContext& wanted, cudaStream_t stream) {
  if (plan.isCurrent(wanted.backend, wanted.fusion)) {
    return;
  }
  buffers.dropRegions(stream);  // they were planned for the chains that go
  plan.build(wanted.backend, wanted.fusion,
             [this](int id) { return buffers.at(id).is_external || buffers.at(id).is_persistent; });
  for (std::size_t id = 0; id < buffers.count(); ++id) {
    buffers.setInside(static_cast<int>(id), plan.isInside(static_cast<int>(id)), stream);
  }
}

void Engine::shareMemory() {
  if (!shares_memory || buffers.regionCount() > 0) {
    return;
  }
  buffers.setRegions(plan.colorEdges([this](int id) {
    const Buffer& buffer = buffers.at(id);
    return !graph.edge(id).isFromOutside() && !buffer.is_external && !buffer.is_persistent &&
           !buffer.is_inside;
  }));
}

void Engine::preallocate(cudaStream_t stream) {
  if (buffers.strategy() != MemoryStrategy::PREALLOCATE) {
    return;
  }
  shareMemory();
  estimateKnownSizes(graph, buffers, estimate_);
  for (std::size_t i = 0; i < buffers.count(); ++i) {
    const int id = static_cast<int>(i);
    Buffer& buffer = buffers.at(id);
    if (graph.edge(id).isFromOutside() || buffer.is_external || buffer.is_inside) {
      continue;
    }
    buffer.initial_size = estimate_.buffer_bytes[i];
    buffers.provide(id, estimate_.buffer_bytes[i], stream);
  }
}

void Engine::reset(cudaStream_t stream) {
  buffers.reset(stream);
  for (const auto& node : graph.nodes()) {
    node->is_executed = false;
  }
  for (Step& step : plan.steps()) {
    step.pass = 0;  // a run that broke off between its passes leaves one behind
  }
}

void Engine::prepareInputs(const DAGNode& node) {
  NodeRun& run = runOf(node);
  run.inputs.clear();
  run.sizes.clear();
  for (const int id : node.input_buffer_ids) {
    const Buffer& buffer = buffers.at(id);
    run.inputs.push_back(buffer.size == 0 ? nullptr : buffer.d_ptr);
    run.sizes.push_back(buffer.size);
  }
}

void Engine::provideOutputs(const DAGNode& node, cudaStream_t stream) {
  NodeRun& run = runOf(node);
  run.outputs.assign(run.capacities.size(), nullptr);
  for (const int id : node.output_buffer_ids) {
    if (buffers.at(id).is_inside) {
      continue;
    }
    const auto port = static_cast<std::size_t>(graph.edge(id).port);
    std::size_t& capacity = run.capacities[port];
    buffers.provide(id, capacity, stream);
    run.outputs[port] = capacity == 0 ? nullptr : buffers.at(id).d_ptr;
    capacity = capacity == 0 ? 0 : buffers.at(id).allocated_size;
  }
}

std::vector<StageTimingResult> Engine::collectTimings() const {
  std::vector<StageTimingResult> rows;
  for (const Step& step : plan.steps()) {
    StageTimingResult row;
    row.name = step.name;
    row.level = step.runs_at->level;
    row.elapsed_ms = node_runs[static_cast<std::size_t>(step.runs_at->id)].elapsed_ms;
    for (const DAGNode* node : step.chain) {
      const NodeRun& run = node_runs[static_cast<std::size_t>(node->id)];
      for (std::size_t k = 0; k < run.sizes.size(); ++k) {
        row.input_bytes += buffers.at(node->input_buffer_ids[k]).is_inside ? 0 : run.sizes[k];
      }
      for (const int id : node->output_buffer_ids) {
        row.output_bytes += buffers.at(id).is_inside ? 0 : buffers.at(id).size;
      }
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace fz
