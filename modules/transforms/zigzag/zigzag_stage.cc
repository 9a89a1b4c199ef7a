#include "transforms/zigzag/zigzag_stage.h"

#include "transforms/zigzag/zigzag_cpu.h"

namespace fz {

template <class TIn, class TOut>
void ZigzagStage<TIn, TOut>::encodeValues(const void* in, std::size_t n_values, void* out) const {
  zigzag::encodeValues(in, n_values, sizeof(TIn), out);
}

template <class TIn, class TOut>
void ZigzagStage<TIn, TOut>::decodeValues(const void* in, std::size_t n_values, void* out) const {
  zigzag::decodeValues(in, n_values, sizeof(TIn), out);
}

template class ZigzagStage<std::int8_t, std::uint8_t>;
template class ZigzagStage<std::int16_t, std::uint16_t>;
template class ZigzagStage<std::int32_t, std::uint32_t>;
template class ZigzagStage<std::int64_t, std::uint64_t>;

namespace zigzag {

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  std::unique_ptr<Stage> made;
  forEachType(TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t>{}, [&]<class T>() {
    if (types.size() == 2 && types[0] == kDataTypeOf<T> &&
        types[1] == kDataTypeOf<std::make_unsigned_t<T>>) {
      made = std::make_unique<ZigzagStage<T>>();
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
      .id = 15,
      .name = "Zigzag",
      .category = "transform",
      .summary = "signed integers to unsigned codes, small for small magnitudes",
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

}  // namespace zigzag
}  // namespace fz
