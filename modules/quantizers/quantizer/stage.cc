#include <algorithm>
#include <cmath>

#include "core/require.h"
#include "core/size_limit.h"
#include "fz/byte_io.h"
#include "quantizers/quantizer/codec_bound.h"
#include "quantizers/quantizer/quantizer.h"
#include "quantizers/quantizer/state.h"

namespace fz::quantizer {

namespace {

// SPEC: config. Where its older forms end.
constexpr std::size_t kShortestConfig = 28;
constexpr std::size_t kThresholdEnd = 36;
constexpr std::size_t kDitherEnd = 56;
constexpr std::size_t kFullConfig = 72;

constexpr std::size_t kIndexBytes = sizeof(std::uint32_t);
constexpr std::size_t kMaxValues = std::numeric_limits<std::uint32_t>::max();

DataType signedOf(DataType type) {
  return type == DataType::UINT16   ? DataType::INT16
         : type == DataType::UINT32 ? DataType::INT32
                                    : type;
}

}  // namespace

std::uint32_t QuantizerBase::codeBits() const {
  return static_cast<std::uint32_t>(8 * getDataTypeSize(code_type_));
}

void QuantizerBase::setConfig(const Config& config) {
  setErrorBound(config.error_bound);
  setErrorBoundMode(config.eb_mode);
  setQuantRadius(config.quant_radius);
  setOutlierCapacity(config.outlier_capacity);
  setValueBase(config.precomputed_value_base);
  setZigzagCodes(config.zigzag_codes);
  setOutlierThreshold(config.outlier_threshold);
  setInplaceOutliers(config.inplace_outliers);
  setLinearMode(config.linear_mode);
  setLinearPolicy(config.linear_policy);
}

void QuantizerBase::setErrorBound(double eb) {
  FZ_REQUIRE_ARG(std::isfinite(eb) && eb > 0.0,
                 "Quantizer: error bound must be a finite number above 0, not {}", eb);
  error_bound_ = eb;
}

void QuantizerBase::setErrorBoundMode(ErrorBoundMode mode) {
  FZ_REQUIRE_ARG(mode <= ErrorBoundMode::NOA, "Quantizer: unknown error bound mode {}",
                 static_cast<int>(mode));
  mode_ = mode;
  stored_version_ = 0;
}

void QuantizerBase::setQuantRadius(int radius) {
  const std::int64_t limit = std::int64_t{1} << (codeBits() - 1);
  FZ_REQUIRE_ARG(radius >= 1 && radius <= limit,
                 "Quantizer: radius must be from 1 to {} for {} codes, not {}", limit,
                 dataTypeToString(code_type_), radius);
  radius_ = static_cast<std::uint32_t>(radius);
}

void QuantizerBase::setOutlierCapacity(double fraction) {
  FZ_REQUIRE_ARG(fraction >= 0.0 && fraction <= 1.0,
                 "Quantizer: outlier capacity must be from 0 to 1, not {}", fraction);
  outlier_capacity_ = fraction;
}

void QuantizerBase::setOutlierThreshold(double threshold) {
  FZ_REQUIRE_ARG(threshold >= 0.0, "Quantizer: outlier threshold must be at least 0, not {}",
                 threshold);
  threshold_ = threshold;
}

void QuantizerBase::setValueBase(double base) {
  FZ_REQUIRE_ARG(std::isfinite(base) && base >= 0.0,
                 "Quantizer: value base must be 0 (scan the data) or the value range, not {}",
                 base);
  value_base_ = base;
}

void QuantizerBase::requireValidCombination() const {
  const auto refuse = [](bool wrong, std::string_view reason) {
    FZ_REQUIRE(!wrong, ErrorCode::kInvalidArgument, "Quantizer: {}", reason);
  };
  const bool rel = mode_ == ErrorBoundMode::REL;
  refuse(linear_ && rel, "linear mode needs error bound mode ABS or NOA, not REL");
  refuse(linear_ && inplace_, "linear mode has no outliers; switch in-place outliers off");
  refuse(linear_ && zigzag_, "linear mode has signed codes; switch zigzag codes off");
  refuse(inplace_ && rel, "in-place outliers need error bound mode ABS or NOA, not REL");
  refuse(inplace_ && !zigzag_, "in-place outliers need zigzag codes; switch them on");
  FZ_REQUIRE(!inplace_ || getDataTypeSize(code_type_) == getDataTypeSize(value_type_),
             ErrorCode::kInvalidArgument,
             "Quantizer: in-place outliers need codes as wide as the values, not {} and {}",
             dataTypeToString(code_type_), dataTypeToString(value_type_));
  FZ_REQUIRE(radius_ >= 1 && radius_ <= std::uint64_t{1} << (codeBits() - 1),
             ErrorCode::kInvalidArgument, "Quantizer: radius {} from an archive does not fit {}",
             radius_, dataTypeToString(code_type_));
}

SimpleStage::Ports QuantizerBase::outputPorts() const {
  if (linear_) {
    return {{"codes", signedOf(code_type_)}};
  }
  if (inplace_) {
    return {{"codes", code_type_}};
  }
  return {{"codes", code_type_}, {"outlier_vals", value_type_}, {"outlier_idxs", DataType::UINT32}};
}

SimpleStage::PortBytes QuantizerBase::encodedBytes(std::size_t input_bytes) const {
  const std::size_t value_bytes = getDataTypeSize(value_type_);
  const std::size_t n = input_bytes / value_bytes;
  PortBytes bytes = {n * getDataTypeSize(code_type_)};
  if (hasOutlierPorts()) {
    const double wanted = std::ceil(static_cast<double>(n) * outlier_capacity_);
    const std::size_t reserve = std::min(n, static_cast<std::size_t>(wanted));
    bytes.push_back(reserve * value_bytes);
    bytes.push_back(reserve * kIndexBytes);
  }
  return bytes;
}

SimpleStage::PortBytes QuantizerBase::maxEncodedBytes(std::size_t input_bytes) const {
  const std::size_t value_bytes = getDataTypeSize(value_type_);
  const std::size_t n = input_bytes / value_bytes;
  PortBytes bytes = {n * getDataTypeSize(code_type_)};
  if (hasOutlierPorts()) {
    bytes.push_back(n * value_bytes);
    bytes.push_back(n * kIndexBytes);
  }
  return bytes;
}

std::size_t QuantizerBase::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  const std::size_t n_ports = hasOutlierPorts() ? 3 : 1;
  FZ_REQUIRE(encoded_bytes.size() >= n_ports, ErrorCode::kCorrupt,
             "Quantizer: expected {} streams, got {}", n_ports, encoded_bytes.size());
  const std::uint64_t n = n_values_;
  FZ_REQUIRE(encoded_bytes[0] == n * getDataTypeSize(code_type_), ErrorCode::kCorrupt,
             "Quantizer: {} bytes of codes for {} values of {}", encoded_bytes[0], n,
             dataTypeToString(code_type_));
  const std::uint64_t value_bytes = getDataTypeSize(value_type_);
  if (n_ports == 3) {
    const std::uint64_t k = n_outliers_;
    // Archives with a fourth stream, the count, may hold whole reserves.
    const bool exact = encoded_bytes.size() == 3;
    const auto matches = [&](std::size_t n_bytes, std::uint64_t entry_bytes) {
      return exact ? n_bytes == k * entry_bytes : n_bytes / entry_bytes >= k;
    };
    FZ_REQUIRE(matches(encoded_bytes[1], value_bytes) && matches(encoded_bytes[2], kIndexBytes),
               ErrorCode::kCorrupt,
               "Quantizer: {} outliers, but {} bytes of values and {} bytes of indices", k,
               encoded_bytes[1], encoded_bytes[2]);
  }
  return static_cast<std::size_t>(n * value_bytes);
}

