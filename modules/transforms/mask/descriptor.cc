#include "transforms/mask/mask_stage.h"

namespace fz::mask {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

using Types = TypeList<float, double>;

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<MaskStage>(types, Types{});
}

StageTypes typesFromConfig(ByteView config) {
  if (config.empty()) {
    return {};
  }
  return {static_cast<DataType>(config[0])};
}

const ParamTable& table() {
  static const ParamTable kTable(
      {textParam<MaskBase>(
           "fill", "",
           "values that mean missing besides NaN and infinities, up to 8, "
           "separated by spaces",
           &MaskBase::getFillText,
           [](MaskBase& stage, const std::string& text) { stage.setFillText(text); }),
       textParam<MaskBase>("hold", "",
                           "tile such as 32, 8x8 or 4x4x4 inside of which missing places take the "
                           "value before, and 0 where all is missing; empty: the whole field; "
                           "nan: they become NaN, for a stage that skips it",
                           &MaskBase::getHoldText, [](MaskBase& stage, const std::string& text) {
                             stage.setHoldText(text);
                           })});
  return kTable;
}

}  // namespace

const ParamTable& MaskBase::paramTable() const {
  return table();
}

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 20481,
      .name = "Mask",
      .category = "transform",
      .summary = "takes missing values (NaN, infinities, fill values) out of a field, exactly",
      .type_keys = {{"input_type", DataType::FLOAT32}},
      .type_combinations = combinationsOf(Types{}),
      .aliases = {},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &table,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace fz::mask
