// Running a graph on a device: every stage is enqueued with sizes that stay there, and one readback
// tells how it went.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cuda/nvtx_range.h"
#include "backends/cuda/record.h"
#include "backends/cuda/run_context.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "mem/mempool.h"
#include "pipeline/dag_cuda.h"
#include "stage/stage.h"

namespace fz {

namespace {

/// The stage when it has kernels for the current direction.
SimpleStage* nativeStage(const DAGNode& node) {
  auto* stage = dynamic_cast<SimpleStage*>(node.stage);
  return stage != nullptr && StageAccess::hasKernels(*stage) ? stage : nullptr;
}

}  // namespace

void abandonRun(CompressionDAG& dag, cudaStream_t stream) noexcept {
  // Each part on its own: the exception that is under way already tells what is wrong, and what
  // can still be put right must be.
  try {
    dag.runState().recordFailure();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
      status == cudaStreamCaptureStatusNone) {
    FZ_CUDA_CHECK_WARN(cudaStreamSynchronize(stream));
  }
}

CompressionDAG::CudaState& CompressionDAG::cudaState() {
  if (cuda_ == nullptr) {
    cuda_ = std::make_shared<CudaState>(pool_);
  }
  cuda_->block.reserve(nodes_.size());
  return *cuda_;
}

cuda::DeviceRunState& CompressionDAG::runState() {
  return cudaState().block;
}

/// Upper limits of all sizes, and which of them are exact.
void CompressionDAG::planSizesCuda() {
  CudaState& state = cudaState();
  state.capacities.assign(nodes_.size(), {});
  for (DAGNode* node : order_) {
    prepareInputs(*node);
    const bool exact = std::all_of(node->input_buffer_ids.begin(), node->input_buffer_ids.end(),
                                   [&](int id) { return bufferAt(id).size_exact; });
    const SimpleStage* native = nativeStage(*node);
    std::vector<std::size_t> estimates;
    const bool planned = std::all_of(node->output_buffer_ids.begin(), node->output_buffer_ids.end(),
                                     [&](int id) { return bufferAt(id).has_planned_size; });
    if (planned) {
      estimates.resize(node->output_buffer_ids.size());
    } else {
      node->stage->estimateOutputSizesInto(node->exec_sizes, estimates);
    }
    StageRecord& record = state.block.initial(static_cast<std::size_t>(node->id));
    for (const int id : node->output_buffer_ids) {
      BufferInfo& buffer = bufferAt(id);
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
    state.capacities[static_cast<std::size_t>(node->id)] = std::move(estimates);
  }
}

void CompressionDAG::enqueueCuda(cuda::RunContext& run) {
  const cudaStream_t stream = run.stream();
  FZ_REQUIRE(finalized_, ErrorCode::kInvalidState, "CompressionDAG: execute before finalize");
  CudaState& state = cudaState();
  for (BufferInfo& buffer : buffers_) {
    buffer.remaining_consumers = static_cast<int>(buffer.consumer_stage_ids.size());
    if (buffer.producer_stage_id < 0) {
      buffer.size_exact = buffer.size_on_device == nullptr;
    }
  }
  planGroups(stream);
  planSizesCuda();
  dropUnsettledGroups();
  if (strategy_ == MemoryStrategy::PREALLOCATE) {
    planRegions();
    for (std::size_t id = 0; id < buffers_.size(); ++id) {
      BufferInfo& buffer = buffers_[id];
      if (buffer.producer_stage_id >= 0 && !buffer.is_external && !buffer.is_virtual) {
        buffer.initial_size = buffer.size;
        provideOutput(static_cast<int>(id), buffer.size, stream);
      }
    }
  }
  if (capture_mode_) {
    // Whoever launches the graph sees to the start values first: whether they must be sent differs
    // from launch to launch, and a graph with other nodes could not be updated in place.
  } else if (caller_waits_) {
    state.block.enqueueInitIfNeeded(stream);
  } else {  // may become part of a graph of the caller's, which must stand for itself
    state.block.enqueueInit(stream);
  }
  if (before_stages_) {
    before_stages_(stream);
  }
  state.timed = profiling_ && !capture_mode_;
  state.begin_events.resize(nodes_.size());
  state.end_events.resize(nodes_.size());
  for (DAGNode* node : order_) {
    FusedGroup* group = node->group < 0 ? nullptr : &groups_[static_cast<std::size_t>(node->group)];
    if (group != nullptr && group->runs_at != node) {
      continue;
    }
    const cuda::NvtxRange range(group != nullptr ? group->name.c_str() : node->name.c_str());
    const auto i = static_cast<std::size_t>(node->id);
    if (group != nullptr) {
      enqueueGroupCuda(*group, run);
    } else {
      if (state.timed) {
        state.begin_events[i].record(stream);
      }
      announceOutput();
      enqueueNodeCuda(*node, run);
    }
    if (state.timed) {
      state.end_events[i].record(stream);
    }
    if (group == nullptr) {
      node->is_executed = true;
      releaseInputs(*node, stream);
    }
  }
}

void CompressionDAG::announceOutput() {
  if (before_output_) {
    std::exchange(before_output_, {})();
  }
}

std::vector<CudaInput> CompressionDAG::inputsCuda(const DAGNode& node) {
  CudaState& state = cudaState();
  std::vector<CudaInput> inputs;
  for (std::size_t k = 0; k < node.input_buffer_ids.size(); ++k) {
    const BufferInfo& buffer = bufferAt(node.input_buffer_ids[k]);
    DeviceSize size{buffer.size, nullptr};
    if (buffer.size_on_device != nullptr) {
      size.on_device = buffer.size_on_device;
    } else if (!buffer.size_exact) {
      size.on_device = &state.block.onDevice(static_cast<std::size_t>(buffer.producer_stage_id))
                            ->n_bytes[buffer.producer_output_index];
    }
    inputs.push_back({static_cast<const std::uint8_t*>(node.exec_inputs[k]), size});
  }
  return inputs;
}

std::vector<CudaOutput> CompressionDAG::outputsCuda(const DAGNode& node,
                                                    const std::vector<std::size_t>& capacities) {
  std::vector<CudaOutput> outputs(capacities.size());
  for (const int id : node.output_buffer_ids) {
    const BufferInfo& buffer = bufferAt(id);
    const auto port = static_cast<std::size_t>(buffer.producer_output_index);
    outputs[port] = {capacities[port] == 0 ? nullptr : static_cast<std::uint8_t*>(buffer.d_ptr),
                     capacities[port], buffer.size_exact};
  }
  return outputs;
}

/// Waits for the stream and takes over the exact sizes of the node's inputs.
void CompressionDAG::settleInputsCuda(DAGNode& node, cudaStream_t stream) {
  FZ_REQUIRE(!capture_mode_, ErrorCode::kUnsupported,
             "{}: waits for the host and cannot be part of a graph", node.name);
  CudaState& state = cudaState();
  state.block.enqueueCopyToHost(stream);
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  for (std::size_t k = 0; k < node.input_buffer_ids.size(); ++k) {
    const BufferInfo& buffer = bufferAt(node.input_buffer_ids[k]);
    if (buffer.producer_stage_id >= 0) {
      const StageRecord& record =
          state.block.result(static_cast<std::size_t>(buffer.producer_stage_id));
      node.exec_sizes[k] = record.n_bytes[buffer.producer_output_index];
      node.exec_inputs[k] = node.exec_sizes[k] == 0 ? nullptr : buffer.d_ptr;
    }
  }
}

/// A stage from outside, which knows only the Stage interface: exact sizes, answers on the host.
void CompressionDAG::runForeignCuda(DAGNode& node, cudaStream_t stream) {
  CudaState& state = cudaState();
  const auto i = static_cast<std::size_t>(node.id);
  settleInputsCuda(node, stream);
  std::vector<std::size_t>& capacities = state.capacities[i];
  capacities = node.stage->estimateOutputSizes(node.exec_sizes);
  node.stage->setExecContext(exec_context_);
  runUntilDone(node, capacities, stream);
  takeActualSizes(node, capacities);
  StageRecord record;
  cuda::initRecord(record);
  for (const int id : node.output_buffer_ids) {
    record.n_bytes[bufferAt(id).producer_output_index] = bufferAt(id).size;
  }
  FZ_CUDA_CHECK(cudaMemcpyAsync(state.block.onDevice(i), &record, sizeof(record),
                                cudaMemcpyHostToDevice, stream));
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
}

void CompressionDAG::enqueueNodeCuda(DAGNode& node, cuda::RunContext& run) {
  const cudaStream_t stream = run.stream();
  CudaState& state = cudaState();
  const auto i = static_cast<std::size_t>(node.id);
  prepareInputs(node);
  auto* stage = dynamic_cast<SimpleStage*>(node.stage);
  if (stage == nullptr) {
    runForeignCuda(node, stream);
    return;
  }
  FZ_REQUIRE(StageAccess::hasKernels(*stage) || !capture_mode_, ErrorCode::kUnsupported,
             "{}: has no kernels and cannot be part of a graph", node.name);
  stage->setExecContext(exec_context_);
  stage->beginRun();
  const std::vector<CudaInput> inputs = inputsCuda(node);
  std::vector<std::size_t>& capacities = state.capacities[i];
  for (int attempt = 0;; ++attempt) {
    for (const int id : node.output_buffer_ids) {
      provideOutput(id, capacities[static_cast<std::size_t>(bufferAt(id).producer_output_index)],
                    stream);
    }
    const std::vector<CudaOutput> outputs = outputsCuda(node, capacities);
    {
      const ScratchScope scope(*this);
      StageAccess::enqueueCuda(*stage,
                               {inputs, outputs, state.block.onDevice(i), stream, pool_, &run});
    }
    const bool is_settled =
        !stage->isInverse() || node.dependents.empty() ||
        bufferAt(node.output_buffer_ids.front()).has_planned_size ||
        std::all_of(node.output_buffer_ids.begin(), node.output_buffer_ids.end(),
                    [&](int id) { return bufferAt(id).size_exact; });
    if (is_settled) {
      return;
    }
    // A decoder that finds its size on the way: later ones must know it before they begin.
    FZ_REQUIRE(!capture_mode_, ErrorCode::kUnsupported,
               "{}: decodes to a size that only the data tell and cannot be part of a graph",
               node.name);
    state.block.enqueueCopyToHost(stream);
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
    if (takeResultCuda(node)) {
      for (const int id : node.output_buffer_ids) {
        bufferAt(id).size_exact = true;
      }
      return;
    }
    FZ_ASSERT(attempt < 64);
    for (const int id : node.output_buffer_ids) {
      const auto port = static_cast<std::size_t>(bufferAt(id).producer_output_index);
      capacities[port] = std::max(capacities[port], bufferAt(id).grown_size);
    }
    FZ_CUDA_CHECK(cudaMemcpyAsync(state.block.onDevice(i), &state.block.initial(i),
                                  sizeof(StageRecord), cudaMemcpyHostToDevice, stream));
  }
}

/// Takes one node's record over; false when an output was too small and has been noted to grow.
bool CompressionDAG::takeResultCuda(DAGNode& node) {
  CudaState& state = cudaState();
  const auto i = static_cast<std::size_t>(node.id);
  auto* stage = dynamic_cast<SimpleStage*>(node.stage);
  if (stage == nullptr) {
    return true;  // was dealt with when it ran
  }
  StageAccess::finishCuda(*stage, state.block.result(i), state.capacities[i]);
  const std::vector<std::size_t> needed = stage->neededOutputSizes();
  for (const int id : node.output_buffer_ids) {
    BufferInfo& buffer = bufferAt(id);
    const auto port = static_cast<std::size_t>(buffer.producer_output_index);
    if (!needed.empty()) {
      buffer.grown_size = std::max(buffer.grown_size, needed[port]);
    } else {
      buffer.size = stage->getActualOutputSize(buffer.producer_output_index);
    }
  }
  return needed.empty();
}

bool CompressionDAG::finishCuda(cudaStream_t stream) {
  CudaState& state = cudaState();
  std::vector<unsigned> passes(groups_.size(), 0);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    passes[g] =
        std::exchange(groups_[g].pass, 0u);  // the next run begins anew, unless it is a rerun
  }
  for (DAGNode* node : order_) {
    const bool fitted = takeResultCuda(*node);
    if (!fitted || node->stage->wantsRerun()) {
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        const bool next = fitted && node->group == static_cast<int>(g);
        groups_[g].pass = passes[g] + (next ? 1 : 0);
      }
      return false;
    }
    if (node->reports_exact_sizes) {
      node->stage->postStreamSync(stream);
      node->stage->checkResult();
    }
    const auto i = static_cast<std::size_t>(node->id);
    const bool ran_itself =
        node->group < 0 || groups_[static_cast<std::size_t>(node->group)].runs_at == node;
    if (state.timed && ran_itself) {
      node->elapsed_ms = state.end_events[i].since(state.begin_events[i]);
    }
    prepareInputs(*node);
  }
  return true;
}

}  // namespace fz
