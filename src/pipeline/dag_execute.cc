#include <algorithm>
#include <chrono>
#include <limits>

#include "core/require.h"
#include "fz/progress.h"
#include "mem/mempool.h"
#include "pipeline/dag.h"
#include "stage/stage.h"

namespace fz {

namespace {

// A stage may ask for larger outputs or another pass; one that never settles is broken.
constexpr int kMaxAttempts = 64;

}  // namespace

std::size_t CompressionDAG::bytesLeft() const {
  if (memory_limit_bytes_ == 0) {
    return std::numeric_limits<std::size_t>::max();
  }
  const std::size_t n_used = current_bytes_ + scratch_bytes_ + elsewhere_bytes_;
  return memory_limit_bytes_ - std::min(n_used, memory_limit_bytes_);
}

CompressionDAG::ScratchScope::ScratchScope(CompressionDAG& dag)
    : dag_(dag), before_bytes_(dag.pool_->getCurrentUsage()) {
  dag.pool_->setScratchAllowance(dag.bytesLeft());
}

CompressionDAG::ScratchScope::~ScratchScope() {
  dag_.pool_->setScratchAllowance(std::numeric_limits<std::size_t>::max());
  // A stage that grew gave its smaller block back, so the difference may fall as well.
  const std::size_t after_bytes = dag_.pool_->getCurrentUsage();
  dag_.scratch_bytes_ =
      after_bytes >= before_bytes_
          ? dag_.scratch_bytes_ + (after_bytes - before_bytes_)
          : dag_.scratch_bytes_ - std::min(dag_.scratch_bytes_, before_bytes_ - after_bytes);
}

void* CompressionDAG::allocate(std::size_t n_bytes, const std::string& tag, cudaStream_t stream) {
  FZ_REQUIRE(n_bytes <= bytesLeft(), ErrorCode::kLimit,
             "{}: {} bytes more than the {} in use exceed the limit of {} bytes", tag, n_bytes,
             current_bytes_ + scratch_bytes_ + elsewhere_bytes_, memory_limit_bytes_);
  void* memory = pool_->allocate(n_bytes, stream, tag, true);
  FZ_REQUIRE(memory != nullptr, ErrorCode::kOutOfMemory, "{}: {} bytes could not be had", tag,
             n_bytes);
  current_bytes_ += n_bytes;
  peak_bytes_ = std::max(peak_bytes_, current_bytes_);
  return memory;
}

void CompressionDAG::freeBuffer(BufferInfo& buffer, cudaStream_t stream) {
  if (!buffer.is_allocated || buffer.is_external || buffer.is_persistent || buffer.color >= 0) {
    return;
  }
  pool_->free(buffer.d_ptr, stream);
  current_bytes_ -= buffer.allocated_size;
  buffer.d_ptr = nullptr;
  buffer.allocated_size = 0;
  buffer.is_allocated = false;
}

void CompressionDAG::growRegion(Region& region, std::size_t n_bytes, cudaStream_t stream) {
  if (region.capacity_bytes < n_bytes) {
    pool_->free(region.memory, stream);
    current_bytes_ -= region.capacity_bytes;
    region.memory = nullptr;
    region.capacity_bytes = 0;
    region.memory = allocate(n_bytes, "region", stream);
    region.capacity_bytes = n_bytes;
  }
  for (const int id : region.buffer_ids) {
    BufferInfo& buffer = bufferAt(id);
    buffer.d_ptr = region.memory;
    buffer.allocated_size = region.capacity_bytes;
    buffer.is_allocated = region.memory != nullptr;
  }
}

/// Makes sure that the buffer holds n_bytes; contents may be lost.
void CompressionDAG::provideOutput(int buffer_id, std::size_t n_bytes, cudaStream_t stream) {
  BufferInfo& buffer = bufferAt(buffer_id);
  if (buffer.is_external) {
    if (buffer.allocated_size < n_bytes) {
      FZ_REQUIRE(static_cast<bool>(grow_external_), ErrorCode::kBufferTooSmall,
                 "{}: the buffer has {} bytes, {} are needed", buffer.tag, buffer.allocated_size,
                 n_bytes);
      buffer.d_ptr = grow_external_(buffer_id, n_bytes);
      buffer.allocated_size = n_bytes;
    }
    return;
  }
  if (buffer.color >= 0) {
    // No other buffer of the region is alive while this one is being produced.
    growRegion(regions_[static_cast<std::size_t>(buffer.color)], n_bytes, stream);
    return;
  }
  if (buffer.allocated_size >= n_bytes) {
    return;
  }
  if (buffer.is_allocated) {
    pool_->free(buffer.d_ptr, stream);
    current_bytes_ -= buffer.allocated_size;
    buffer.d_ptr = nullptr;
    buffer.allocated_size = 0;
    buffer.is_allocated = false;
  }
  buffer.d_ptr = allocate(n_bytes, buffer.tag, stream);
  buffer.allocated_size = n_bytes;
  buffer.is_allocated = true;
}

void CompressionDAG::prepareInputs(DAGNode& node) const {
  node.exec_inputs.clear();
  node.exec_sizes.clear();
  for (const int id : node.input_buffer_ids) {
    const BufferInfo& buffer = bufferAt(id);
    node.exec_inputs.push_back(buffer.size == 0 ? nullptr : buffer.d_ptr);
    node.exec_sizes.push_back(buffer.size);
  }
}

/// Memory for every output of a stage; inside a group an output has a capacity alone.
void CompressionDAG::provideOutputs(DAGNode& node,
                                    std::vector<std::size_t>& capacities,
                                    cudaStream_t stream) {
  node.exec_outputs.assign(capacities.size(), nullptr);
  for (const int id : node.output_buffer_ids) {
    if (bufferAt(id).is_virtual) {
      continue;
    }
    const auto port = static_cast<std::size_t>(bufferAt(id).producer_output_index);
    provideOutput(id, capacities[port], stream);
    const BufferInfo& buffer = bufferAt(id);
    node.exec_outputs[port] = capacities[port] == 0 ? nullptr : buffer.d_ptr;
    capacities[port] = capacities[port] == 0 ? 0 : buffer.allocated_size;
  }
}

void CompressionDAG::runUntilDone(DAGNode& node,
                                  std::vector<std::size_t>& capacities,
                                  cudaStream_t stream) {
  Stage& stage = *node.stage;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    provideOutputs(node, capacities, stream);
    stage.setOutputCapacities(capacities);
    {
      const ScratchScope scope(*this);
      stage.execute(stream, pool_, node.exec_inputs, node.exec_outputs, node.exec_sizes);
    }
    const std::vector<std::size_t>& needed = stage.neededOutputSizes();
    if (!needed.empty()) {
      for (std::size_t port = 0; port < capacities.size(); ++port) {
        capacities[port] = std::max(capacities[port], needed[port]);
      }
      continue;
    }
    if (!stage.wantsRerun()) {
      stage.postStreamSync(stream);
      stage.checkResult();
      return;
    }
  }
  detail::throwError(ErrorCode::kInternal,
                     fmt::format("{}: not done after {} attempts", node.name, kMaxAttempts));
}

