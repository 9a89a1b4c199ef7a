#include "transforms/signed_map/negabinary_stage.h"
#include "transforms/signed_map/zigzag_stage.h"

namespace fz {

namespace {

using SignedTypes = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;

template <template <class, class> class StageT>
std::unique_ptr<Stage> make(std::span<const DataType> types) {
  std::unique_ptr<Stage> made;
  forEachType(SignedTypes{}, [&]<class T>() {
    using U = std::make_unsigned_t<T>;
    if (types.size() == 2 && types[0] == kDataTypeOf<T> && types[1] == kDataTypeOf<U>) {
      made = std::make_unique<StageT<T, U>>();
    }
  });
  return made;
}

std::vector<std::vector<DataType>> combinations() {
  std::vector<std::vector<DataType>> all;
  forEachType(SignedTypes{}, [&]<class T>() {
    all.push_back({kDataTypeOf<T>, kDataTypeOf<std::make_unsigned_t<T>>});
  });
  return all;
}

StageTypes typesFromConfig(ByteView config) {
  if (config.size() < 2) {
    return {DataType::INT32, DataType::UINT32};
  }
  return {static_cast<DataType>(config[0]), static_cast<DataType>(config[1])};
}

const ParamTable& noParams() {
  static const ParamTable kNone;
  return kNone;
}

template <template <class, class> class StageT>
StageDescriptor describe(std::uint16_t id,
                         std::string_view name,
                         std::string_view summary,
                         MakeCudaPart make_cuda) {
  return {
      .id = id,
      .name = name,
      .category = "transform",
      .summary = summary,
      .type_keys = {{"input_type", DataType::INT32}, {"output_type", DataType::UINT32}},
      .type_combinations = combinations(),
      .aliases = {},
      .make = &make<StageT>,
      .types_from_config = &typesFromConfig,
      .params = &noParams,
      .adjust_config_defaults = nullptr,
      .make_cuda = make_cuda,
  };
}

}  // namespace

namespace zigzag {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = describe<ZigzagStage>(
      15, "Zigzag", "signed integers to unsigned codes, small for small magnitudes",
      cudaPartMaker());
  return kDescriptor;
}

}  // namespace zigzag

namespace negabinary {

MakeCudaPart cudaPartMaker();

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = describe<NegabinaryStage>(
      16, "Negabinary", "signed integers to their digits in base -2, small for small magnitudes",
      cudaPartMaker());
  return kDescriptor;
}

}  // namespace negabinary
}  // namespace fz
