// f64, 32-bit linear codes, AdaptiveBitpack with outlier selection.
#include "backends/cuda/groups/bitpack_groups.cuh"
#include "backends/cuda/groups/builtin_groups.h"

namespace fz::cuda {

std::span<const BuiltinGroup> bitpackF64U32Outlier() {
  static const BuiltinGroup kGroups[] = {
      FZ_GROUP(fz::group::Field<double>, fz::quantizer::FlatOp<double, std::uint32_t, false>,
               fz::adaptive_bitpack::GroupsOp<std::int32_t, true, 1>),
      FZ_GROUP(fz::group::Field<double>, fz::quantizer::FlatOp<double, std::uint32_t, false>,
               fz::adaptive_bitpack::GroupsOp<std::int32_t, true, 2>),
      FZ_GROUP(fz::group::Field<double>, fz::quantizer::FlatOp<double, std::uint32_t, false>,
               fz::lorenzo::BlockOp<std::int32_t, true>,
               fz::adaptive_bitpack::GroupsOp<std::int32_t, true, 1>),
      FZ_GROUP(fz::group::Field<double>, fz::quantizer::FlatOp<double, std::uint32_t, false>,
               fz::lorenzo::BlockOp<std::int32_t, true>,
               fz::adaptive_bitpack::GroupsOp<std::int32_t, true, 0>),
      FZ_GROUP(fz::group::Field<double>, fz::quantizer::FlatOp<double, std::uint32_t, false>,
               fz::tiled_lorenzo::TilesOp<std::int32_t, 64, 1, 1>,
               fz::adaptive_bitpack::GroupsOp<std::int32_t, true, 2>),
      FZ_GROUP(fz::group::Field<double>, fz::quantizer::FlatOp<double, std::uint32_t, false>,
               fz::tiled_lorenzo::TilesOp<std::int32_t, 8, 8, 1>,
               fz::adaptive_bitpack::GroupsOp<std::int32_t, true, 2>),
      FZ_GROUP(fz::group::Field<double>, fz::quantizer::FlatOp<double, std::uint32_t, false>,
               fz::tiled_lorenzo::TilesOp<std::int32_t, 4, 4, 4>,
               fz::adaptive_bitpack::GroupsOp<std::int32_t, true, 2>),
  };
  return kGroups;
}

}  // namespace fz::cuda
