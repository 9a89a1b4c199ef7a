// What stands in a device's record, on the host's side.
#include "core/require.h"
#include "core/size_limit.h"
#include "quantizers/quantizer/quantizer.h"
#include "quantizers/quantizer/quantizer_bound_codec.h"
#include "quantizers/quantizer/quantizer_cuda.h"

namespace fz::quantizer {

using device::Complaint;

bool QuantizerBase::hasCuda() const {
  return FZ_HAVE_CUDA != 0;
}

std::vector<DeviceField> QuantizerBase::deviceFields() const {
  // SPEC: config.
  std::vector<DeviceField> fields = {{16, 4, device::kSlotValues}};
  if (hasOutlierPorts()) {
    fields.push_back({20, 4, device::kSlotOutliers});
  }
  if (mode_ != ErrorBoundMode::REL) {
    fields.push_back({0, 4, device::kSlotBoundF32});
    fields.push_back({8, 4, device::kSlotRangeF32});
    fields.push_back({56, 8, device::kSlotBound});
    fields.push_back({64, 8, device::kSlotRange});
    fields.push_back({DeviceField::kAbsoluteBound, 8, device::kSlotAbsBound});
  }
  return fields;
}

void QuantizerBase::finishEncodeCuda(const StageRecord& record) {
  const auto real = [&](device::Slot slot) { return fp::bitCast<double>(record.value[slot]); };
  n_values_ = static_cast<std::uint32_t>(record.value[device::kSlotValues]);
  n_outliers_ = static_cast<std::uint32_t>(record.value[device::kSlotOutliers]);
  abs_bound_ = real(device::kSlotAbsBound);
  bound_in_use_ = real(device::kSlotBound);
  range_in_use_ = real(device::kSlotRange);
  rung_ = static_cast<unsigned>(record.value[device::kSlotRung]);
  n_violations_ = record.value[device::kSlotViolations];
  first_violation_ = record.value[device::kSlotFirstViolation];
  first_violating_value_ = real(device::kSlotFirstValue);
  // A group runs one rung at a time; no step helps a NaN or an infinity.
  wants_rerun_ = isLadder() && n_violations_ > 0 && rung_ < kLastRung &&
                 record.value[device::kSlotNonfinite] == 0;
  stored_version_ = 0;
}

unsigned QuantizerBase::groupPasses() const {
  return !isInverse() && isLadder() ? kRungs : 1;
}

void QuantizerBase::throwDeviceError(const StageRecord& record) const {
  const auto complaint = static_cast<Complaint>(record.error_value);
  const std::size_t value_bytes = getDataTypeSize(value_type_);
  FZ_REQUIRE(complaint != Complaint::kNoWholeValues, ErrorCode::kBadSize,
             "Quantizer: input of {} bytes is no whole number of {}-byte values",
             record.error_index, value_bytes);
  FZ_REQUIRE_SIZE(complaint != Complaint::kTooManyValues, getName(),
                  "at most {} values in one call, {} came",
                  std::numeric_limits<std::uint32_t>::max(), record.error_index / value_bytes);
  FZ_REQUIRE(complaint != Complaint::kStreamSizes, ErrorCode::kCorrupt,
             "Quantizer: streams do not have the sizes of {} values and {} outliers",
             record.value[device::kSlotValues], record.value[device::kSlotOutliers]);
  FZ_REQUIRE(complaint != Complaint::kBound, ErrorCode::kCorrupt, "Quantizer: config with bound {}",
             fp::bitCast<double>(record.value[device::kSlotBound]));
  FZ_REQUIRE(false, ErrorCode::kCorrupt, "Quantizer: outlier {} has index {} of {} values",
             record.error_index >> 32, record.error_index & 0xffffffffu,
             record.value[device::kSlotValues]);
}

#if !FZ_HAVE_CUDA
void QuantizerBase::encodeCuda(const CudaRun& run) {
  SimpleStage::encodeCuda(run);
}
void QuantizerBase::decodeCuda(const CudaRun& run) {
  SimpleStage::decodeCuda(run);
}
TileOp QuantizerBase::cudaTileOp() const {
  return NoOp{};
}
std::string QuantizerBase::tileOpType() const {
  return {};
}
std::string QuantizerBase::tileOpHeader() const {
  return {};
}
void QuantizerBase::beginGroupCuda(const CudaRun& run, const GroupRun& group, GroupArgs& args) {
  SimpleStage::beginGroupCuda(run, group, args);
}
void QuantizerBase::endGroupCuda(const CudaRun& run, const GroupRun& group) {
  SimpleStage::endGroupCuda(run, group);
}
#endif

}  // namespace fz::quantizer
