// Running a fused group on the CPU: tile after tile through all of its stages.
#include <algorithm>
#include <chrono>

#include "backends/cpu/exec_context.h"
#include "backends/cpu/parallel_for.h"
#include "backends/cpu/tile_walk.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "fz/progress.h"
#include "pipeline/dag.h"
#include "pipeline/tile_role.h"

namespace fz {

/// A group made ready to run.
struct CpuGroup {
  TileChain chain;
  TileWork work;
  std::vector<DAGNode*> in_order;  ///< of execution: from the field on, or towards it
};

namespace {

// As for a single stage: larger outputs, other passes.
constexpr int kMaxAttempts = 64;

SimpleStage& stageOf(const DAGNode& node) {
  return static_cast<SimpleStage&>(*node.stage);
}

std::size_t sizeOf(std::uint8_t type, std::size_t otherwise) {
  const auto data_type = static_cast<DataType>(type);
  return isKnown(data_type) ? getDataTypeSize(data_type) : otherwise;
}

TileStep stepOf(const DAGNode& node, std::size_t value_bytes) {
  SimpleStage& stage = stageOf(node);
  const std::size_t in = sizeOf(stage.getInputDataType(0), value_bytes);
  const std::size_t out = sizeOf(stage.getOutputDataType(0), value_bytes);
  TileStep step;
  step.field_bytes = stage.isInverse() ? out : in;
  step.coded_bytes = stage.isInverse() ? in : out;
  if (!takesValues(node.tile_op)) {
    step.field_bytes = value_bytes;  // bytes, but as many as there are values
    step.coded_bytes = value_bytes;
  }
  return step;
}

std::shared_ptr<CpuGroup> prepare(const FusedGroup& group) {
  auto made = std::make_shared<CpuGroup>();
  TileChain& chain = made->chain;
  chain.widest_bytes = group.value_bytes;
  chain.between_bytes = group.value_bytes;
  for (DAGNode* node : group.chain) {
    TileStep step = stepOf(*node, group.value_bytes);
    CpuTilePart* part = StageAccess::cpuTilePart(stageOf(*node));
    FZ_REQUIRE(part != nullptr, ErrorCode::kInternal, "{}: names a tile operation and has none",
               node->name);
    if (node == group.chain.front()) {
      chain.field_bytes = step.field_bytes;
    }
    chain.widest_bytes = std::max({chain.widest_bytes, step.field_bytes, step.coded_bytes});
    chain.between_bytes = std::max(chain.between_bytes, step.coded_bytes);
    switch (roleOf(node->tile_op)) {
      case TileRole::kOrder:
        chain.order = static_cast<CpuOrder*>(part);
        chain.maps = std::move(chain.steps);
        chain.steps.clear();
        break;
      case TileRole::kCoder:
        chain.coder = static_cast<CpuCoder*>(part);
        break;
      default:
        step.op = static_cast<CpuTileOp*>(part);
        chain.steps.push_back(step);
    }
    if (!std::holds_alternative<CoderOp>(node->tile_op)) {
      chain.coded_bytes = step.coded_bytes;
    }
  }
  made->in_order = group.chain;
  if (stageOf(*group.chain.front()).isInverse()) {
    std::reverse(made->in_order.begin(), made->in_order.end());
  }
  return made;
}

/// Bytes on the coder's side of the last op.
std::size_t codedBytes(const FusedGroup& group, bool has_coder) {
  const DAGNode& last = *group.chain.back();
  return stageOf(last).isInverse() == has_coder ? last.exec_capacities[0] : last.exec_sizes[0];
}

}  // namespace

/// Memory and checks, stage by stage: what the coder finds wrong is thrown before the field's
/// memory is asked for.
void CompressionDAG::beginGroup(FusedGroup& group, const TileCut& cut, cudaStream_t stream) {
  for (DAGNode* node : group.cpu->in_order) {
    provideOutputs(*node, node->exec_capacities, stream);
    stageOf(*node).setOutputCapacities(node->exec_capacities);
    StageAccess::beginInGroup(stageOf(*node), pool_, node->exec_inputs, node->exec_outputs,
                              node->exec_sizes, cut);
  }
}

/// False: outputs were too small, or a stage wants another pass.
bool CompressionDAG::isGroupDone(FusedGroup& group) {
  bool is_done = true;
  for (DAGNode* node : group.cpu->in_order) {
    const std::vector<std::size_t>& needed = node->stage->neededOutputSizes();
    for (std::size_t port = 0; port < needed.size(); ++port) {
      std::size_t& capacity = node->exec_capacities[port];
      capacity = std::max(capacity, needed[port]);
    }
    is_done = is_done && needed.empty() && !node->stage->wantsRerun();
  }
  return is_done;
}

void CompressionDAG::runGroup(FusedGroup& group, cudaStream_t stream) {
  if (group.cpu == nullptr) {
    group.cpu = prepare(group);
  }
  CpuGroup& cpu = *group.cpu;
  const auto start = std::chrono::steady_clock::now();
  for (DAGNode* node : cpu.in_order) {
    prepareInputs(*node);
    node->stage->setExecContext(exec_context_);
    node->stage->beginRun();
    node->stage->estimateOutputSizesInto(node->exec_sizes, node->exec_capacities);
    for (const int id : node->output_buffer_ids) {
      if (bufferAt(id).is_virtual) {
        bufferAt(id).size = node->exec_capacities[0];
      }
    }
  }
  const bool is_inverse = stageOf(*group.chain.front()).isInverse();
  const std::size_t coded_bytes = codedBytes(group, cpu.chain.coder != nullptr);
  const TileCut cut{coded_bytes / group.value_bytes, group.tile_values, group.value_bytes,
                    group.coder_values};
  const CpuExecutor& executor = exec_context_ != nullptr && exec_context_->cpu != nullptr
                                    ? *exec_context_->cpu
                                    : CpuExecutor::serial();
  const TileWalk walk{cpu.chain, cut, executor, pool_, cpu.work, progress_};
  const auto inputOf = [](const DAGNode& node) {
    return ByteView(static_cast<const std::uint8_t*>(node.exec_inputs[0]), node.exec_sizes[0]);
  };
  const auto outputOf = [](const DAGNode& node) {
    return MutableByteView(static_cast<std::uint8_t*>(node.exec_outputs[0]),
                           node.exec_capacities[0]);
  };
  for (int attempt = 0;; ++attempt) {
    FZ_REQUIRE(attempt < kMaxAttempts, ErrorCode::kInternal, "{}: not done after {} attempts",
               group.name, kMaxAttempts);
    beginGroup(group, cut, stream);
    if (progress_ != nullptr) {
      progress_->beginStages(group.chain.size(), cut.tileCount());
    }
    const DAGNode& first = *cpu.in_order.front();
    const DAGNode& last = *cpu.in_order.back();
    if (is_inverse) {
      decodeTiles(walk, inputOf(first), outputOf(last));
    } else {
      encodeTiles(walk, inputOf(first), outputOf(last));
    }
    for (DAGNode* node : cpu.in_order) {
      StageAccess::endInGroup(stageOf(*node), pool_);
    }
    if (isGroupDone(group)) {
      break;
    }
  }
  for (DAGNode* node : cpu.in_order) {
    node->stage->postStreamSync(stream);
    node->stage->checkResult();
  }
  group.runs_at->elapsed_ms =
      std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count();
  for (DAGNode* node : cpu.in_order) {
    takeActualSizes(*node, node->exec_capacities);
    node->is_executed = true;
    releaseInputs(*node, stream);
  }
}

}  // namespace fz
