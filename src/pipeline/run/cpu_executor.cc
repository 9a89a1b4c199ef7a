// Running a plan on the CPU: stage after stage, and fused chains tile after tile through all of
// their stages.
#include <algorithm>
#include <chrono>

#include "backends/cpu/field_watch.h"
#include "backends/cpu/parallel_for.h"
#include "backends/cpu/tile_walk.h"
#include "backends/cpu/watched_executor.h"
#include "core/stage_access.h"
#include "pipeline/plan/tile_role.h"
#include "pipeline/run/engine.h"
#include "shared/bits.h"

namespace fz {

/// A fused chain made ready to run.
struct CpuChain {
  TileChain chain;
  TileWork work;
  std::vector<DAGNode*> in_order;  ///< of execution: from the field on, or towards it
};

namespace {

SimpleStage& stageOf(const DAGNode& node) {
  return static_cast<SimpleStage&>(*node.stage);
}

float millisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::size_t sizeOf(std::uint8_t type, std::size_t otherwise) {
  const auto data_type = static_cast<DataType>(type);
  return isKnown(data_type) ? getDataTypeSize(data_type) : otherwise;
}

TileStep tileStepOf(const DAGNode& node, const TileOp& op, std::size_t value_bytes) {
  SimpleStage& stage = stageOf(node);
  const std::size_t in = sizeOf(stage.getInputDataType(0), value_bytes);
  const std::size_t out = sizeOf(stage.getOutputDataType(0), value_bytes);
  TileStep tile_step;
  tile_step.field_bytes = stage.isInverse() ? out : in;
  tile_step.coded_bytes = stage.isInverse() ? in : out;
  if (!takesValues(op)) {
    tile_step.field_bytes = value_bytes;  // bytes, but as many as there are values
    tile_step.coded_bytes = value_bytes;
  }
  return tile_step;
}

std::shared_ptr<CpuChain> prepareChain(const Plan& plan, const Step& step) {
  auto made = std::make_shared<CpuChain>();
  TileChain& chain = made->chain;
  chain.widest_bytes = step.value_bytes;
  chain.between_bytes = step.value_bytes;
  for (DAGNode* node : step.chain) {
    const TileOp& op = plan.opOf(*node);
    TileStep tile_step = tileStepOf(*node, op, step.value_bytes);
    CpuTilePart* part = StageAccess::cpuTilePart(stageOf(*node));
    FZ_REQUIRE(part != nullptr, ErrorCode::kInternal, "{}: declares a tile operation but has none",
               node->name);
    if (node == step.chain.front()) {
      chain.field_bytes = tile_step.field_bytes;
    }
    chain.widest_bytes =
        std::max({chain.widest_bytes, tile_step.field_bytes, tile_step.coded_bytes});
    chain.between_bytes = std::max(chain.between_bytes, tile_step.coded_bytes);
    switch (roleOf(op)) {
      case TileRole::kOrder:
        chain.order = static_cast<CpuOrder*>(part);
        chain.maps = std::move(chain.steps);
        chain.steps.clear();
        break;
      case TileRole::kCoder:
        chain.coder = static_cast<CpuCoder*>(part);
        break;
      default:
        tile_step.op = static_cast<CpuTileOp*>(part);
        chain.steps.push_back(tile_step);
    }
    if (!std::holds_alternative<CoderOp>(op)) {
      chain.coded_bytes = tile_step.coded_bytes;
    }
  }
  made->in_order = step.chain;
  if (stageOf(*step.chain.front()).isInverse()) {
    std::reverse(made->in_order.begin(), made->in_order.end());
  }
  return made;
}

/// Sizes of the outputs, as the stage reports them.
void takeSizes(Engine& engine, const DAGNode& node) {
  // Of a stage that reports sizes by name, 0 means "empty" only where the name is there.
  const bool is_exact = simpleStage(node) != nullptr;
  std::unordered_map<std::string, std::size_t> by_name;
  std::vector<std::string> names;
  if (!is_exact) {
    by_name = node.stage->getActualOutputSizesByName();
    names = node.stage->getOutputNames();
  }
  const std::vector<std::size_t>& capacities = engine.runOf(node).capacities;
  for (const int id : node.output_buffer_ids) {
    const auto port = static_cast<std::size_t>(engine.graph.edge(id).port);
    std::size_t n_bytes = capacities[port];
    if (is_exact) {
      n_bytes = node.stage->getActualOutputSize(static_cast<int>(port));
    } else if (port < names.size() && by_name.count(names[port]) != 0) {
      n_bytes = by_name.at(names[port]);
    }
    FZ_REQUIRE(n_bytes <= capacities[port], ErrorCode::kInternal,
               "{}: port {} reports {} bytes, but its buffer has {}", node.name, port, n_bytes,
               capacities[port]);
    engine.buffers.at(id).size = n_bytes;
  }
}

void releaseInputs(Engine& engine, DAGNode& node, cudaStream_t stream) {
  node.is_executed = true;
  for (const int id : node.input_buffer_ids) {
    engine.buffers.release(id, stream);
  }
}

/// Outputs that a stage found too small get what it asks for; false when there are any.
bool hasFitted(const DAGNode& node, NodeRun& run) {
  const std::vector<std::size_t>& needed = node.stage->neededOutputSizes();
  for (std::size_t port = 0; port < needed.size(); ++port) {
    run.capacities[port] = std::max(run.capacities[port], needed[port]);
  }
  return needed.empty();
}

void beginStage(Engine& engine, const DAGNode& node, const ExecContext* context) {
  engine.prepareInputs(node);
  node.stage->setExecContext(context);
  node.stage->beginRun();
  NodeRun& run = engine.runOf(node);
  node.stage->estimateOutputSizesInto(run.sizes, run.capacities);
}

void requireNothingFound(const FieldWatch* watch) {
  FZ_REQUIRE(watch == nullptr || !watch->hasFound(), ErrorCode::kBoundViolation,
             "the field has missing values, but no Mask");
}

/// The whole field at once, for steps that do not show their tiles.
void watchField(FieldWatch& watch, ByteView field, const CpuExecutor& executor) {
  constexpr std::size_t kPartBytes = std::size_t{1} << 18;
  parallelFor(executor, bits::ceilDiv(field.size(), kPartBytes), [&](std::size_t part) {
    const std::size_t first = part * kPartBytes;
    watch.look(field.subspan(first, std::min(kPartBytes, field.size() - first)));
  });
  requireNothingFound(&watch);
}

/// What is to look at the tiles of a step: none where it begins behind the field, and where it
/// shows no tiles, after it has looked at all.
FieldWatch* watchOf(Engine& engine, const Step& step, const Request& request) {
  const DAGNode& first = *step.chain.front();
  if (request.watch == nullptr || !first.dependencies.empty()) {
    return nullptr;
  }
  if (step.isFused()) {
    return request.watch;
  }
  engine.prepareInputs(first);
  const NodeRun& run = engine.runOf(first);
  watchField(*request.watch, {static_cast<const std::uint8_t*>(run.inputs[0]), run.sizes[0]},
             request.context->cpu != nullptr ? *request.context->cpu : CpuExecutor::serial());
  return nullptr;
}

void runSingle(Engine& engine, const Step& step, const Request& request, cudaStream_t stream) {
  DAGNode& node = *step.runs_at;
  const auto start = std::chrono::steady_clock::now();
  watchOf(engine, step, request);
  beginStage(engine, node, request.context);
  runStage(engine, node, stream);
  engine.runOf(node).elapsed_ms = millisecondsSince(start);
  releaseInputs(engine, node, stream);
}

/// One attempt at a fused chain: memory and checks, stage by stage, so that what the coder finds
/// wrong is thrown before the field's memory is asked for; then the tiles. False: outputs were too
/// small, or a stage wants another pass.
bool attemptChain(Engine& engine, const Step& step, const TileWalk& walk, cudaStream_t stream) {
  CpuChain& cpu = *step.cpu;
  for (const DAGNode* node : cpu.in_order) {
    NodeRun& run = engine.runOf(*node);
    engine.provideOutputs(*node, stream);
    node->stage->setOutputCapacities(run.capacities);
    StageAccess::beginInGroup(stageOf(*node), engine.buffers.pool(), run.inputs, run.outputs,
                              run.sizes, walk.cut);
  }
  if (walk.progress != nullptr) {
    walk.progress->beginStages(step.chain.size(), walk.cut.tileCount());
  }
  const NodeRun& first = engine.runOf(*cpu.in_order.front());
  const NodeRun& last = engine.runOf(*cpu.in_order.back());
  const ByteView in(static_cast<const std::uint8_t*>(first.inputs[0]), first.sizes[0]);
  const MutableByteView out(static_cast<std::uint8_t*>(last.outputs[0]), last.capacities[0]);
  stageOf(*step.chain.front()).isInverse() ? decodeTiles(walk, in, out)
                                           : encodeTiles(walk, in, out);
  requireNothingFound(walk.watch);
  requireNotCancelled(walk.progress);
  bool is_done = true;
  for (const DAGNode* node : cpu.in_order) {
    StageAccess::endInGroup(stageOf(*node), engine.buffers.pool());
  }
  for (const DAGNode* node : cpu.in_order) {
    const bool fitted = hasFitted(*node, engine.runOf(*node));
    is_done = is_done && fitted && !node->stage->wantsRerun();
  }
  return is_done;
}

void runFused(Engine& engine, Step& step, const Request& request, cudaStream_t stream) {
  if (step.cpu == nullptr) {
    step.cpu = prepareChain(engine.plan, step);
  }
  CpuChain& cpu = *step.cpu;
  const auto start = std::chrono::steady_clock::now();
  for (DAGNode* node : cpu.in_order) {
    beginStage(engine, *node, request.context);
    for (const int id : node->output_buffer_ids) {
      if (engine.buffers.at(id).is_inside) {
        engine.buffers.at(id).size = engine.runOf(*node).capacities[0];
      }
    }
  }
  // Bytes on the coder's side of the last op.
  const DAGNode& last = *step.chain.back();
  const bool puts_values_out = stageOf(last).isInverse() == (cpu.chain.coder != nullptr);
  const NodeRun& last_run = engine.runOf(last);
  const std::size_t coded_bytes = puts_values_out ? last_run.capacities[0] : last_run.sizes[0];
  const TileCut cut{coded_bytes / step.value_bytes, step.tile_values, step.value_bytes,
                    step.coder_values};
  const CpuExecutor& threads =
      request.context->cpu != nullptr ? *request.context->cpu : CpuExecutor::serial();
  const TileWalk walk{cpu.chain,
                      cut,
                      threads,
                      engine.buffers.pool(),
                      cpu.work,
                      request.progress,
                      watchOf(engine, step, request)};
  repeatUntilDone(step.name, [&] { return attemptChain(engine, step, walk, stream); });
  for (const DAGNode* node : cpu.in_order) {
    node->stage->postStreamSync(stream);
    node->stage->checkResult();
  }
  engine.runOf(*step.runs_at).elapsed_ms = millisecondsSince(start);
  for (DAGNode* node : cpu.in_order) {
    takeSizes(engine, *node);
    releaseInputs(engine, *node, stream);
  }
}

}  // namespace

void runStage(Engine& engine, const DAGNode& node, cudaStream_t stream) {
  Stage& stage = *node.stage;
  NodeRun& run = engine.runOf(node);
  repeatUntilDone(node.name, [&] {
    engine.provideOutputs(node, stream);
    stage.setOutputCapacities(run.capacities);
    {
      const Buffers::ScratchScope scope(engine.buffers);
      stage.execute(stream, engine.buffers.pool(), run.inputs, run.outputs, run.sizes);
    }
    return hasFitted(node, run) && !stage.wantsRerun();
  });
  stage.postStreamSync(stream);
  stage.checkResult();
  takeSizes(engine, node);
}

namespace {

/// Hands the stages of a run their threads: those of the request, watched where somebody may ask
/// the run to stop.
class RunThreads {
 public:
  RunThreads(Engine& engine, const Request& request)
      : engine_(engine),
        request_(request),
        watched_(request.context->cpu != nullptr ? *request.context->cpu : CpuExecutor::serial(),
                 request.progress != nullptr ? *request.progress : nobody_),
        context_(*request.context) {
    context_.cpu = &watched_;
  }
  RunThreads(const RunThreads&) = delete;
  RunThreads& operator=(const RunThreads&) = delete;
  /// Stages keep the context, which ends here.
  ~RunThreads() {
    for (const DAGNode* node : engine_.graph.order()) {
      node->stage->setExecContext(request_.context);
    }
  }

  Request request() const {
    Request same = request_;
    same.context = request_.progress != nullptr ? &context_ : request_.context;
    return same;
  }

 private:
  Engine& engine_;
  const Request& request_;
  const RunProgress nobody_;
  const WatchedExecutor watched_;
  ExecContext context_;
};

}  // namespace

void runOnCpu(Engine& engine, const Request& wanted, cudaStream_t stream) {
  FZ_REQUIRE(engine.graph.isFinalized(), ErrorCode::kInvalidState,
             "CompressionDAG: execute called before finalize");
  engine.buffers.beginRun();
  engine.replan(*wanted.context, stream);
  engine.preallocate(stream);
  const RunThreads threads(engine, wanted);
  const Request request = threads.request();
  RunProgress nobody_looks;
  RunProgress& progress = request.progress != nullptr ? *request.progress : nobody_looks;
  progress.beginCall(engine.graph.order().size());
  for (Step& step : engine.plan.steps()) {
    requireNotCancelled(&progress);
    if (step.isFused()) {
      runFused(engine, step, request, stream);
    } else {
      progress.beginStages(1, 0);
      runSingle(engine, step, request, stream);
    }
    progress.endStages(step.chain.size());
  }
}

}  // namespace fz
