// The quantiser's part in fused groups: two ops, by where values without a code go.
#include <fmt/format.h>

#include "quantizers/quantizer/quantizer.h"

namespace fz::quantizer {

TileOp QuantizerBase::cudaTileOp() const {
  if (hasOutlierPorts()) {
    return listTileOp();
  }
  return MapOp{getDataTypeSize(value_type_) << 16 | getDataTypeSize(code_type_) << 8 |
               (inplace_ ? 1u : 0u)};
}

std::string QuantizerBase::tileOpType() const {
  if (hasOutlierPorts()) {
    return listOpType();
  }
  return fmt::format("fz::quantizer::FlatOp<{}, std::{}_t, {}>",
                     value_type_ == DataType::FLOAT32 ? "float" : "double",
                     dataTypeToString(code_type_), inplace_);
}

std::string QuantizerBase::tileOpHeader() const {
  return hasOutlierPorts() ? "quantizers/quantizer/quantizer_list_op.cuh"
                           : "quantizers/quantizer/quantizer_op.cuh";
}

void QuantizerBase::beginGroupCuda(const CudaRun& run, const GroupRun& group, GroupArgs& args) {
  if (hasOutlierPorts()) {
    beginListGroup(run, args);
  } else {
    beginFlatGroup(run, group, args);
  }
}

}  // namespace fz::quantizer
