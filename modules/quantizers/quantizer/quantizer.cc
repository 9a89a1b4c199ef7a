#include "quantizers/quantizer/quantizer.h"

#include <algorithm>
#include <cmath>

#include "core/require.h"
#include "core/size_limit.h"
#include "quantizers/quantizer/quantizer_codec.h"

namespace fz::quantizer {

namespace {

constexpr std::size_t kIndexBytes = sizeof(std::uint32_t);
constexpr std::size_t kMaxValues = std::numeric_limits<std::uint32_t>::max();

DataType signedOf(DataType type) {
  return type == DataType::UINT16   ? DataType::INT16
         : type == DataType::UINT32 ? DataType::INT32
                                    : type;
}

}  // namespace

QuantizerBase::QuantizerBase(DataType value_type, DataType code_type)
    : value_type_(value_type), code_type_(code_type) {
}

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
  FZ_REQUIRE_ARG(threshold >= 0.0, "Quantizer: outlier threshold must not be negative, not {}",
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
  const auto refuse = [](bool wrong, std::string_view why) {
    FZ_REQUIRE(!wrong, ErrorCode::kInvalidArgument, "Quantizer: {}", why);
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
             "Quantizer: {} streams needed, {} came", n_ports, encoded_bytes.size());
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
  rung_ = 0;
  wants_rerun_ = false;
  n_violations_ = 0;
}

void QuantizerBase::checkResult() const {
  if (isInverse() || n_violations_ == 0) {
    return;
  }
  FZ_REQUIRE(false, ErrorCode::kBoundViolation,
             "Quantizer: {} of {} values cannot be kept within the bound {} by {} {} codes; "
             "the first is value {} = {}",
             n_violations_, n_values_, abs_bound_, linear_ ? "linear" : "in-place",
             dataTypeToString(outputPorts()[0].type), first_violation_, first_violating_value_);
}

std::uint32_t QuantizerBase::checkedValues(std::size_t n_bytes,
                                           std::size_t codes_capacity_bytes) const {
  const std::size_t value_bytes = getDataTypeSize(value_type_);
  FZ_REQUIRE(n_bytes % value_bytes == 0, ErrorCode::kBadSize,
             "Quantizer: input of {} bytes is no whole number of {}-byte values", n_bytes,
             value_bytes);
  const std::size_t n = n_bytes / value_bytes;
  FZ_REQUIRE_SIZE(n <= kMaxValues, getName(), "at most {} values in one call, {} came", kMaxValues,
                  n);
  const std::size_t code_bytes = n * getDataTypeSize(code_type_);
  FZ_REQUIRE(codes_capacity_bytes >= code_bytes, ErrorCode::kBufferTooSmall,
             "Quantizer: {} bytes needed for the codes, {} came", code_bytes, codes_capacity_bytes);
  return static_cast<std::uint32_t>(n);
}

}  // namespace fz::quantizer
