// Which stages run as one. The rules are those of TileRole; the same for both backends.
#include <algorithm>

#include "backends/cpu/exec_context.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "pipeline/dag.h"
#include "pipeline/group_fit.h"
#include "pipeline/tile_role.h"

#if FZ_HAVE_CUDA
#include "backends/cuda/group_kernels.h"
#endif

namespace fz {

namespace {

TileOp opOf(const DAGNode& node, Backend backend) {
  const SimpleStage* stage = tileStage(node);
  if (stage == nullptr) {
    return NoOp{"comes from outside the library"};
  }
  return StageAccess::tileOp(*stage, backend);
}

bool mayFollow(TileRole before, TileRole role, bool has_order_or_rows) {
  if (before == TileRole::kCoder || role == TileRole::kNone) {
    return false;
  }
  if (before == TileRole::kPlanes) {
    return role == TileRole::kCoder;
  }
  return role != TileRole::kOrder || !has_order_or_rows;
}

std::string joinNames(const std::vector<DAGNode*>& chain) {
  std::string names;
  for (const DAGNode* node : chain) {
    names += (names.empty() ? "" : " + ") + node->name;
  }
  return names;
}

#if FZ_HAVE_CUDA
/// An integer of this size, for stages that take bytes.
DataType wordType(std::size_t n_bytes) {
  switch (n_bytes) {
    case 2:
      return DataType::UINT16;
    case 4:
      return DataType::UINT32;
    case 8:
      return DataType::UINT64;
    default:
      return DataType::UINT8;
  }
}

cuda::GroupChain describeChain(const std::vector<DAGNode*>& chain, std::size_t value_bytes) {
  cuda::GroupChain description;
  const SimpleStage& first = *tileStage(*chain.front());
  description.is_inverse = first.isInverse();
  description.field_type = static_cast<DataType>(first.isInverse() ? first.getOutputDataType(0)
                                                                   : first.getInputDataType(0));
  if (!takesValues(chain.front()->tile_op)) {
    description.field_type = wordType(value_bytes);
  }
  for (const DAGNode* node : chain) {
    const CudaPart& part = *StageAccess::cudaPart(*tileStage(*node));
    description.ops.push_back({part.tileOpType(), part.tileOpHeader()});
  }
  description.has_coder = std::holds_alternative<CoderOp>(chain.back()->tile_op);
  return description;
}
#endif

}  // namespace

bool CompressionDAG::areGroupsCurrent() const {
  if (!groups_planned_ || exec_context_->fusion != planned_fusion_) {
    return false;
  }
  return planned_fusion_ == Fusion::Off ||
         std::all_of(order_.begin(), order_.end(), [&](const DAGNode* node) {
           return opOf(*node, exec_context_->backend) == node->tile_op;
         });
}

void CompressionDAG::dissolveGroups() {
  dropRegions();  // they were planned for the groups that go
  groups_.clear();
  fusion_notes_.clear();
  for (BufferInfo& buffer : buffers_) {
    buffer.is_virtual = false;
  }
  for (const auto& node : nodes_) {
    node->group = -1;
  }
}

/// The stage next to this one, seen from the field, when nobody else sees what lies between them.
DAGNode* CompressionDAG::nextInChain(const DAGNode& node) const {
  const SimpleStage* stage = tileStage(node);
  if (stage == nullptr) {
    return nullptr;
  }
  int id = -1;
  if (stage->isInverse()) {
    id = node.input_buffer_ids.empty() ? -1 : node.input_buffer_ids.front();
  } else if (node.output_index_to_buffer_id.count(0) != 0) {
    id = node.output_index_to_buffer_id.at(0);
  }
  if (id < 0) {
    return nullptr;
  }
  const BufferInfo& buffer = bufferAt(id);
  if (buffer.producer_stage_id < 0 || buffer.consumer_stage_ids.size() != 1 || buffer.is_external ||
      buffer.is_persistent) {
    return nullptr;
  }
  const DAGNode& consumer = *nodes_[static_cast<std::size_t>(buffer.consumer_stage_ids.front())];
  if (consumer.input_buffer_ids.front() != id) {
    return nullptr;
  }
  DAGNode* other = stage->isInverse()
                       ? nodes_[static_cast<std::size_t>(buffer.producer_stage_id)].get()
                       : nodes_[static_cast<std::size_t>(buffer.consumer_stage_ids.front())].get();
  const SimpleStage* other_stage = tileStage(*other);
  const bool same_direction =
      other_stage != nullptr && other_stage->isInverse() == stage->isInverse();
  return same_direction && buffer.producer_output_index == 0 ? other : nullptr;
}

bool CompressionDAG::tryGroup(std::vector<DAGNode*> chain) {
  if (chain.size() < 2) {
    return false;
  }
  FusedGroup group;
  const std::string why = misfit(chain, exec_context_->backend, group);
  if (!why.empty()) {
    fusion_notes_.push_back(fmt::format("{}: {}", joinNames(chain), why));
    return false;
  }
#if FZ_HAVE_CUDA
  if (exec_context_->backend == Backend::CUDA) {
    std::string reason;
    group.kernel = cuda::findGroupKernel(describeChain(chain, group.value_bytes), reason);
    if (group.kernel == nullptr) {
      fusion_notes_.push_back(fmt::format("{}: {}", joinNames(chain), reason));
      return false;
    }
  }
#endif
  const bool is_inverse = tileStage(*chain.front())->isInverse();
  // Forward, a group's inputs are those of its first stage; inverse, other inputs of later stages
  // must be there as well.
  group.runs_at = chain.front();
  group.name = joinNames(chain);
  for (DAGNode* node : chain) {
    node->group = static_cast<int>(groups_.size());
    if (node != chain.back()) {
      const int id =
          is_inverse ? node->input_buffer_ids.front() : node->output_index_to_buffer_id.at(0);
      bufferAt(id).is_virtual = true;
      freeBuffer(bufferAt(id), planning_stream_);
    }
  }
  group.chain = std::move(chain);
  groups_.push_back(std::move(group));
  return true;
}

/// All of a chain as one group, or else the longest part of it that can be one: what is next to the
/// coder first, since a coder that stands alone reads most.
void CompressionDAG::groupChain(const std::vector<DAGNode*>& chain) {
  for (std::size_t n = chain.size(); n >= 2; --n) {
    for (std::size_t skipped = 0; skipped + n <= chain.size(); ++skipped) {
      const auto end = chain.end() - static_cast<std::ptrdiff_t>(skipped);
      const auto begin = end - static_cast<std::ptrdiff_t>(n);
      if (tryGroup({begin, end})) {
        groupChain({chain.begin(), begin});
        groupChain({end, chain.end()});
        return;
      }
    }
  }
}

/// Groups as long as can be, from the field on.
void CompressionDAG::splitChain(const std::vector<DAGNode*>& chain) {
  std::vector<DAGNode*> open;
  const auto close = [&] {
    groupChain(open);
    open.clear();
  };
  const auto addReason = [&](const DAGNode& node) {
    fusion_notes_.push_back(fmt::format("{}: {}", node.name, std::get<NoOp>(node.tile_op).reason));
  };
  bool has_order_or_rows = false;
  for (DAGNode* node : chain) {
    const TileRole role = roleOf(node->tile_op);
    if (!open.empty() && !mayFollow(roleOf(open.back()->tile_op), role, has_order_or_rows)) {
      if (role == TileRole::kNone) {
        addReason(*node);
      } else {
        fusion_notes_.push_back(
            fmt::format("{}: cannot come after {} in a group", node->name, open.back()->name));
      }
      close();
    } else if (open.empty() && role == TileRole::kNone) {
      addReason(*node);
    }
    if (open.empty()) {
      has_order_or_rows = false;
    }
    if (role != TileRole::kNone) {
      open.push_back(node);
      has_order_or_rows = has_order_or_rows || role == TileRole::kOrder || role == TileRole::kRows;
    }
  }
  close();
}

void CompressionDAG::planGroups(cudaStream_t stream) {
  if (exec_context_ == nullptr || areGroupsCurrent()) {
    return;
  }
  planning_stream_ = stream;
  dissolveGroups();
  planned_fusion_ = exec_context_->fusion;
  groups_planned_ = planned_fusion_ == Fusion::Off;
  if (groups_planned_) {
    return;
  }
  std::vector<bool> has_previous(nodes_.size(), false);
  for (DAGNode* node : order_) {
    node->tile_op = opOf(*node, exec_context_->backend);
    if (const DAGNode* next = nextInChain(*node)) {
      has_previous[static_cast<std::size_t>(next->id)] = true;
    }
  }
  for (DAGNode* node : order_) {
    if (has_previous[static_cast<std::size_t>(node->id)]) {
      continue;
    }
    std::vector<DAGNode*> chain;
    for (DAGNode* at = node; at != nullptr; at = nextInChain(*at)) {
      chain.push_back(at);
    }
    splitChain(chain);
  }
  groups_planned_ = true;
}

}  // namespace fz
