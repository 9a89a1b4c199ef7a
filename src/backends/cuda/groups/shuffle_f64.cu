// Quantizer with lists, Bitshuffle, RZE; f64.
#include "backends/cuda/groups/builtin_groups.h"
#include "backends/cuda/groups/group_list.cuh"
#include "coders/rze/cuda/op/op.cuh"
#include "quantizers/quantizer/cuda/op/lists.cuh"
#include "shufflers/bitshuffle/cuda/op/op.cuh"

namespace fz::cuda {

std::span<const BuiltinGroup> shuffleF64Groups() {
  static const BuiltinGroup kGroups[] = {
      FZ_GROUP(fz::group::Field<double>,
               fz::quantizer::ListOp<double, std::uint16_t, fz::quantizer::ListForm::kZigzag>,
               fz::bitshuffle::BitshuffleOp<2>, fz::rze::RzeOp<16384>),
      FZ_GROUP(fz::group::Field<double>,
               fz::quantizer::ListOp<double, std::uint32_t, fz::quantizer::ListForm::kZigzag>,
               fz::bitshuffle::BitshuffleOp<4>, fz::rze::RzeOp<16384>),
  };
  return kGroups;
}

}  // namespace fz::cuda
