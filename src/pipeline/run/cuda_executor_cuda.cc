#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cuda/nvtx_range.h"
#include "backends/cuda/record.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "pipeline/run/cuda_executor.h"
#include "stage/stage.h"

namespace fz {

namespace {

/// The stage when it has kernels for the current direction.
SimpleStage* nativeStage(const DAGNode& node) {
  SimpleStage* stage = simpleStage(node);
  return stage != nullptr && StageAccess::hasKernels(*stage) ? stage : nullptr;
}

std::size_t indexOf(const DAGNode& node) {
  return static_cast<std::size_t>(node.id);
}

}  // namespace

CudaExecutor& Engine::cuda() {
  if (cuda_ == nullptr) {
    cuda_ = std::make_shared<CudaExecutor>(*this);
  }
  cuda_->state().reserve(graph.nodes().size());
  return *cuda_;
}

CudaExecutor::CudaExecutor(Engine& engine) : engine_(engine), state_(engine.buffers.pool()) {
}

void Engine::abandonCuda(cudaStream_t stream) noexcept {
  if (cuda_ != nullptr) {  // it may be what could not be made
    cuda_->state().recordFailure();
  }
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
      status == cudaStreamCaptureStatusNone) {
    FZ_CUDA_CHECK_WARN(cudaStreamSynchronize(stream));
  }
}

/// Upper limits of all sizes, and which of them are exact.
void CudaExecutor::planSizes() {
  Buffers& buffers = engine_.buffers;
  for (const DAGNode* node : engine_.graph.order()) {
    engine_.prepareInputs(*node);
    NodeRun& run = engine_.runOf(*node);
    const auto all = [](const std::vector<int>& ids, auto holds) {
      return std::all_of(ids.begin(), ids.end(), holds);
    };
    const bool exact =
        all(node->input_buffer_ids, [&](int id) { return buffers.at(id).size_exact; });
    const SimpleStage* native = nativeStage(*node);
    std::vector<std::size_t>& estimates = run.capacities;
    const bool is_planned =
        all(node->output_buffer_ids, [&](int id) { return buffers.at(id).has_planned_size; });
    run.is_open = node->stage->isInverse() && !exact && !is_planned;
    if (is_planned || run.is_open) {
      estimates.assign(node->output_buffer_ids.size(), 0);
    } else {
      node->stage->estimateOutputSizesInto(run.sizes, estimates);
    }
    StageRecord& record = state_.initial(indexOf(*node));
    for (const int id : node->output_buffer_ids) {
      Buffer& buffer = buffers.at(id);
      const auto port = static_cast<std::size_t>(buffer.producer_output_index);
      buffer.size_exact =
          exact && native != nullptr && StageAccess::isOutputSizeFixed(*native, port);
      if (buffer.has_planned_size) {
        buffer.size_exact = buffer.planned_exact;
        estimates[port] = buffer.planned_size;
      } else if (!buffer.size_exact) {
        estimates[port] = std::max(estimates[port], buffer.grown_size);
      }
      buffer.size = estimates[port];
      record.n_bytes[port] = buffer.size_exact ? buffer.size : 0;
    }
  }
}

/// The sizes of a decoder behind one that found its own on the way, which has run by now. A stage
/// may hold what it is asked for against its config, so it must not be asked with an upper limit.
void CudaExecutor::planOpenSizes(const DAGNode& node) {
  NodeRun& run = engine_.runOf(node);
  if (!run.is_open) {
    return;
  }
  node.stage->estimateOutputSizesInto(run.sizes, run.capacities);
  for (const int id : node.output_buffer_ids) {
    Buffer& buffer = engine_.buffers.at(id);
    const auto port = static_cast<std::size_t>(buffer.producer_output_index);
    run.capacities[port] = std::max(run.capacities[port], buffer.grown_size);
    buffer.size = run.capacities[port];
  }
}

void CudaExecutor::sendStartValues(const Request& request, cudaStream_t stream) {
  switch (request.mode) {
    case Request::Mode::kCapture:
      // Whoever launches the graph sees to the start values first: whether they must be sent
      // differs from launch to launch, and a graph with other nodes could not be updated in place.
      return;
    case Request::Mode::kWaits:
      return state_.enqueueInitIfNeeded(stream);
    case Request::Mode::kDetached:  // may become part of a graph of the caller's
      return state_.enqueueInit(stream);
  }
}

