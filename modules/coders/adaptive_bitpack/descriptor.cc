#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"

namespace fz::adaptive_bitpack {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<AdaptiveBitpackStage>(types, AdaptiveBitpackTypes{});
}

StageTypes typesFromConfig(ByteView config) {
  if (config.empty()) {
    return {};  // the block size and the number of values are nowhere else
  }
  return {static_cast<DataType>(config[0])};
}

const ParamTable& params() {
  static const AdaptiveBitpackStage<std::int32_t> kStage;
  return kStage.paramTable();
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 24,
      .name = "AdaptiveBitpack",
      .category = "coder",
      .summary = "signed integers in blocks, each with the bit planes its largest magnitude needs",
      .type_keys = {{"input_type", DataType::INT32}},
      .type_combinations = combinationsOf(AdaptiveBitpackTypes{}),
      .aliases = {"abp"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace fz::adaptive_bitpack
