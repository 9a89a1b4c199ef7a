#include "predictors/diff/diff.h"

namespace fz::diff {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

using SameTypes = TypeList<float,
                           double,
                           std::uint8_t,
                           std::uint16_t,
                           std::uint32_t,
                           std::uint64_t,
                           std::int8_t,
                           std::int16_t,
                           std::int32_t,
                           std::int64_t>;
using SignedTypes = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  std::unique_ptr<Stage> made;
  if (types.size() != 2) {
    return made;
  }
  // A configuration file may leave the output type out: it is then that of the input.
  const DataType output = types[1] == DataType::UNKNOWN ? types[0] : types[1];
  forEachType(SameTypes{}, [&]<class T>() {
    if (types[0] == kDataTypeOf<T> && output == kDataTypeOf<T>) {
      made = std::make_unique<DifferenceStage<T>>();
    }
  });
  forEachType(SignedTypes{}, [&]<class T>() {
    using U = std::make_unsigned_t<T>;
    if (types[0] == kDataTypeOf<T> && output == kDataTypeOf<U>) {
      made = std::make_unique<DifferenceStage<T, U>>();
    }
  });
  return made;
}

std::vector<std::vector<DataType>> combinations() {
  std::vector<std::vector<DataType>> all;
  forEachType(SameTypes{}, [&]<class T>() { all.push_back({kDataTypeOf<T>, kDataTypeOf<T>}); });
  forEachType(SignedTypes{}, [&]<class T>() {
    all.push_back({kDataTypeOf<T>, kDataTypeOf<std::make_unsigned_t<T>>});
  });
  return all;
}

StageTypes typesFromConfig(ByteView config) {
  if (config.empty()) {
    return {DataType::FLOAT32, DataType::FLOAT32};
  }
  const auto type = static_cast<DataType>(config[0]);
  DataType output = type;  // whatever is not a negabinary pair goes by the first type alone
  forEachType(SignedTypes{}, [&]<class T>() {
    constexpr DataType kUnsigned = kDataTypeOf<std::make_unsigned_t<T>>;
    if (config.size() > 1 && type == kDataTypeOf<T> &&
        config[1] == static_cast<std::uint8_t>(kUnsigned)) {
      output = kUnsigned;
    }
  });
  return {type, output};
}

const ParamTable& params() {
  static const DifferenceStage<float> kStage;
  return kStage.paramTable();
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 2,
      .name = "Difference",
      .category = "predictor",
      .summary = "each value minus its left neighbour, optionally in negabinary",
      .type_keys = {{"input_type", DataType::FLOAT32}, {"output_type", DataType::UNKNOWN}},
      .type_combinations = combinations(),
      .aliases = {"diff"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace fz::diff
