#include "pipeline/frame/decode_plan.h"

#include <algorithm>

#include "core/require.h"
#include "fz/stage_descriptor.h"
#include "stage/stage.h"
#include "stage/stage_factory.h"

namespace fz {

namespace {

bool contains(std::span<const std::uint16_t> ids, std::uint16_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::span<const std::uint16_t> inputsOf(const FZMStageInfo& stage) {
  return {stage.input_buffer_ids.data(), stage.num_inputs};
}
std::span<const std::uint16_t> outputsOf(const FZMStageInfo& stage) {
  return {stage.output_buffer_ids.data(), stage.num_outputs};
}

/// The stage that reads the pipeline's input: none of its inputs is another stage's output.
std::size_t sourceOf(const FrameHeader& header) {
  std::size_t found = header.stages.size();
  for (std::size_t i = 0; i < header.stages.size(); ++i) {
    const auto inputs = inputsOf(header.stages[i]);
    const bool is_source = std::all_of(inputs.begin(), inputs.end(), [&](std::uint16_t id) {
      return std::none_of(header.stages.begin(), header.stages.end(),
                          [&](const FZMStageInfo& s) { return contains(outputsOf(s), id); });
    });
    if (is_source) {
      FZ_REQUIRE(found == header.stages.size(), ErrorCode::kUnsupported,
                 "frame: more than one source stage");
      found = i;
    }
  }
  FZ_REQUIRE(found < header.stages.size() && header.stages[found].num_inputs == 1,
             ErrorCode::kCorrupt, "frame: no stage reads the input");
  return found;
}

}  // namespace

void putPlanKey(const FrameHeader& header, std::vector<std::uint16_t>& key) {
  key.clear();
  for (const FZMStageInfo& stage : header.stages) {
    key.insert(key.end(), {stage.stage_type, stage.num_inputs, stage.num_outputs});
    key.insert(key.end(), stage.input_buffer_ids.begin(), stage.input_buffer_ids.end());
    key.insert(key.end(), stage.output_buffer_ids.begin(), stage.output_buffer_ids.end());
    if (const StageDescriptor* descriptor = findStage(stage.stage_type)) {
      for (const DataType type :
           descriptor->types_from_config(ByteView(stage.stage_config.data(), stage.config_size))) {
        key.push_back(static_cast<std::uint16_t>(type));
      }
    }
  }
  for (const FZMBufferEntry& buffer : header.buffers) {
    key.push_back(buffer.dag_buffer_id);
  }
}

std::unique_ptr<DecodePlan> makeDecodePlan(const FrameHeader& header,
                                           const std::vector<Stage*>& custom_stages,
                                           MemoryPool* pool,
                                           MemoryStrategy strategy) {
  auto plan = std::make_unique<DecodePlan>(pool, strategy);
  const std::size_t n = header.stages.size();
  putPlanKey(header, plan->key);
  plan->stages.resize(n, nullptr);
  plan->is_custom.resize(n, false);

  // The last listed consumer of a buffer regenerates it; the others are not needed.
  const auto regeneratorOf = [&](std::uint16_t id) {
    std::size_t found = n;
    for (std::size_t i = 0; i < n; ++i) {
      found = contains(inputsOf(header.stages[i]), id) ? i : found;
    }
    return found;
  };
  std::vector<std::size_t> todo = {sourceOf(header)};
  std::vector<bool> needed(n, false);
  needed[todo.front()] = true;
  for (std::size_t k = 0; k < todo.size(); ++k) {
    for (const std::uint16_t id : outputsOf(header.stages[todo[k]])) {
      const std::size_t from = regeneratorOf(id);
      if (from < n && !needed[from]) {
        needed[from] = true;
        todo.push_back(from);
      }
    }
  }

  Graph& graph = plan->engine.graph;
  std::vector<DAGNode*> nodes(n, nullptr);
  for (std::size_t i = 0; i < n; ++i) {
    if (!needed[i]) {
      continue;
    }
    const FZMStageInfo& record = header.stages[i];
    if (findStage(record.stage_type) == nullptr && i < custom_stages.size() &&
        custom_stages[i] != nullptr && custom_stages[i]->getStageTypeId() == record.stage_type) {
      plan->stages[i] = custom_stages[i];
      plan->is_custom[i] = true;
    } else {
      plan->owned.push_back(makeStage(record.stage_type, record.stage_config.data(),
                                      record.config_size, record.stage_version));
      plan->stages[i] = plan->owned.back().get();
      plan->stages[i]->setInverse(true);
    }
    nodes[i] = graph.addStage(plan->stages[i], "");
    for (std::size_t port = 0; port < record.num_inputs; ++port) {
      graph.addOutput(*nodes[i], static_cast<int>(port), 0, nodes[i]->name);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!needed[i]) {
      continue;
    }
    for (const std::uint16_t id : outputsOf(header.stages[i])) {
      const std::size_t from = regeneratorOf(id);
      if (from < n) {
        const auto inputs = inputsOf(header.stages[from]);
        const auto port = std::find(inputs.begin(), inputs.end(), id) - inputs.begin();
        graph.connect(*nodes[from], *nodes[i], static_cast<int>(port));
        continue;
      }
      const bool stored = std::any_of(header.buffers.begin(), header.buffers.end(),
                                      [id](const auto& b) { return b.dag_buffer_id == id; });
      FZ_REQUIRE(stored, ErrorCode::kCorrupt, "frame: buffer {} has neither a segment nor a reader",
                 id);
      plan->segment_buffers[id] = graph.addInput(*nodes[i], 0, nodes[i]->name);
    }
  }
  plan->engine.finalize();
  plan->nodes = nodes;
  plan->result_buffer = nodes[todo.front()]->output_buffer_ids.front();
  return plan;
}

void DecodePlan::configure(const FrameHeader& header) {
  for (std::size_t i = 0; i < header.stages.size(); ++i) {
    Stage* stage = stages[i];
    if (stage == nullptr) {
      continue;
    }
    const FZMStageInfo& record = header.stages[i];
    stage->setStageVersion(record.stage_version);
    stage->deserializeHeader(record.stage_config.data(), record.config_size);
    FZ_REQUIRE(stage->getNumInputs() <= record.num_outputs, ErrorCode::kCorrupt,
               "{}: the frame stores {} outputs, {} are needed", stage->getName(),
               record.num_outputs, stage->getNumInputs());
    FZ_REQUIRE(stage->getNumOutputs() == record.num_inputs, ErrorCode::kCorrupt,
               "{}: the frame has {} inputs, the stage {}", stage->getName(), record.num_inputs,
               stage->getNumOutputs());
  }
}

}  // namespace fz
