#include "fused/bitplane_rze/bitplane_rze_stage.h"

namespace fz::bitplane_rze {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return types.empty() ? std::make_unique<BitplaneRZEStage>() : nullptr;
}

StageTypes typesFromConfig(ByteView /*config*/) {
  return {};
}

const ParamTable& params() {
  static const ParamTable kNone;
  return kNone;
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 23,
      .name = "BitplaneRZE",
      .category = "fused",
      .summary = "bit planes of uint16 codes with groups of zeros left out",
      .type_keys = {},
      .type_combinations = {},
      .aliases = {"bprze"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace fz::bitplane_rze
