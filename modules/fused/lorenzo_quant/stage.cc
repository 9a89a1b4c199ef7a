#include <algorithm>
#include <cmath>
#include <limits>

#include "core/require.h"
#include "core/size_limit.h"
#include "fused/lorenzo_quant/codec.h"
#include "fused/lorenzo_quant/config.h"
#include "fused/lorenzo_quant/lorenzo_quant.h"
#include "fz/byte_io.h"

namespace fz {

namespace {

using lorenzo_quant::kMaxValues;
using lorenzo_quant::kName;
using lorenzo_quant::kVersionWithAxes;
using lorenzo_quant::kVersionWithExactValues;

}  // namespace

template <class TInput, class TCode>
LorenzoQuantStage<TInput, TCode>::LorenzoQuantStage(const Config& config) : LorenzoQuantStage() {
  setErrorBound(config.error_bound);
  setQuantRadius(config.quant_radius);
  setOutlierCapacity(config.outlier_capacity);
  setErrorBoundMode(config.eb_mode);
  setValueBase(config.precomputed_value_base);
  setZigzagCodes(config.zigzag_codes);
  if (config.dims != std::array<std::size_t, 3>{0, 1, 1}) {
    dims_.setOwn(config.dims);
  }
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::setErrorBound(double error_bound) {
  FZ_REQUIRE_ARG(std::isfinite(error_bound) && error_bound > 0.0,
                 "{}: error bound must be positive and finite, not {}", kName, error_bound);
  error_bound_ = error_bound;
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::setQuantRadius(int radius) {
  FZ_REQUIRE_ARG(radius >= 1 && radius <= kMaxRadius,
                 "{}: radius must be 1 to {} for {}-bit codes, not {}", kName, kMaxRadius,
                 8 * sizeof(TCode), radius);
  quant_radius_ = static_cast<std::uint32_t>(radius);
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::setOutlierCapacity(double share) {
  FZ_REQUIRE_ARG(share >= 0.0 && share <= 1.0, "{}: outlier capacity must be 0 to 1, not {}", kName,
                 share);
  outlier_capacity_ = share;
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::setValueBase(double value_base) {
  FZ_REQUIRE_ARG(std::isfinite(value_base) && value_base >= 0.0,
                 "{}: value base must be 0 (unknown) or positive and finite, not {}", kName,
                 value_base);
  value_base_ = value_base;
}

template <class TInput, class TCode>
std::array<std::size_t, 3> LorenzoQuantStage<TInput, TCode>::localTile() const {
  const std::size_t edge = lorenzo_quant::tileEdge(ndim());
  return {edge, ndim() > 1 ? edge : 1, ndim() > 2 ? edge : 1};
}

template <class TInput, class TCode>
std::optional<BoundInfo> LorenzoQuantStage<TInput, TCode>::boundInfo() const {
  if (config_.has_value()) {
    return BoundInfo{static_cast<ErrorBoundMode>(config_->eb_mode), error_bound_,
                     static_cast<double>(config_->abs_error_bound)};
  }
  return BoundInfo{mode_, error_bound_, static_cast<double>(configFromSettings().abs_error_bound)};
}

template <class TInput, class TCode>
SimpleStage::PortBytes LorenzoQuantStage<TInput, TCode>::encodedBytes(
    std::size_t input_bytes) const {
  const std::size_t n = input_bytes / sizeof(TInput);
  const auto share = static_cast<std::size_t>(outlier_capacity_ * static_cast<double>(n));
  const std::size_t n_entries = std::min(n, share + 1);
  return {n * sizeof(TCode), n_entries * sizeof(TInput), n_entries * sizeof(std::uint32_t)};
}

template <class TInput, class TCode>
SimpleStage::PortBytes LorenzoQuantStage<TInput, TCode>::maxEncodedBytes(
    std::size_t input_bytes) const {
  const std::size_t n = input_bytes / sizeof(TInput);
  // A value can be in both lists: unusable itself, and a long way from its neighbours' bins.
  return {n * sizeof(TCode), 2 * n * sizeof(TInput), 2 * n * sizeof(std::uint32_t)};
}

template <class TInput, class TCode>
LorenzoQuantConfig LorenzoQuantStage<TInput, TCode>::configFromSettings() const {
  LorenzoQuantConfig config;
  const bool is_known = mode_ == ErrorBoundMode::ABS;
  config.abs_error_bound = is_known ? lorenzo_quant::floatNotAbove(error_bound_) : 0.0f;
  config.quant_radius = quant_radius_;
  config.input_type = static_cast<std::uint8_t>(kDataTypeOf<TInput>);
  config.code_type = static_cast<std::uint8_t>(kDataTypeOf<TCode>);
  config.ndim = static_cast<std::uint8_t>(dims_.ndim());
  config.eb_mode = static_cast<std::uint8_t>(mode_);
  const auto& dims = dims_.get();
  FZ_REQUIRE(std::max({dims[0], dims[1], dims[2]}) <= kMaxValues, ErrorCode::kBadSize,
             "{}: extents must be at most {}, but the dims are {} x {} x {}", kName, kMaxValues,
             dims[0], dims[1], dims[2]);
  config.dim_x = static_cast<std::uint32_t>(dims[0]);
  config.dim_y = static_cast<std::uint32_t>(dims[1]);
  config.dim_z = static_cast<std::uint32_t>(dims[2]);
  config.user_error_bound = lorenzo_quant::toFloatSaturated(error_bound_);
  config.value_base = lorenzo_quant::toFloatSaturated(value_base_);
  config.zigzag_codes = zigzag_codes_ ? 1 : 0;
  config.left_out = axes_.leftOut(dims_.ndim());
  return config;
}

template <class TInput, class TCode>
std::uint32_t LorenzoQuantStage<TInput, TCode>::checkedCount(std::size_t n_bytes) const {
  const std::size_t n = n_bytes / sizeof(TInput);
  FZ_REQUIRE(n_bytes % sizeof(TInput) == 0, ErrorCode::kBadSize,
             "{}: input size {} is not a multiple of {} bytes", kName, n_bytes, sizeof(TInput));
  FZ_REQUIRE_SIZE(n <= kMaxValues, std::string(kName), "at most {} values, got {}", kMaxValues, n);
  return static_cast<std::uint32_t>(n);
}

template <class TInput, class TCode>
std::size_t LorenzoQuantStage<TInput, TCode>::decodedBytes(
    std::span<const std::size_t> encoded_bytes) const {
  FZ_REQUIRE(config_.has_value(), ErrorCode::kInvalidState, "{}: cannot decode without a config",
             kName);
  // Four parts in files of the original system: the last repeats the count of the config.
  FZ_REQUIRE(encoded_bytes.size() == 3 || encoded_bytes.size() == 4, ErrorCode::kCorrupt,
             "{}: expected 3 or 4 parts, got {}", kName, encoded_bytes.size());
  const std::size_t n = config_->num_elements;
  FZ_REQUIRE(encoded_bytes[0] == n * sizeof(TCode), ErrorCode::kCorrupt,
             "{}: {} values need {} bytes of codes, got {}", kName, n, n * sizeof(TCode),
             encoded_bytes[0]);
  const std::size_t n_values = encoded_bytes[1] / sizeof(TInput);
  const std::size_t n_indices = encoded_bytes[2] / sizeof(std::uint32_t);
  FZ_REQUIRE(config_->outlier_count <= std::min(n_values, n_indices), ErrorCode::kCorrupt,
             "{}: {} outliers, but the lists have {} and {}", kName, config_->outlier_count,
             n_values, n_indices);
  if (getStageVersion() >= kVersionWithExactValues) {
    FZ_REQUIRE(n_values == n_indices && encoded_bytes[1] % sizeof(TInput) == 0 &&
                   encoded_bytes[2] % sizeof(std::uint32_t) == 0,
               ErrorCode::kCorrupt, "{}: lists of {} values and {} indices", kName, n_values,
               n_indices);
  }
  return n * sizeof(TInput);
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::writeConfig(ByteWriter& out) const {
  lorenzo_quant::writeConfig(config_.has_value() ? *config_ : configFromSettings(), out);
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::readConfig(ByteReader& in) {
  FZ_REQUIRE(getStageVersion() <= kVersionWithAxes, ErrorCode::kUnsupported,
             "{}: stream version {}; this build reads up to {}", kName, getStageVersion(),
             kVersionWithAxes);
  LorenzoQuantConfig c = lorenzo_quant::readConfig(in);
  c.left_out = getStageVersion() < kVersionWithAxes ? std::uint8_t{0} : c.left_out;
  FZ_REQUIRE(c.left_out < 1u << std::max<unsigned>(c.ndim, 1), ErrorCode::kCorrupt,
             "{}: config without axes {} of {}", kName, c.left_out, c.ndim);
  FZ_REQUIRE(c.input_type == static_cast<std::uint8_t>(kDataTypeOf<TInput>) &&
                 c.code_type == static_cast<std::uint8_t>(kDataTypeOf<TCode>),
             ErrorCode::kCorrupt, "{}: config with types {} and {}", kName, c.input_type,
             c.code_type);
  error_bound_ = static_cast<double>(c.user_error_bound);
  quant_radius_ = c.quant_radius;
  mode_ = static_cast<ErrorBoundMode>(c.eb_mode);
  zigzag_codes_ = c.zigzag_codes != 0;
  dims_.setOwn({c.dim_x, c.dim_y, c.dim_z});
  axes_ = Axes::fromLeftOut(c.left_out);
  config_ = c;
}

template <class TInput, class TCode>
const ParamTable& LorenzoQuantStage<TInput, TCode>::paramTable() const {
  using S = LorenzoQuantStage;
  static const ParamTable kTable = [] {
    std::vector<Param> rows = {
        realParam<S>("error_bound", 1e-3, {std::numeric_limits<double>::denorm_min(), 1e300},
                     "largest error of a value, relative to the base of the mode",
                     &S::getErrorBound, [](S& s, double v) { s.setErrorBound(v); }),
        choiceParam<S>(
            "error_bound_mode", "ABS", {"ABS", "REL", "NOA"},
            "ABS: as it is; NOA: times (max - min); REL: times max|x|, for the whole field",
            [](const S& s) { return errorBoundModeName(s.getErrorBoundMode()); },
            [](S& s, const std::string& v) { s.setErrorBoundMode(*errorBoundModeFromName(v)); }),
        intParam<S>("quant_radius", kDefaultRadius, {1, kMaxRadius},
                    "deltas below it have a code, others go to the outlier lists",
                    &S::getQuantRadius,
                    [](S& s, std::int64_t v) { s.setQuantRadius(static_cast<int>(v)); }),
        realParam<S>(
            "outlier_capacity", 0.2, {0.0, 1.0},
            "share of the values for which outlier entries are reserved; more are taken as needed",
            &S::getOutlierCapacity, [](S& s, double v) { s.setOutlierCapacity(v); }),
        boolParam<S>("zigzag_codes", false, "zigzag codes instead of two's complement",
                     &S::getZigzagCodes, &S::setZigzagCodes),
        textParam<S>(
            "axes", "xyz", "axes along which values are predicted, such as xz",
            [](const S& s) { return s.getAxes().text(); },
            [](S& s, const std::string& v) { s.setAxes(Axes::fromText(v, kName)); }),
        realParam<S>("value_base", 0.0, {0.0, std::numeric_limits<double>::max()},
                     "max - min (NOA) or max|x| (REL) when known; 0 scans the data",
                     &S::getValueBase, [](S& s, double v) { s.setValueBase(v); }),
    };
    rows.back().saved = false;
    return ParamTable(std::move(rows));
  }();
  return kTable;
}

template class LorenzoQuantStage<float, std::uint16_t>;
template class LorenzoQuantStage<float, std::uint8_t>;
template class LorenzoQuantStage<double, std::uint16_t>;
template class LorenzoQuantStage<double, std::uint32_t>;

}  // namespace fz