void CudaExecutor::enqueue(const Request& request, cuda::RunContext& run) {
  FZ_REQUIRE(engine_.graph.isFinalized(), ErrorCode::kInvalidState,
             "CompressionDAG: execute called before finalize");
  const cudaStream_t stream = run.stream();
  engine_.buffers.beginRun();
  for (std::size_t i = 0; i < engine_.buffers.count(); ++i) {
    Buffer& buffer = engine_.buffers.at(static_cast<int>(i));
    if (buffer.producer_stage_id < 0) {
      buffer.size_exact = buffer.size_on_device == nullptr;
    }
  }
  engine_.replan(*request.context, stream);
  planSizes();
  dissolveUnsettled();
  if (engine_.buffers.strategy() == MemoryStrategy::PREALLOCATE) {
    engine_.shareMemory();
    for (std::size_t i = 0; i < engine_.buffers.count(); ++i) {
      const int id = static_cast<int>(i);
      Buffer& buffer = engine_.buffers.at(id);
      if (buffer.producer_stage_id >= 0 && !buffer.is_external && !buffer.is_inside) {
        buffer.initial_size = buffer.size;
        engine_.buffers.provide(id, buffer.size, stream);
      }
    }
  }
  sendStartValues(request, stream);
  if (request.before_stages) {
    request.before_stages(stream);
  }
  is_output_announced_ = false;
  is_timed_ = request.profiling && request.mode != Request::Mode::kCapture;
  begin_events_.resize(engine_.graph.nodes().size());
  end_events_.resize(engine_.graph.nodes().size());
  for (Step& step : engine_.plan.steps()) {
    enqueueStep(step, request, run);
  }
}

void CudaExecutor::enqueueStep(Step& step, const Request& request, cuda::RunContext& run) {
  const cuda::NvtxRange range(step.name.c_str());
  const std::size_t i = indexOf(*step.runs_at);
  if (step.isFused()) {
    enqueueFused(step, request, run);
  } else {
    if (is_timed_) {
      begin_events_[i].record(run.stream());
    }
    announceOutput(request);
    enqueueSingle(*step.runs_at, request, run);
  }
  if (is_timed_) {
    end_events_[i].record(run.stream());
  }
  for (DAGNode* node : step.chain) {
    releaseInputs(*node, run.stream());
  }
}

void CudaExecutor::announceOutput(const Request& request) {
  if (!std::exchange(is_output_announced_, true) && request.before_output) {
    request.before_output();
  }
}

void CudaExecutor::releaseInputs(DAGNode& node, cudaStream_t stream) {
  node.is_executed = true;
  for (const int id : node.input_buffer_ids) {
    engine_.buffers.release(id, stream);
  }
}

std::vector<CudaInput> CudaExecutor::inputsOf(const DAGNode& node) {
  std::vector<CudaInput> inputs;
  const NodeRun& run = engine_.runOf(node);
  for (std::size_t k = 0; k < node.input_buffer_ids.size(); ++k) {
    const Buffer& buffer = engine_.buffers.at(node.input_buffer_ids[k]);
    DeviceSize size{buffer.size, nullptr};
    if (buffer.size_on_device != nullptr) {
      size.on_device = buffer.size_on_device;
    } else if (!buffer.size_exact) {
      size.on_device = &state_.onDevice(static_cast<std::size_t>(buffer.producer_stage_id))
                            ->n_bytes[buffer.producer_output_index];
    }
    inputs.push_back({static_cast<const std::uint8_t*>(run.inputs[k]), size});
  }
  return inputs;
}

std::vector<CudaOutput> CudaExecutor::outputsOf(const DAGNode& node) {
  const std::vector<std::size_t>& capacities = engine_.runOf(node).capacities;
  std::vector<CudaOutput> outputs(capacities.size());
  for (const int id : node.output_buffer_ids) {
    const Buffer& buffer = engine_.buffers.at(id);
    const auto port = static_cast<std::size_t>(buffer.producer_output_index);
    // One by one: what is between the members stays zero, as batches want it.
    CudaOutput& output = outputs[port];
    output.data = capacities[port] == 0 ? nullptr : static_cast<std::uint8_t*>(buffer.d_ptr);
    output.capacity_bytes = capacities[port];
    output.size_known = buffer.size_exact;
  }
  return outputs;
}

/// Waits for the stream and takes over the exact sizes of the node's inputs.
void CudaExecutor::settleInputs(const DAGNode& node, cudaStream_t stream) {
  state_.enqueueCopyToHost(stream);
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  NodeRun& run = engine_.runOf(node);
  for (std::size_t k = 0; k < node.input_buffer_ids.size(); ++k) {
    const Buffer& buffer = engine_.buffers.at(node.input_buffer_ids[k]);
    if (buffer.producer_stage_id >= 0) {
      const StageRecord& record = state_.result(static_cast<std::size_t>(buffer.producer_stage_id));
      run.sizes[k] = record.n_bytes[buffer.producer_output_index];
      run.inputs[k] = run.sizes[k] == 0 ? nullptr : buffer.d_ptr;
    }
  }
}

/// A stage from outside, which knows only the Stage interface: exact sizes, answers on the host.
void CudaExecutor::runForeign(const DAGNode& node, const Request& request, cudaStream_t stream) {
  FZ_REQUIRE(request.mode != Request::Mode::kCapture, ErrorCode::kUnsupported,
             "{}: waits for the host, so it cannot be part of a graph", node.name);
  settleInputs(node, stream);
  NodeRun& run = engine_.runOf(node);
  run.capacities = node.stage->estimateOutputSizes(run.sizes);
  node.stage->setExecContext(request.context);
  runStage(engine_, node, stream);
  StageRecord record;
  cuda::initRecord(record);
  for (const int id : node.output_buffer_ids) {
    const Buffer& buffer = engine_.buffers.at(id);
    record.n_bytes[buffer.producer_output_index] = buffer.size;
  }
  FZ_CUDA_CHECK(cudaMemcpyAsync(state_.onDevice(indexOf(node)), &record, sizeof(record),
                                cudaMemcpyHostToDevice, stream));
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
}

