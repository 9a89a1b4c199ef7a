// Quantizer with lists, BitplaneRZE; f32.
#include "backends/cuda/groups/builtin_groups.h"
#include "backends/cuda/groups/group_list.cuh"
#include "fused/bitplane_rze/cuda/op/op.cuh"
#include "quantizers/quantizer/cuda/op/lists.cuh"

namespace fz::cuda {

std::span<const BuiltinGroup> bitplaneF32Groups() {
  static const BuiltinGroup kGroups[] = {
      FZ_GROUP(fz::group::Field<float>,
               fz::quantizer::ListOp<float, std::uint16_t, fz::quantizer::ListForm::kZigzag>,
               fz::bitplane_rze::BitplaneRzeOp),
  };
  return kGroups;
}

}  // namespace fz::cuda
