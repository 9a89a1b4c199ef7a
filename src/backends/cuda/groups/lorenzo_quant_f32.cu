// LorenzoQuant, then bit planes; f32.
#include "backends/cuda/groups/builtin_groups.h"
#include "backends/cuda/groups/group_list.cuh"
#include "coders/rze/cuda/op/op.cuh"
#include "fused/bitplane_rze/cuda/op/op.cuh"
#include "fused/lorenzo_quant/cuda/op/op.cuh"
#include "shufflers/bitshuffle/cuda/op/op.cuh"

namespace fz::cuda {

std::span<const BuiltinGroup> lorenzoQuantF32Groups() {
  static const BuiltinGroup kGroups[] = {
      FZ_GROUP(fz::group::Field<float>, fz::lorenzo_quant::LorenzoQuantOp<float, std::uint16_t>,
               fz::bitplane_rze::BitplaneRzeOp),
      FZ_GROUP(fz::group::Field<float>, fz::lorenzo_quant::LorenzoQuantOp<float, std::uint16_t>,
               fz::bitshuffle::BitshuffleOp<2>, fz::rze::RzeOp<16384>),
  };
  return kGroups;
}

}  // namespace fz::cuda
