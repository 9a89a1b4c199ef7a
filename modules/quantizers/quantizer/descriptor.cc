#include <functional>
#include <memory>

#include "quantizers/quantizer/quantizer.h"

namespace fz::quantizer {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

using ValueTypes = TypeList<float, double>;
using CodeTypes = TypeList<std::uint16_t, std::uint32_t, std::int16_t, std::int32_t>;

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  std::unique_ptr<Stage> made;
  forEachType(ValueTypes{}, [&]<class T>() {
    forEachType(CodeTypes{}, [&]<class C>() {
      if (types.size() == 2 && types[0] == kDataTypeOf<T> && types[1] == kDataTypeOf<C>) {
        made = std::make_unique<QuantizerStage<T, C>>();
      }
    });
  });
  return made;
}

std::vector<std::vector<DataType>> combinations() {
  std::vector<std::vector<DataType>> all;
  forEachType(ValueTypes{}, [&]<class T>() {
    forEachType(CodeTypes{}, [&]<class C>() { all.push_back({kDataTypeOf<T>, kDataTypeOf<C>}); });
  });
  return all;
}

StageTypes typesFromConfig(ByteView config) {
  if (config.size() < 28) {  // SPEC: config, its shortest form
    return {};
  }
  return {static_cast<DataType>(config[24]), static_cast<DataType>(config[25])};
}

template <class Set, class Convert>
auto throughText(Set set, Convert convert) {
  return [set, convert](QuantizerBase& q, const std::string& text) {
    std::invoke(set, q, convert(text).value());
  };
}

Param withConfigDefault(Param param, ParamValue value) {
  param.config_default = std::move(value);
  return param;
}

ParamTable makeTable(std::uint32_t code_bits) {
  using Q = QuantizerBase;
  const std::int64_t max_radius =
      std::min<std::int64_t>(std::int64_t{1} << (code_bits - 1), std::numeric_limits<int>::max());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Param> rows;
  rows.push_back(withConfigDefault(
      realParam<Q>("error_bound", 1e-4,
                   {std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()},
                   "the bound; its meaning is error_bound_mode", &Q::getErrorBound,
                   std::mem_fn(&Q::setErrorBound)),
      1e-3));
  rows.push_back(withConfigDefault(
      choiceParam<Q>(
          "error_bound_mode", "ABS", {"ABS", "REL", "NOA"},
          "ABS: absolute; REL: times |x| of each value; NOA: times the value range",
          [](const Q& q) { return errorBoundModeName(q.getErrorBoundMode()); },
          throughText(&Q::setErrorBoundMode, &errorBoundModeFromName)),
      std::string("REL")));
  rows.push_back(intParam<Q>("quant_radius", 32768, {1, max_radius},
                             "bins lie strictly between -radius and radius; others are outliers",
                             &Q::getQuantRadius,
                             [](Q& q, std::int64_t v) { q.setQuantRadius(static_cast<int>(v)); }));
  rows.push_back(realParam<Q>("outlier_capacity", 0.05, {0.0, 1.0},
                              "part of the values for which outlier space is reserved at first",
                              &Q::getOutlierCapacity, std::mem_fn(&Q::setOutlierCapacity)));
  rows.push_back(withConfigDefault(
      boolParam<Q>(
          "zigzag_codes", false,
          "small magnitudes of either sign become small codes; off in a file with linear_mode",
          &Q::getZigzagCodes, &Q::setZigzagCodes),
      true));
  rows.push_back(realParam<Q>("outlier_threshold", kInfinity, {0.0, kInfinity},
                              "values with |x| >= threshold are outliers", &Q::getOutlierThreshold,
                              std::mem_fn(&Q::setOutlierThreshold)));
  rows.push_back(
      boolParam<Q>("inplace_outliers", false,
                   "ABS, NOA: outliers stand in the codes as their own bits, only the port "
                   "codes; needs zigzag_codes and codes as wide as the values",
                   &Q::getInplaceOutliers, &Q::setInplaceOutliers));
  rows.push_back(
      boolParam<Q>("linear_mode", false,
                   "ABS, NOA: signed codes of full width, no outliers, only the port codes; "
                   "needs zigzag_codes and inplace_outliers off",
                   &Q::getLinearMode, &Q::setLinearMode));
  rows.push_back(choiceParam<Q>(
      "linear_policy", "Throw", {"Throw", "Wrap", "Guarantee"},
      "linear mode: refuse values that miss the bound, wrap them, or tighten the step",
      [](const Q& q) { return linearPolicyName(q.getLinearPolicy()); },
      throughText(&Q::setLinearPolicy, &linearPolicyFromName)));
  Param value_base =
      realParam<Q>("value_base", 0.0, {0.0, std::numeric_limits<double>::max()},
                   "NOA: the value range, instead of scanning the data; 0 means scan",
                   &Q::getValueBase, std::mem_fn(&Q::setValueBase));
  value_base.saved = false;  // belongs to one field, not to a configuration
  rows.push_back(std::move(value_base));
  return ParamTable(std::move(rows));
}

const ParamTable& table16() {
  static const ParamTable kTable = makeTable(16);
  return kTable;
}
const ParamTable& table32() {
  static const ParamTable kTable = makeTable(32);
  return kTable;
}

void adjustConfigDefaults(Stage& stage,
                          const std::function<bool(std::string_view)>& has_key,
                          const std::function<ParamValue(std::string_view)>& value_of) {
  if (!has_key("linear_mode")) {
    return;
  }
  const ParamValue value = value_of("linear_mode");
  if (const bool* linear = std::get_if<bool>(&value); linear != nullptr && *linear) {
    static_cast<QuantizerBase&>(stage).setZigzagCodes(false);
  }
}

}  // namespace

const ParamTable& QuantizerBase::paramTable() const {
  return codeBits() == 16 ? table16() : table32();
}

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 14,
      .name = "Quantizer",
      .category = "quantizer",
      .summary = "floating-point values to integer codes; the error bound holds for every value",
      .type_keys = {{"input_type", DataType::FLOAT32}, {"code_type", DataType::UINT32}},
      .type_combinations = combinations(),
      .aliases = {"quant"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &table32,
      .adjust_config_defaults = &adjustConfigDefaults,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace fz::quantizer
