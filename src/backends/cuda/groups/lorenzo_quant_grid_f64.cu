// LorenzoQuant of grids, then bit planes; f64.
#include "backends/cuda/groups/builtin_groups.h"
#include "backends/cuda/groups/group_list.cuh"
#include "coders/rze/cuda/op/op.cuh"
#include "fused/bitplane_rze/cuda/op/op.cuh"
#include "fused/lorenzo_quant/cuda/op/grid_decode.cuh"
#include "fused/lorenzo_quant/cuda/op/grid_encode.cuh"
#include "shufflers/bitshuffle/cuda/op/op.cuh"

namespace fz::cuda {

std::span<const BuiltinGroup> lorenzoQuantGridF64Groups() {
  static const BuiltinGroup kGroups[] = {
      FZ_ENCODING_GROUP(fz::group::Field<double>,
                        fz::lorenzo_quant::LorenzoQuantGridOp<double, std::uint16_t, 2>,
                        fz::bitplane_rze::BitplaneRzeOp),
      FZ_ENCODING_GROUP(fz::group::Field<double>,
                        fz::lorenzo_quant::LorenzoQuantGridOp<double, std::uint16_t, 3>,
                        fz::bitplane_rze::BitplaneRzeOp),
      FZ_ENCODING_GROUP(fz::group::Field<double>,
                        fz::lorenzo_quant::LorenzoQuantGridOp<double, std::uint16_t, 2>,
                        fz::bitshuffle::BitshuffleOp<2>, fz::rze::RzeOp<16384>),
      FZ_ENCODING_GROUP(fz::group::Field<double>,
                        fz::lorenzo_quant::LorenzoQuantGridOp<double, std::uint16_t, 3>,
                        fz::bitshuffle::BitshuffleOp<2>, fz::rze::RzeOp<16384>),
      FZ_DECODING_GROUP(fz::group::Field<double>,
                        fz::lorenzo_quant::LorenzoQuantGridDecodeOp<double, std::uint16_t, 2>,
                        fz::bitplane_rze::BitplaneRzeOp),
      FZ_DECODING_GROUP(fz::group::Field<double>,
                        fz::lorenzo_quant::LorenzoQuantGridDecodeOp<double, std::uint16_t, 3>,
                        fz::bitplane_rze::BitplaneRzeOp),
  };
  return kGroups;
}

}  // namespace fz::cuda
