// Settings, sizes and config.
#include <algorithm>
#include <cmath>

#include "core/require.h"
#include "core/size_limit.h"
#include "fused/interp/config.h"
#include "fused/interp/cpu/plan_search.h"
#include "fused/interp/cpu/state.h"
#include "fused/interp/interp_stage.h"
#include "fused/interp/stream.h"
#include "fz/byte_io.h"

namespace fz::interp {

namespace {

// Outliers are rare; where they are not, the port grows.
constexpr std::size_t kReserveShare = 256;
constexpr std::size_t kReserveEntries = 64;

}  // namespace

void InterpBase::setErrorBound(double error_bound) {
  FZ_REQUIRE_ARG(std::isfinite(error_bound) && error_bound > 0.0,
                 "{}: error bound must be positive and finite, not {}", kName, error_bound);
  error_bound_ = error_bound;
}

void InterpBase::setErrorBoundMode(ErrorBoundMode mode) {
  FZ_REQUIRE_ARG(mode == ErrorBoundMode::ABS || mode == ErrorBoundMode::NOA,
                 "{}: error bound mode must be ABS or NOA: bins have one width, so REL, a bound "
                 "for each value, needs the Quantizer",
                 kName);
  mode_ = mode;
}

void InterpBase::setValueBase(double value_base) {
  FZ_REQUIRE_ARG(std::isfinite(value_base) && value_base >= 0.0,
                 "{}: value base must be 0 (unknown) or positive and finite, not {}", kName,
                 value_base);
  value_base_ = value_base;
}

void InterpBase::setPlan(const std::string& text) {
  if (text != "iso" && !tuneFamily(text)) {
    parsePlan(text);
  }
  plan_ = text;
}

std::string InterpBase::usedPlan() const {
  return planText(state_->config.plan);
}

std::string InterpBase::runNote() const {
  return state_->reason.empty() ? std::string()
                                : fmt::format("plan {}; {}", usedPlan(), state_->reason);
}

std::vector<std::pair<std::string, std::string>> InterpBase::foundSettings() const {
  if (!tuneFamily(plan_) || !state_->has_run) {
    return {};
  }
  return {{"plan", usedPlan()}};
}

std::optional<BoundInfo> InterpBase::boundInfo() const {
  if (state_->has_run) {
    return BoundInfo{state_->config.mode, state_->config.error_bound,
                     state_->config.absolute_bound};
  }
  return BoundInfo{mode_, error_bound_, mode_ == ErrorBoundMode::ABS ? error_bound_ : 0.0};
}

bool InterpBase::isGraphCompatible() const {
  return SimpleStage::isGraphCompatible() && (isInverse() || !tuneFamily(plan_));
}

bool InterpBase::hasFixedEncodedBytes(std::size_t port) const {
  return port == 0 && !tuneFamily(plan_);
}

SimpleStage::PortBytes InterpBase::encodedBytes(std::size_t input_bytes) const {
  const std::size_t n = input_bytes / getDataTypeSize(input_type_);
  const PortBytes most = maxEncodedBytes(input_bytes);
  const std::size_t entry_bytes = sizeof(std::uint32_t) + getDataTypeSize(input_type_);
  return {most[0], std::min(most[1], (n / kReserveShare + kReserveEntries) * entry_bytes)};
}

SimpleStage::PortBytes InterpBase::maxEncodedBytes(std::size_t input_bytes) const {
  const std::size_t n = input_bytes / getDataTypeSize(input_type_);
  const auto dims = dims_.fitted(n).value_or(std::array<std::size_t, 3>{n, 1, 1});
  if (n > kMaxValues) {
    return {0, 0};  // encoding refuses it
  }
  const Extents extents =
      squeezed({static_cast<std::uint32_t>(dims[0]), static_cast<std::uint32_t>(dims[1]),
                static_cast<std::uint32_t>(dims[2])});
  const std::uint64_t n_codes = tuneFamily(plan_)
                                    ? tunedCodes(extents)
                                    : stepsCodes(planFor(plan_, extents).steps(), extents);
  return {n_codes * getDataTypeSize(code_type_),
          n * (sizeof(std::uint32_t) + getDataTypeSize(input_type_))};
}

std::size_t InterpBase::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  const RunConfig& config = state_->config;
  FZ_REQUIRE(state_->has_run, ErrorCode::kInvalidState, "{}: cannot decode without a config",
             kName);
  FZ_REQUIRE(encoded_bytes.size() == 2, ErrorCode::kCorrupt, "{}: 2 streams needed, {} came", kName,
             encoded_bytes.size());
  const std::uint64_t n_codes = stepsCodes(config.plan.steps(), squeezed(config.dims));
  FZ_REQUIRE(encoded_bytes[0] == n_codes * getDataTypeSize(code_type_), ErrorCode::kCorrupt,
             "{}: {} codes needed, {} bytes of them came", kName, n_codes, encoded_bytes[0]);
  const std::size_t entry_bytes = sizeof(std::uint32_t) + getDataTypeSize(input_type_);
  FZ_REQUIRE(
      encoded_bytes[1] % entry_bytes == 0 && encoded_bytes[1] / entry_bytes <= config.values(),
      ErrorCode::kCorrupt, "{}: {} bytes of outliers for {} values", kName, encoded_bytes[1],
      config.values());
  return config.values() * getDataTypeSize(input_type_);
}

void InterpBase::writeConfig(ByteWriter& out) const {
  RunConfig config = state_->config;
  if (!state_->has_run) {
    config.input_type = input_type_;
    config.code_type = code_type_;
    config.mode = mode_;
    config.skips_missing = skips_missing_;
    config.error_bound = error_bound_;
    config.dims = {0, 1, 1};
  }
  interp::writeConfig(config, out);
}

void InterpBase::readConfig(ByteReader& in) {
  const RunConfig config = interp::readConfig(in);
  FZ_REQUIRE(config.input_type == input_type_ && config.code_type == code_type_,
             ErrorCode::kCorrupt, "{}: config with types {} and {}", kName,
             static_cast<int>(config.input_type), static_cast<int>(config.code_type));
  state_->config = config;
  state_->has_run = true;
  state_->reason.clear();
  error_bound_ = config.error_bound;
  mode_ = config.mode;
  skips_missing_ = config.skips_missing;
  plan_ = planText(config.plan);
  dims_.setOwn({config.dims[0], config.dims[1], config.dims[2]});
}

}  // namespace fz::interp