void CudaExecutor::enqueueSingle(const DAGNode& node,
                                 const Request& request,
                                 cuda::RunContext& run) {
  const cudaStream_t stream = run.stream();
  const std::size_t i = indexOf(node);
  Buffers& buffers = engine_.buffers;
  engine_.prepareInputs(node);
  SimpleStage* stage = simpleStage(node);
  if (stage == nullptr) {
    return runForeign(node, request, stream);
  }
  planOpenSizes(node);
  FZ_REQUIRE(StageAccess::hasKernels(*stage) || request.mode != Request::Mode::kCapture,
             ErrorCode::kUnsupported, "{}: has no kernels, so it cannot be part of a graph",
             node.name);
  stage->setExecContext(request.context);
  stage->beginRun();
  const std::vector<CudaInput> inputs = inputsOf(node);
  std::vector<std::size_t>& capacities = engine_.runOf(node).capacities;
  const auto is_settled = [&] {
    const auto isExact = [&](int id) { return buffers.at(id).size_exact; };
    return !stage->isInverse() || node.dependents.empty() ||
           buffers.at(node.output_buffer_ids.front()).has_planned_size ||
           std::all_of(node.output_buffer_ids.begin(), node.output_buffer_ids.end(), isExact);
  }();
  repeatUntilDone(node.name, [&] {
    for (const int id : node.output_buffer_ids) {
      const auto port = static_cast<std::size_t>(buffers.at(id).producer_output_index);
      buffers.provide(id, capacities[port], stream);
    }
    const std::vector<CudaOutput> outputs = outputsOf(node);
    {
      const Buffers::ScratchScope scope(buffers);
      StageAccess::enqueueCuda(*stage,
                               {inputs, outputs, state_.onDevice(i), stream, buffers.pool(), &run});
    }
    if (is_settled) {
      return true;
    }
    // A decoder that finds its size on the way: later ones must know it before they begin.
    FZ_REQUIRE(request.mode != Request::Mode::kCapture, ErrorCode::kUnsupported,
               "{}: decodes to a size that depends on the data, so it cannot be part of a graph",
               node.name);
    state_.enqueueCopyToHost(stream);
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
    const bool fitted = takeResult(node);
    for (const int id : node.output_buffer_ids) {
      Buffer& buffer = buffers.at(id);
      const auto port = static_cast<std::size_t>(buffer.producer_output_index);
      buffer.size_exact = buffer.size_exact || fitted;
      capacities[port] = fitted ? capacities[port] : std::max(capacities[port], buffer.grown_size);
    }
    if (!fitted) {
      FZ_CUDA_CHECK(cudaMemcpyAsync(state_.onDevice(i), &state_.initial(i), sizeof(StageRecord),
                                    cudaMemcpyHostToDevice, stream));
    }
    return fitted;
  });
}

/// Takes one node's record over; false when an output was too small and has been recorded to grow.
bool CudaExecutor::takeResult(const DAGNode& node) {
  SimpleStage* stage = simpleStage(node);
  if (stage == nullptr) {
    return true;  // was dealt with when it ran
  }
  StageAccess::finishCuda(*stage, state_.result(indexOf(node)), engine_.runOf(node).capacities);
  const std::vector<std::size_t>& needed = stage->neededOutputSizes();
  for (const int id : node.output_buffer_ids) {
    Buffer& buffer = engine_.buffers.at(id);
    const auto port = static_cast<std::size_t>(buffer.producer_output_index);
    if (!needed.empty()) {
      buffer.grown_size = std::max(buffer.grown_size, needed[port]);
    } else {
      buffer.size = stage->getActualOutputSize(buffer.producer_output_index);
    }
  }
  return needed.empty();
}

bool CudaExecutor::finish(cudaStream_t stream) {
  std::vector<Step>& steps = engine_.plan.steps();
  std::vector<unsigned> passes;
  passes.reserve(steps.size());
  for (Step& step : steps) {
    passes.push_back(std::exchange(step.pass, 0u));  // the next run begins anew, unless a rerun
  }
  for (const DAGNode* node : engine_.graph.order()) {
    const bool fitted = takeResult(*node);
    const Step& own = engine_.plan.stepOf(*node);
    if (!fitted || node->stage->wantsRerun()) {
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const bool next = fitted && steps[i].isFused() && &steps[i] == &own;
        steps[i].pass = passes[i] + (next ? 1 : 0);
      }
      return false;
    }
    if (simpleStage(*node) != nullptr) {
      node->stage->postStreamSync(stream);
      node->stage->checkResult();
    }
    if (is_timed_ && own.runs_at == node) {
      const std::size_t i = indexOf(*node);
      engine_.runOf(*node).elapsed_ms = end_events_[i].since(begin_events_[i]);
    }
    engine_.prepareInputs(*node);
  }
  return true;
}

}  // namespace fz
