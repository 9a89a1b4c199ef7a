// A run on a device: which kernels, over which memory, and what they report.
#include "quantizers/quantizer/cuda/stage.h"

#include <algorithm>
#include <limits>

#include "backends/cuda/launch.h"
#include "core/require.h"
#include "core/size_limit.h"
#include "quantizers/quantizer/codec_bound.h"

namespace fz::quantizer {

using device::DecodeForm;
using device::DecodeJob;
using device::EncodeJob;

namespace {

/// Working memory of an encode, one part after the other.
class WorkLayout {
 public:
  template <class T>
  std::size_t add(std::size_t n) {
    constexpr std::size_t kAlignment = 64;
    const std::size_t at = n_bytes_;
    n_bytes_ += bits::roundUp(n * sizeof(T), kAlignment);
    return at;
  }
  std::size_t bytes() const { return n_bytes_; }

 private:
  std::size_t n_bytes_ = 0;
};

/// Which values are outliers, at `counts_at` and `masks_at` of one memory.
struct MarksLayout {
  std::size_t counts_at;
  std::size_t masks_at;

  MarksLayout(std::size_t n_tiles, std::size_t value_bytes, WorkLayout& layout)
      : counts_at(layout.add<std::uint16_t>(n_tiles)),
        masks_at(layout.add<std::uint32_t>(n_tiles * (device::kTileBytes / value_bytes / 32))) {}
  void give(std::uint8_t* memory, EncodeJob& job) const {
    job.tile_counts = reinterpret_cast<std::uint16_t*>(memory + counts_at);
    job.tile_masks = reinterpret_cast<std::uint32_t*>(memory + masks_at);
  }
};

}  // namespace

EncodeJob CudaSide::encodeJob(const cuda::Call& call, EncodeWay way) {
  const bool lists = stage_.hasOutlierPorts();
  EncodeJob job{};
  job.value_bytes = static_cast<std::uint32_t>(getDataTypeSize(stage_.value_type_));
  job.code_bytes = static_cast<std::uint32_t>(getDataTypeSize(stage_.code_type_));
  job.input = call.inputs[0];
  job.codes = call.outputs[0];
  if (lists) {
    job.outlier_values = call.outputs[1];
    job.outlier_indices = call.outputs[2];
  }
  job.record = call.record;
  const std::size_t n_tiles = lists ? bits::ceilDiv(job.input.size.n_bytes, device::kTileBytes) : 0;
  job.batch_tiles = device::batchTiles(n_tiles);
  job.n_batches =
      lists ? std::max<std::size_t>(1, bits::ceilDiv<std::size_t>(n_tiles, job.batch_tiles)) : 0;
  WorkLayout layout;
  const std::size_t state_at = layout.add<std::uint8_t>(device::kStateBytes);
  const std::size_t parts_at = layout.add<device::RangePart>(device::kMaxRangeBlocks);
  const std::size_t batches_at = layout.add<std::uint64_t>(job.n_batches);
  std::uint8_t* work = nullptr;
  if (way != EncodeWay::kAlone) {  // ops only set bits and marks, so they must find none
    work = work_.get<std::uint8_t>(call.pool, layout.bytes()).data();
    WorkLayout zeroed;
    const MarksLayout marks(n_tiles, job.value_bytes, zeroed);
    marks.give(way == EncodeWay::kGroupBegins ? group_marks_.get(call, zeroed.bytes())
                                              : group_marks_.data(),
               job);
    job.counts_are_marks = true;
  } else {
    const MarksLayout marks(n_tiles, job.value_bytes, layout);
    work = work_.get<std::uint8_t>(call.pool, layout.bytes()).data();
    marks.give(work, job);
  }
  job.state = work + state_at;
  job.parts = reinterpret_cast<device::RangePart*>(work + parts_at);
  job.batch_states = reinterpret_cast<std::uint64_t*>(work + batches_at);
  return job;
}

void CudaSide::checkEncode(const cuda::Call& call) {
  stage_.requireValidCombination();
  const CudaInput& input = call.inputs[0];
  if (input.size.isExact()) {
    stage_.n_values_ = stage_.checkedValues(input.size.n_bytes, call.outputs[0].capacity_bytes);
  }
  stage_.beginRun();  // the ladder begins anew, and ends on the device
  stage_.stored_version_ = 0;
}

void CudaSide::prepareEncode(const EncodeJob& job, const cuda::Call& call) const {
  unsigned n_parts = 0;
  if (stage_.mode_ == ErrorBoundMode::NOA && !(stage_.value_base_ > 0.0)) {
    n_parts = device::rangeBlocks(job.input.size.n_bytes, cuda::multiprocessorCount());
    device::launchRange(job, n_parts, call);
  }
  const bool rel = stage_.mode_ == ErrorBoundMode::REL;
  const bool noa = stage_.mode_ == ErrorBoundMode::NOA;
  device::launchPrepare(job,
                        {stage_.error_bound_, stage_.value_base_, state_.threshold(),
                         stage_.radius_, state_.codeForm(), rel, noa, stage_.isLadder()},
                        n_parts, call);
}

void CudaSide::encode(const cuda::Call& call) {
  checkEncode(call);
  const EncodeJob job = encodeJob(call, EncodeWay::kAlone);
  prepareEncode(job, call);
  if (stage_.hasOutlierPorts()) {
    if (stage_.mode_ == ErrorBoundMode::REL) {
      device::launchEncodeRel(
          job, {stage_.error_bound_, stage_.threshold_, stage_.radius_, stage_.codeBits()}, call);
    } else {
      device::launchEncodeLists(job, stage_.zigzag_, call);
    }
    device::launchGather(job, call);
  } else {
    const bool wrap = stage_.linear_ && stage_.policy_ == LinearPolicy::Wrap;
    for (unsigned rung = 0; rung <= (stage_.isLadder() ? kLastRung : 0u); ++rung) {
      device::launchEncodeFlat(job, {stage_.inplace_, wrap, stage_.radius_, rung}, call);
    }
    if (!wrap) {
      device::launchSettle(job, stage_.isLadder(), call);
    }
  }
}

DecodeJob CudaSide::decodeJob(const cuda::Call& call) const {
  const std::size_t n_inputs = std::min(call.inputs.size(), std::size_t{4});
  FZ_REQUIRE(n_inputs >= (stage_.hasOutlierPorts() ? 3u : 1u), ErrorCode::kCorrupt,
             "Quantizer: too few input streams ({})", n_inputs);
  bool exact = true;
  std::size_t sizes[4] = {};
  for (std::size_t i = 0; i < n_inputs; ++i) {
    sizes[i] = call.inputs[i].size.n_bytes;
    exact = exact && call.inputs[i].size.isExact();
  }
  if (exact) {
    const std::size_t n_bytes = stage_.decodedBytes({sizes, n_inputs});
    FZ_REQUIRE(call.outputs[0].capacity_bytes >= n_bytes, ErrorCode::kBufferTooSmall,
               "Quantizer: the values need {} bytes, got {}", n_bytes,
               call.outputs[0].capacity_bytes);
  }
  const bool rel = stage_.mode_ == ErrorBoundMode::REL;
  const bool lists = stage_.hasOutlierPorts();
  DecodeJob job{};
  job.value_bytes = static_cast<std::uint32_t>(getDataTypeSize(stage_.value_type_));
  job.code_bytes = static_cast<std::uint32_t>(getDataTypeSize(stage_.code_type_));
  job.codes = call.inputs[0];
  if (lists) {
    job.outlier_values = call.inputs[1];
    job.outlier_indices = call.inputs[2];
  }
  job.output = call.outputs[0];
  job.record = call.record;
  job.form = rel ? (stage_.getStageVersion() < 2 ? DecodeForm::kRelV1 : DecodeForm::kRel)
             : stage_.inplace_                   ? DecodeForm::kInplace
             : stage_.zigzag_ && !stage_.linear_ ? DecodeForm::kZigzag
                                                 : DecodeForm::kTwosComplement;
  job.has_lists = lists;
  job.exact_lists = call.inputs.size() == 3;
  job.radius = stage_.radius_;
  if (rel) {
    job.log_step = isFloat() ? relLogStep<float>(stage_.error_bound_)
                             : relLogStep<double>(stage_.error_bound_);
    job.log_step_v1 = logStepV1(stage_.error_bound_);
  }
  return job;
}

void CudaSide::decode(const cuda::Call& call) {
  const DecodeJob job = decodeJob(call);
  device::launchDecode(job, call);
  if (job.has_lists) {
    device::launchScatter(job, call);
  }
}

std::vector<DeviceField> CudaSide::fields() const {
  // SPEC: config.
  std::vector<DeviceField> fields = {{16, 4, device::kSlotValues}};
  if (stage_.hasOutlierPorts()) {
    fields.push_back({20, 4, device::kSlotOutliers});
  }
  if (stage_.mode_ != ErrorBoundMode::REL) {
    fields.push_back({0, 4, device::kSlotBoundF32});
    fields.push_back({8, 4, device::kSlotRangeF32});
    fields.push_back({56, 8, device::kSlotBound});
    fields.push_back({64, 8, device::kSlotRange});
    fields.push_back({DeviceField::kAbsoluteBound, 8, device::kSlotAbsBound});
  }
  return fields;
}

void CudaSide::finishEncode(const StageRecord& record) {
  const auto real = [&](device::Slot slot) { return fp::bitCast<double>(record.value[slot]); };
  stage_.n_values_ = static_cast<std::uint32_t>(record.value[device::kSlotValues]);
  stage_.n_outliers_ = static_cast<std::uint32_t>(record.value[device::kSlotOutliers]);
  stage_.abs_bound_ = real(device::kSlotAbsBound);
  stage_.bound_in_use_ = real(device::kSlotBound);
  stage_.range_in_use_ = real(device::kSlotRange);
  state_.rung = static_cast<unsigned>(record.value[device::kSlotRung]);
  state_.n_violations = record.value[device::kSlotViolations];
  state_.first_violation = record.value[device::kSlotFirstViolation];
  state_.first_violating_value = real(device::kSlotFirstValue);
  // A group runs one rung at a time; no step helps a NaN or an infinity.
  state_.wants_rerun = stage_.isLadder() && state_.n_violations > 0 && state_.rung < kLastRung &&
                       record.value[device::kSlotNonfinite] == 0;
  stage_.stored_version_ = 0;
}

unsigned CudaSide::groupPasses() const {
  return !stage_.isInverse() && stage_.isLadder() ? kRungs : 1;
}

void CudaSide::throwError(const StageRecord& record) const {
  const auto failure = static_cast<device::Failure>(record.error_value);
  const std::size_t value_bytes = getDataTypeSize(stage_.value_type_);
  FZ_REQUIRE(failure != device::Failure::kRaggedInput, ErrorCode::kBadSize,
             "Quantizer: input size {} is not a multiple of {} bytes", record.error_index,
             value_bytes);
  FZ_REQUIRE_SIZE(failure != device::Failure::kTooManyValues, stage_.getName(),
                  "at most {} values in one call, got {}",
                  std::numeric_limits<std::uint32_t>::max(), record.error_index / value_bytes);
  FZ_REQUIRE(failure != device::Failure::kStreamSizes, ErrorCode::kCorrupt,
             "Quantizer: streams do not have the sizes of {} values and {} outliers",
             record.value[device::kSlotValues], record.value[device::kSlotOutliers]);
  FZ_REQUIRE(failure != device::Failure::kBound, ErrorCode::kCorrupt,
             "Quantizer: config with bound {}",
             fp::bitCast<double>(record.value[device::kSlotBound]));
  FZ_REQUIRE(false, ErrorCode::kCorrupt, "Quantizer: outlier {} has index {} of {} values",
             record.error_index >> 32, record.error_index & 0xffffffffu,
             record.value[device::kSlotValues]);
}

bool CudaSide::scansInput() const {
  return !stage_.isInverse() && stage_.mode_ == ErrorBoundMode::NOA && !(stage_.value_base_ > 0.0);
}

/// Values that a smaller step may keep are the host's to deal with.
std::optional<std::uint32_t> CudaSide::quietValues() const {
  return stage_.isInverse() ? 0u : 1u << device::kSlotViolations;
}

TileOp CudaSide::tileOp() const {
  if (stage_.hasOutlierPorts()) {
    return listTileOp();
  }
  return MapOp{getDataTypeSize(stage_.value_type_) << 16 | getDataTypeSize(stage_.code_type_) << 8 |
                   (stage_.inplace_ ? 1u : 0u),
               scansInput()};
}

std::string CudaSide::tileOpType() const {
  if (stage_.hasOutlierPorts()) {
    return listOpType();
  }
  return fmt::format("fz::quantizer::FlatOp<{}, std::{}_t, {}>", isFloat() ? "float" : "double",
                     dataTypeToString(stage_.code_type_), stage_.inplace_);
}

std::string CudaSide::tileOpHeader() const {
  return stage_.hasOutlierPorts() ? "quantizers/quantizer/cuda/op/outliers.cuh"
                                  : "quantizers/quantizer/cuda/op/values.cuh";
}

void CudaSide::beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) {
  if (stage_.hasOutlierPorts()) {
    beginListGroup(call, args);
  } else {
    beginFlatGroup(call, group, args);
  }
}

void CudaSide::endGroup(const cuda::Call& call, const GroupRun& /*group*/) {
  if (stage_.hasOutlierPorts()) {
    endListGroup(call);
  }
}

MakeCudaPart cudaPartMaker() {
  return [](SimpleStage& stage) -> std::unique_ptr<CudaPart> {
    return std::make_unique<CudaSide>(static_cast<QuantizerBase&>(stage));
  };
}

}  // namespace fz::quantizer
