// The kernel that runs a fused chain on a device.
#include "backends/cuda/group_kernels.h"
#include "core/stage_access.h"
#include "pipeline/plan/plan.h"
#include "pipeline/plan/tile_role.h"

namespace fz {

namespace {

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

TileOp tileOp(const DAGNode& node) {
  return simpleStage(node)->tileOp(Backend::CUDA);
}

cuda::GroupChain describeChain(const std::vector<DAGNode*>& chain, std::size_t value_bytes) {
  cuda::GroupChain description;
  const SimpleStage& first = *simpleStage(*chain.front());
  description.is_inverse = first.isInverse();
  description.field_type = static_cast<DataType>(first.isInverse() ? first.getOutputDataType(0)
                                                                   : first.getInputDataType(0));
  if (!takesValues(tileOp(*chain.front()))) {
    description.field_type = wordType(value_bytes);
  }
  for (const DAGNode* node : chain) {
    const CudaPart& part = *StageAccess::cudaPart(*simpleStage(*node));
    description.ops.push_back({part.tileOpType(), part.tileOpHeader(), part.tileOpSource()});
  }
  description.has_coder = std::holds_alternative<CoderOp>(tileOp(*chain.back()));
  return description;
}

}  // namespace

const cuda::GroupKernel* findChainKernel(const std::vector<DAGNode*>& chain,
                                         std::size_t value_bytes,
                                         std::string& reason) {
  return cuda::findGroupKernel(describeChain(chain, value_bytes), reason);
}

}  // namespace fz