void CompressionDAG::takeActualSizes(DAGNode& node, const std::vector<std::size_t>& capacities) {
  std::unordered_map<std::string, std::size_t> by_name;
  std::vector<std::string> names;
  if (!node.reports_exact_sizes) {
    by_name = node.stage->getActualOutputSizesByName();
    names = node.stage->getOutputNames();
  }
  for (const int id : node.output_buffer_ids) {
    BufferInfo& buffer = bufferAt(id);
    const auto port = static_cast<std::size_t>(buffer.producer_output_index);
    std::size_t n_bytes = capacities[port];
    if (node.reports_exact_sizes) {
      n_bytes = node.stage->getActualOutputSize(static_cast<int>(port));
    } else if (port < names.size() && by_name.count(names[port]) != 0) {
      n_bytes = by_name.at(names[port]);
    }
    FZ_REQUIRE(n_bytes <= capacities[port], ErrorCode::kInternal,
               "{}: port {} reports {} bytes, its buffer has {}", node.name, port, n_bytes,
               capacities[port]);
    buffer.size = n_bytes;
  }
}

void CompressionDAG::releaseInputs(DAGNode& node, cudaStream_t stream) {
  for (const int id : node.input_buffer_ids) {
    BufferInfo& buffer = bufferAt(id);
    if (--buffer.remaining_consumers == 0 && strategy_ == MemoryStrategy::MINIMAL) {
      freeBuffer(buffer, stream);
    }
  }
}

