#include <memory>

#include "fused/lorenzo_quant/config.h"
#include "fused/lorenzo_quant/lorenzo_quant.h"

namespace fz {

namespace lorenzo_quant {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

template <class TInput, class TCode>
bool makeIf(std::span<const DataType> types, std::unique_ptr<Stage>& made) {
  if (types.size() == 2 && types[0] == kDataTypeOf<TInput> && types[1] == kDataTypeOf<TCode>) {
    made = std::make_unique<LorenzoQuantStage<TInput, TCode>>();
  }
  return made != nullptr;
}

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  std::unique_ptr<Stage> made;
  makeIf<float, std::uint16_t>(types, made) || makeIf<float, std::uint8_t>(types, made) ||
      makeIf<double, std::uint16_t>(types, made) || makeIf<double, std::uint32_t>(types, made);
  return made;
}

const ParamTable& params() {
  static const LorenzoQuantStage<float, std::uint16_t> kStage;
  return kStage.paramTable();
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 1,
      .name = "LorenzoQuant",
      .category = "fused",
      .summary = "error-bounded quantisation and Lorenzo prediction in one pass",
      .type_keys = {{"input_type", DataType::FLOAT32}, {"code_type", DataType::UINT16}},
      .type_combinations = {{DataType::FLOAT32, DataType::UINT16},
                            {DataType::FLOAT32, DataType::UINT8},
                            {DataType::FLOAT64, DataType::UINT16},
                            {DataType::FLOAT64, DataType::UINT32}},
      .aliases = {"lq"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace lorenzo_quant
}  // namespace fz
