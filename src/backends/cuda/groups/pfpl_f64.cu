// Quantizer with lists, Difference, Bitshuffle, RZE; f64.
#include "backends/cuda/groups/builtin_groups.h"
#include "backends/cuda/groups/group_list.cuh"
#include "coders/rze/cuda/op/op.cuh"
#include "predictors/diff/cuda/op/op.cuh"
#include "quantizers/quantizer/cuda/op/lists.cuh"
#include "shufflers/bitshuffle/cuda/op/op.cuh"

namespace fz::cuda {

std::span<const BuiltinGroup> pfplF64Groups() {
  static const BuiltinGroup kGroups[] = {
      FZ_GROUP(fz::group::Field<double>,
               fz::quantizer::ListOp<double, std::uint32_t, fz::quantizer::ListForm::kRelDouble>,
               fz::diff::DiffOp<std::uint32_t, fz::delta::Code::kNegabinary>,
               fz::bitshuffle::BitshuffleOp<4>, fz::rze::RzeOp<16384>),
      FZ_GROUP(fz::group::Field<double>,
               fz::quantizer::ListOp<double, std::uint32_t, fz::quantizer::ListForm::kPlain>,
               fz::diff::DiffOp<std::uint32_t, fz::delta::Code::kNegabinary>,
               fz::bitshuffle::BitshuffleOp<4>, fz::rze::RzeOp<16384>),
  };
  return kGroups;
}

}  // namespace fz::cuda
