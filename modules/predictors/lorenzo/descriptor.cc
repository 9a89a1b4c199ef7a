#include "predictors/lorenzo/lorenzo_stage.h"

namespace fz::lorenzo {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

using Types = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<LorenzoStage>(types, Types{});
}

StageTypes typesFromConfig(ByteView config) {
  if (config.empty()) {
    return {};  // there is nothing to fall back to
  }
  return {static_cast<DataType>(config[0])};
}

const ParamTable& params() {
  static const LorenzoStage<std::int32_t> kStage;
  return kStage.paramTable();
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 12,
      .name = "Lorenzo",
      .category = "predictor",
      .summary = "integers minus their lower neighbours in one, two or three dimensions",
      .type_keys = {{"data_type", DataType::INT32}},
      .type_combinations = combinationsOf(Types{}),
      .aliases = {},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace fz::lorenzo
