#include "coders/rle/rle.h"

namespace fz::rle {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<RLEStage>(types, RLETypes{});
}

StageTypes typesFromConfig(ByteView config) {
  return {config.empty() ? DataType::UINT16 : static_cast<DataType>(config[0])};
}

const ParamTable& params() {
  static const ParamTable kNone;
  return kNone;
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 5,
      .name = "RLE",
      .category = "coder",
      .summary = "runs of equal values as value and length",
      .type_keys = {{"data_type", DataType::UINT16}},
      .type_combinations = combinationsOf(RLETypes{}),
      .aliases = {},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace fz::rle
