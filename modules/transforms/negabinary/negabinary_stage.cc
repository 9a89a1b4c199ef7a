#include "transforms/negabinary/negabinary_stage.h"

#include "transforms/negabinary/negabinary_cpu.h"

namespace fz {

template <class TIn, class TOut>
void NegabinaryStage<TIn, TOut>::encodeValues(const void* in,
                                              std::size_t n_values,
                                              void* out) const {
  negabinary::encodeValues(in, n_values, sizeof(TIn), out);
}

template <class TIn, class TOut>
void NegabinaryStage<TIn, TOut>::decodeValues(const void* in,
                                              std::size_t n_values,
                                              void* out) const {
  negabinary::decodeValues(in, n_values, sizeof(TIn), out);
}

template class NegabinaryStage<std::int8_t, std::uint8_t>;
template class NegabinaryStage<std::int16_t, std::uint16_t>;
template class NegabinaryStage<std::int32_t, std::uint32_t>;
template class NegabinaryStage<std::int64_t, std::uint64_t>;

namespace negabinary {

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  std::unique_ptr<Stage> made;
  forEachType(TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t>{}, [&]<class T>() {
    if (types.size() == 2 && types[0] == kDataTypeOf<T> &&
        types[1] == kDataTypeOf<std::make_unsigned_t<T>>) {
      made = std::make_unique<NegabinaryStage<T>>();
    }
  });
  return made;
}

const ParamTable& params() {
  static const ParamTable kNone;
  return kNone;
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 16,
      .name = "Negabinary",
      .category = "transform",
      .summary = "signed integers to their digits in base -2, small for small magnitudes",
      .type_keys = {{"input_type", DataType::INT32}, {"output_type", DataType::UINT32}},
      .type_combinations = signedMapCombinations(),
      .aliases = {},
      .make = &make,
      .types_from_config = &signedMapTypesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
  };
  return kDescriptor;
}

}  // namespace negabinary
}  // namespace fz