void CompressionDAG::runNode(DAGNode& node, cudaStream_t stream) {
  prepareInputs(node);
  node.stage->setExecContext(exec_context_);
  node.stage->beginRun();
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::size_t>& capacities = node.exec_capacities;
  node.stage->estimateOutputSizesInto(node.exec_sizes, capacities);
  runUntilDone(node, capacities, stream);
  node.elapsed_ms =
      std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count();
  takeActualSizes(node, capacities);
  node.is_executed = true;
  releaseInputs(node, stream);
}

void CompressionDAG::execute(cudaStream_t stream) {
  FZ_REQUIRE(finalized_, ErrorCode::kInvalidState, "CompressionDAG: execute before finalize");
  for (BufferInfo& buffer : buffers_) {
    buffer.remaining_consumers = static_cast<int>(buffer.consumer_stage_ids.size());
  }
  planGroups(stream);
  preallocateBuffers(stream);
  RunProgress nobody_looks;
  RunProgress& progress = progress_ != nullptr ? *progress_ : nobody_looks;
  progress.beginCall(order_.size());
  for (DAGNode* node : order_) {
    if (node->group < 0) {
      progress.beginStages(1, 0);
      runNode(*node, stream);
      progress.endStages(1);
      continue;
    }
    FusedGroup& group = groups_[static_cast<std::size_t>(node->group)];
    if (group.runs_at == node) {
      runGroup(group, stream);
      progress.endStages(group.chain.size());
    }
  }
}

void CompressionDAG::reset(cudaStream_t stream) {
  for (BufferInfo& buffer : buffers_) {
    if (strategy_ == MemoryStrategy::MINIMAL) {
      freeBuffer(buffer, stream);
    }
  }
  for (const auto& node : nodes_) {
    node->is_executed = false;
  }
  for (FusedGroup& group : groups_) {
    group.pass = 0;  // a run that broke off between its passes leaves one behind
  }
}

void* CompressionDAG::getBuffer(int buffer_id) const {
  return bufferAt(buffer_id).d_ptr;
}

void CompressionDAG::setExternalPointer(int buffer_id, void* memory) {
  BufferInfo& buffer = bufferAt(buffer_id);
  freeBuffer(buffer, nullptr);
  buffer.d_ptr = memory;
  buffer.is_external = true;
  buffer.allocated_size = std::max(buffer.allocated_size, buffer.size);
}

void CompressionDAG::setExternalOutput(int buffer_id, void* memory, std::size_t capacity_bytes) {
  BufferInfo& buffer = bufferAt(buffer_id);
  freeBuffer(buffer, nullptr);
  buffer.d_ptr = memory;
  buffer.is_external = true;
  buffer.allocated_size = capacity_bytes;
}

void CompressionDAG::setExternalGrower(std::function<void*(int, std::size_t)> grow) {
  grow_external_ = std::move(grow);
}

void CompressionDAG::updateBufferSize(int buffer_id, std::size_t n_bytes) {
  bufferAt(buffer_id).size = n_bytes;
}

std::size_t CompressionDAG::getBufferSize(int buffer_id) const {
  return bufferAt(buffer_id).size;
}
const BufferInfo& CompressionDAG::getBufferInfo(int buffer_id) const {
  return bufferAt(buffer_id);
}

std::vector<StageTimingResult> CompressionDAG::collectTimings() const {
  std::vector<StageTimingResult> rows;
  for (const DAGNode* node : order_) {
    const FusedGroup* group =
        node->group < 0 ? nullptr : &groups_[static_cast<std::size_t>(node->group)];
    if (group != nullptr && group->runs_at != node) {
      continue;
    }
    StageTimingResult row;
    row.name = group != nullptr ? group->name : node->name;
    row.level = node->level;
    row.elapsed_ms = node->elapsed_ms;
    const auto add = [&](const DAGNode& part) {
      for (std::size_t k = 0; k < part.exec_sizes.size(); ++k) {
        row.input_bytes += bufferAt(part.input_buffer_ids[k]).is_virtual ? 0 : part.exec_sizes[k];
      }
      for (const int id : part.output_buffer_ids) {
        row.output_bytes += bufferAt(id).is_virtual ? 0 : bufferAt(id).size;
      }
    };
    if (group == nullptr) {
      add(*node);
    } else {
      for (const DAGNode* part : group->chain) {
        add(*part);
      }
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace fz
