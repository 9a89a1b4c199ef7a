#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"

namespace fz::tiled_lorenzo {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

using Types = TypeList<std::int16_t, std::int32_t>;

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<TiledLorenzoStage>(types, Types{});
}

StageTypes typesFromConfig(ByteView config) {
  // Without a config readConfig refuses, with a better message than "no such type".
  return {config.empty() ? DataType::INT32 : static_cast<DataType>(config[0])};
}

const ParamTable& params() {
  static const TiledLorenzoStage<std::int32_t> kStage;
  return kStage.paramTable();
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 25,
      .name = "TiledLorenzo",
      .category = "predictor",
      .summary = "integer delta inside small tiles, written tile after tile",
      .type_keys = {{"data_type", DataType::INT32}},
      .type_combinations = combinationsOf(Types{}),
      .aliases = {"tlorenzo"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace fz::tiled_lorenzo
