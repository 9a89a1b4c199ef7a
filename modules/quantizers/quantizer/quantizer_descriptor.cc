#include <cmath>
#include <memory>

#include "core/require.h"
#include "fz/byte_io.h"
#include "quantizers/quantizer/quantizer.h"
#include "quantizers/quantizer/quantizer_bound_codec.h"

namespace fz::quantizer {

namespace {

constexpr std::size_t kShortestConfig = 28;
constexpr std::size_t kThresholdEnd = 36;
constexpr std::size_t kDitherEnd = 56;
constexpr std::size_t kFullConfig = 72;

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
  if (config.size() < kShortestConfig) {
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

void QuantizerBase::writeConfig(ByteWriter& out) const {
  const bool rel = mode_ == ErrorBoundMode::REL;
  out.f32(nearestFloat(bound_in_use_)).f32(nearestFloat(error_bound_));
  out.f32(nearestFloat(range_in_use_)).u32(radius_).u32(n_values_).u32(n_outliers_);
  out.u8(static_cast<std::uint8_t>(value_type_)).u8(static_cast<std::uint8_t>(code_type_));
  out.u8(static_cast<std::uint8_t>(mode_)).u8(zigzag_ ? 1 : 0);
  out.f32(nearestFloat(threshold_)).u8(inplace_ ? 1 : 0).u8(linear_ ? 1 : 0);
  out.zeros(kDitherEnd - kThresholdEnd + 2);
  out.f64(rel ? error_bound_ : bound_in_use_).f64(range_in_use_);
}

void QuantizerBase::checkStoredFields(std::uint8_t value_type, std::uint8_t code_type) const {
  FZ_REQUIRE(value_type == static_cast<std::uint8_t>(value_type_) &&
                 code_type == static_cast<std::uint8_t>(code_type_),
             ErrorCode::kCorrupt, "Quantizer: config with types {} and {}", value_type, code_type);
  const bool rel = mode_ == ErrorBoundMode::REL;
  FZ_REQUIRE(mode_ <= ErrorBoundMode::NOA, ErrorCode::kCorrupt,
             "Quantizer: config with error bound mode {}", static_cast<int>(mode_));
  FZ_REQUIRE(!rel || (std::isfinite(error_bound_) && error_bound_ > 0.0), ErrorCode::kCorrupt,
             "Quantizer: config with relative bound {}", error_bound_);
  // Twice the bound is the step: an infinite one would turn code 0 into NaN, of other bits on
  // every machine.
  const double largest_bound = value_type_ == DataType::FLOAT32
                                   ? static_cast<double>(std::numeric_limits<float>::max()) / 2
                                   : std::numeric_limits<double>::max() / 2;
  FZ_REQUIRE(rel || (bound_in_use_ >= 0.0 && bound_in_use_ <= largest_bound), ErrorCode::kCorrupt,
             "Quantizer: config with bound {}", bound_in_use_);
  FZ_REQUIRE(!rel || getStageVersion() <= 2, ErrorCode::kUnsupported,
             "Quantizer: version {} of the REL stream; this build reads 1 and 2",
             getStageVersion());
  FZ_REQUIRE(!(rel && (linear_ || inplace_)) && !(linear_ && inplace_), ErrorCode::kCorrupt,
             "Quantizer: config with modes that exclude each other");
  FZ_REQUIRE(!inplace_ || getDataTypeSize(code_type_) == getDataTypeSize(value_type_),
             ErrorCode::kCorrupt, "Quantizer: config with in-place outliers in narrower codes");
}

void QuantizerBase::readConfig(ByteReader& in) {
  const std::size_t n_bytes = in.remaining();
  FZ_REQUIRE(n_bytes >= kShortestConfig, ErrorCode::kCorrupt,
             "Quantizer: config of {} bytes, at least {} needed", n_bytes, kShortestConfig);
  // No writer cuts the f64 fields in the middle, and readers would differ in what is left of them.
  FZ_REQUIRE(n_bytes <= kDitherEnd || n_bytes >= kFullConfig, ErrorCode::kCorrupt,
             "Quantizer: config of {} bytes; it has at most {} or at least {}", n_bytes, kDitherEnd,
             kFullConfig);
  if (stored_version_ == 0) {
    stored_version_ = 1;
  }
  bound_in_use_ = static_cast<double>(in.f32());
  error_bound_ = static_cast<double>(in.f32());
  range_in_use_ = static_cast<double>(in.f32());
  radius_ = in.u32();
  n_values_ = in.u32();
  n_outliers_ = in.u32();
  const std::uint8_t value_type = in.u8();
  const std::uint8_t code_type = in.u8();
  mode_ = static_cast<ErrorBoundMode>(in.u8());
  zigzag_ = in.u8() != 0;
  const bool has_threshold = n_bytes >= kThresholdEnd;
  threshold_ =
      has_threshold ? static_cast<double>(in.f32()) : std::numeric_limits<double>::infinity();
  inplace_ = has_threshold && in.u8() != 0;
  linear_ = has_threshold && in.u8() != 0;
  if (n_bytes >= kFullConfig) {
    in.skip(kDitherEnd - kThresholdEnd + 2);
    const double bound = in.f64();
    const double range = in.f64();
    const bool rel = mode_ == ErrorBoundMode::REL;
    double& field = rel ? error_bound_ : bound_in_use_;
    field = bound != 0.0 && (!rel || stored_version_ >= 2) ? bound : field;
    range_in_use_ = range != 0.0 ? range : range_in_use_;
  }
  abs_bound_ = bound_in_use_;
  checkStoredFields(value_type, code_type);
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
  };
  return kDescriptor;
}

}  // namespace fz::quantizer
