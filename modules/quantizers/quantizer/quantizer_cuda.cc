// One run on a device: which kernels, over which memory.
#include "quantizers/quantizer/quantizer_cuda.h"

#include <algorithm>
#include <limits>

#include "core/require.h"
#include "quantizers/quantizer/quantizer.h"
#include "quantizers/quantizer/quantizer_bound_codec.h"
#include "quantizers/quantizer/quantizer_cpu.h"

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

EncodeJob QuantizerBase::encodeJob(const CudaRun& run, EncodeWay way) {
  const bool lists = hasOutlierPorts();
  EncodeJob job{};
  job.value_bytes = static_cast<std::uint32_t>(getDataTypeSize(value_type_));
  job.code_bytes = static_cast<std::uint32_t>(getDataTypeSize(code_type_));
  job.input = run.inputs[0];
  job.codes = run.outputs[0];
  if (lists) {
    job.outlier_values = run.outputs[1];
    job.outlier_indices = run.outputs[2];
  }
  job.record = run.record;
  const std::size_t n_tiles = lists ? bits::ceilDiv(job.input.size.n_bytes, device::kTileBytes) : 0;
  job.group_tiles = n_tiles > device::kManyTiles ? device::kMaxGroupTiles : device::kMinGroupTiles;
  job.n_groups =
      lists ? std::max<std::size_t>(1, bits::ceilDiv<std::size_t>(n_tiles, job.group_tiles)) : 0;
  WorkLayout layout;
  const std::size_t state_at = layout.add<std::uint8_t>(device::kStateBytes);
  const std::size_t parts_at = layout.add<device::RangePart>(device::kMaxRangeBlocks);
  const std::size_t groups_at = layout.add<std::uint64_t>(job.n_groups);
  std::uint8_t* work = nullptr;
  if (way != EncodeWay::kAlone) {  // ops only set bits and marks, so they must find none
    work = device_work_.get<std::uint8_t>(run.pool, layout.bytes()).data();
    WorkLayout zeroed;
    const MarksLayout marks(n_tiles, job.value_bytes, zeroed);
    marks.give(way == EncodeWay::kGroupBegins ? group_marks_.get(run, zeroed.bytes())
                                              : group_marks_.data(),
               job);
    job.counts_are_marks = true;
  } else {
    const MarksLayout marks(n_tiles, job.value_bytes, layout);
    work = device_work_.get<std::uint8_t>(run.pool, layout.bytes()).data();
    marks.give(work, job);
  }
  job.state = work + state_at;
  job.parts = reinterpret_cast<device::RangePart*>(work + parts_at);
  job.group_states = reinterpret_cast<std::uint64_t*>(work + groups_at);
  return job;
}

void QuantizerBase::checkEncodeCuda(const CudaRun& run) {
  requireValidCombination();
  const CudaInput& input = run.inputs[0];
  if (input.size.isExact()) {
    n_values_ = checkedValues(input.size.n_bytes, run.outputs[0].capacity_bytes);
  }
  beginRun();  // the ladder begins anew, and ends on the device
  stored_version_ = 0;
}

void QuantizerBase::prepareEncodeCuda(const EncodeJob& job, cudaStream_t stream) {
  unsigned n_parts = 0;
  if (mode_ == ErrorBoundMode::NOA && !(value_base_ > 0.0)) {
    n_parts = device::rangeBlocks(job.input.size.n_bytes);
    device::launchRange(job, n_parts, stream);
  }
  const double threshold = linear_ ? std::numeric_limits<double>::infinity() : threshold_;
  const bool rel = mode_ == ErrorBoundMode::REL;
  const bool noa = mode_ == ErrorBoundMode::NOA;
  device::launchPrepare(
      job, {error_bound_, value_base_, threshold, radius_, codeForm(), rel, noa, isLadder()},
      n_parts, stream);
}

void QuantizerBase::encodeCuda(const CudaRun& run) {
  checkEncodeCuda(run);
  const EncodeJob job = encodeJob(run, EncodeWay::kAlone);
  prepareEncodeCuda(job, run.stream);
  if (hasOutlierPorts()) {
    if (mode_ == ErrorBoundMode::REL) {
      device::launchEncodeRel(job, {error_bound_, threshold_, radius_, codeBits()}, run.stream);
    } else {
      device::launchEncodeLists(job, zigzag_, run.stream);
    }
    device::launchGather(job, run.stream);
  } else {
    const bool wrap = linear_ && policy_ == LinearPolicy::Wrap;
    for (unsigned rung = 0; rung <= (isLadder() ? kLastRung : 0u); ++rung) {
      device::launchEncodeFlat(job, {inplace_, wrap, radius_, rung}, run.stream);
    }
    if (!wrap) {
      device::launchSettle(job, isLadder(), run.stream);
    }
  }
}

DecodeJob QuantizerBase::beginDecodeCuda(const CudaRun& run) const {
  const std::size_t n_inputs = std::min(run.inputs.size(), std::size_t{4});
  FZ_REQUIRE(n_inputs >= (hasOutlierPorts() ? 3u : 1u), ErrorCode::kCorrupt,
             "Quantizer: {} streams came", n_inputs);
  bool exact = true;
  std::size_t sizes[4] = {};
  for (std::size_t i = 0; i < n_inputs; ++i) {
    sizes[i] = run.inputs[i].size.n_bytes;
    exact = exact && run.inputs[i].size.isExact();
  }
  if (exact) {
    const std::size_t n_bytes = decodedBytes({sizes, n_inputs});
    FZ_REQUIRE(run.outputs[0].capacity_bytes >= n_bytes, ErrorCode::kBufferTooSmall,
               "Quantizer: {} bytes needed for the values, {} came", n_bytes,
               run.outputs[0].capacity_bytes);
  }
  const bool rel = mode_ == ErrorBoundMode::REL;
  const bool lists = hasOutlierPorts();
  DecodeJob job{};
  job.value_bytes = static_cast<std::uint32_t>(getDataTypeSize(value_type_));
  job.code_bytes = static_cast<std::uint32_t>(getDataTypeSize(code_type_));
  job.codes = run.inputs[0];
  if (lists) {
    job.outlier_values = run.inputs[1];
    job.outlier_indices = run.inputs[2];
  }
  job.output = run.outputs[0];
  job.record = run.record;
  job.form = rel                   ? (getStageVersion() < 2 ? DecodeForm::kRelV1 : DecodeForm::kRel)
             : inplace_            ? DecodeForm::kInplace
             : zigzag_ && !linear_ ? DecodeForm::kZigzag
                                   : DecodeForm::kTwosComplement;
  job.has_lists = lists;
  job.exact_lists = run.inputs.size() == 3;
  job.radius = radius_;
  if (rel) {
    job.log_step = value_type_ == DataType::FLOAT32 ? relLogStep<float>(error_bound_)
                                                    : relLogStep<double>(error_bound_);
    job.log_step_v1 = logStepV1(error_bound_);
  }
  return job;
}

void QuantizerBase::decodeCuda(const CudaRun& run) {
  const DecodeJob job = beginDecodeCuda(run);
  device::launchDecode(job, run.stream);
  if (job.has_lists) {
    device::launchScatter(job, run);
  }
}

}  // namespace fz::quantizer
