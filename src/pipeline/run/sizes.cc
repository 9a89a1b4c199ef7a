#include "pipeline/run/sizes.h"

#include <algorithm>
#include <numeric>

#include "core/require.h"
#include "core/stage_access.h"
#include "stage/stage.h"

namespace fz {
namespace {

void beginWithInputs(const Graph& graph, const Buffers& buffers, SizeEstimate& estimate) {
  estimate.buffer_bytes.assign(buffers.count(), 0);
  for (std::size_t id = 0; id < buffers.count(); ++id) {
    if (graph.edges()[id].isFromOutside()) {
      estimate.buffer_bytes[id] = buffers.all()[id].size;
    }
  }
}

void estimateOutputs(const Graph& graph,
                     const Buffers& buffers,
                     const DAGNode& node,
                     bool proven,
                     SizeEstimate& estimate) {
  std::vector<std::size_t>& sizes = estimate.buffer_bytes;
  estimate.inputs.clear();
  for (const int id : node.input_buffer_ids) {
    estimate.inputs.push_back(sizes[static_cast<std::size_t>(id)]);
  }
  std::vector<std::size_t>& outputs = estimate.outputs;
  if (proven) {
    outputs = node.stage->maxOutputSizes(estimate.inputs);
  } else {
    node.stage->estimateOutputSizesInto(estimate.inputs, outputs);
  }
  for (const int id : node.output_buffer_ids) {
    const auto port = static_cast<std::size_t>(graph.edge(id).port);
    FZ_REQUIRE(port < outputs.size(), ErrorCode::kInternal,
               "{}: estimates sizes of {} outputs, but port {} is connected", node.name,
               outputs.size(), port);
    sizes[static_cast<std::size_t>(id)] =
        proven ? outputs[port] : std::max(outputs[port], buffers.at(id).grown_size);
  }
}

}  // namespace

void estimateSizes(const Graph& graph,
                   const Buffers& buffers,
                   bool proven,
                   SizeEstimate& estimate) {
  beginWithInputs(graph, buffers, estimate);
  for (const DAGNode* node : graph.order()) {
    estimateOutputs(graph, buffers, *node, proven, estimate);
  }
}

void estimateKnownSizes(const Graph& graph, const Buffers& buffers, SizeEstimate& estimate) {
  beginWithInputs(graph, buffers, estimate);
  std::vector<bool>& is_reserve = estimate.is_reserve;
  is_reserve.assign(buffers.count(), false);
  for (const DAGNode* node : graph.order()) {
    const bool follows_reserve =
        std::any_of(node->input_buffer_ids.begin(), node->input_buffer_ids.end(),
                    [&](int id) { return is_reserve[static_cast<std::size_t>(id)]; });
    if (!follows_reserve || !node->stage->isInverse()) {
      estimateOutputs(graph, buffers, *node, false, estimate);
    }
    const SimpleStage* stage = node->stage->isInverse() ? simpleStage(*node) : nullptr;
    for (const int id : node->output_buffer_ids) {
      const auto port = static_cast<std::size_t>(graph.edge(id).port);
      is_reserve[static_cast<std::size_t>(id)] =
          follows_reserve || (stage != nullptr && !StageAccess::isOutputSizeFixed(*stage, port));
    }
  }
}

std::vector<std::size_t> estimateSizes(const Graph& graph, const Buffers& buffers, bool proven) {
  SizeEstimate estimate;
  estimateSizes(graph, buffers, proven, estimate);
  return std::move(estimate.buffer_bytes);
}

namespace {

/// Estimates of what takes memory: nothing for buffers inside a fused chain.
std::vector<std::size_t> sizesInMemory(const Graph& graph, const Buffers& buffers) {
  std::vector<std::size_t> sizes = estimateSizes(graph, buffers, false);
  for (std::size_t id = 0; id < sizes.size(); ++id) {
    sizes[id] = buffers.all()[id].is_inside ? 0 : sizes[id];
  }
  return sizes;
}

}  // namespace

std::size_t totalBytes(const Graph& graph, const Buffers& buffers) {
  const std::vector<std::size_t> sizes = sizesInMemory(graph, buffers);
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

std::size_t peakBytes(const Graph& graph, const Plan& plan, const Buffers& buffers) {
  const std::vector<std::size_t> sizes = sizesInMemory(graph, buffers);
  std::size_t scratch = 0;
  for (const DAGNode* node : graph.order()) {
    std::vector<std::size_t> inputs;
    for (const int id : node->input_buffer_ids) {
      inputs.push_back(sizes[static_cast<std::size_t>(id)]);
    }
    scratch += node->stage->estimateScratchBytes(inputs);
  }
  if (buffers.strategy() == MemoryStrategy::PREALLOCATE) {
    std::size_t all = scratch;
    std::vector<std::size_t> region_bytes(buffers.regionCount(), 0);
    for (std::size_t id = 0; id < sizes.size(); ++id) {
      const int region = buffers.all()[id].region;
      if (region < 0) {
        all += sizes[id];
        continue;
      }
      std::size_t& bytes = region_bytes[static_cast<std::size_t>(region)];
      bytes = std::max(bytes, sizes[id]);
    }
    return std::accumulate(region_bytes.begin(), region_bytes.end(), all);
  }
  std::size_t peak = 0;
  for (int level = 0; level < static_cast<int>(graph.levels().size()); ++level) {
    std::size_t alive = 0;
    for (std::size_t id = 0; id < sizes.size(); ++id) {
      const Lifetime life = plan.lifetimeOf(static_cast<int>(id));
      alive += life.first <= level && level <= life.last ? sizes[id] : 0;
    }
    peak = std::max(peak, alive);
  }
  return peak + scratch;
}

}  // namespace fz