std::optional<BoundInfo> QuantizerBase::boundInfo() const {
  if (linear_ && policy_ == LinearPolicy::Wrap) {
    return std::nullopt;  // the caller takes the error, so no archive may promise a bound
  }
  return BoundInfo{mode_, error_bound_, mode_ == ErrorBoundMode::REL ? 0.0 : abs_bound_};
}

std::uint16_t QuantizerBase::getStageVersion() const {
  if (stored_version_ != 0) {
    return stored_version_;
  }
  return mode_ == ErrorBoundMode::REL ? 2 : 1;
}

void QuantizerBase::beginRun() {
  state_->rung = 0;
  state_->wants_rerun = false;
  state_->n_violations = 0;
}

bool QuantizerBase::wantsRerun() const {
  return state_->wants_rerun;
}

void QuantizerBase::checkResult() const {
  if (isInverse() || state_->n_violations == 0) {
    return;
  }
  FZ_REQUIRE(false, ErrorCode::kBoundViolation,
             "Quantizer: {} of {} values cannot be kept within the bound {} by {} {} codes; "
             "the first is value {} = {}",
             state_->n_violations, n_values_, abs_bound_, linear_ ? "linear" : "in-place",
             dataTypeToString(outputPorts()[0].type), state_->first_violation,
             state_->first_violating_value);
}

std::uint32_t QuantizerBase::checkedValues(std::size_t n_bytes,
                                           std::size_t codes_capacity_bytes) const {
  const std::size_t value_bytes = getDataTypeSize(value_type_);
  FZ_REQUIRE(n_bytes % value_bytes == 0, ErrorCode::kBadSize,
             "Quantizer: input size {} is not a multiple of {} bytes", n_bytes, value_bytes);
  const std::size_t n = n_bytes / value_bytes;
  FZ_REQUIRE_SIZE(n <= kMaxValues, getName(), "at most {} values in one call, got {}", kMaxValues,
                  n);
  const std::size_t code_bytes = n * getDataTypeSize(code_type_);
  FZ_REQUIRE(codes_capacity_bytes >= code_bytes, ErrorCode::kBufferTooSmall,
             "Quantizer: the codes need {} bytes, got {}", code_bytes, codes_capacity_bytes);
  return static_cast<std::uint32_t>(n);
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
             "Quantizer: config with contradictory modes");
  FZ_REQUIRE(!inplace_ || getDataTypeSize(code_type_) == getDataTypeSize(value_type_),
             ErrorCode::kCorrupt, "Quantizer: config with in-place outliers in narrower codes");
}

void QuantizerBase::readConfig(ByteReader& in) {
  const std::size_t n_bytes = in.remaining();
  FZ_REQUIRE(n_bytes >= kShortestConfig, ErrorCode::kCorrupt,
             "Quantizer: config of {} bytes, expected at least {}", n_bytes, kShortestConfig);
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

}  // namespace fz::quantizer
