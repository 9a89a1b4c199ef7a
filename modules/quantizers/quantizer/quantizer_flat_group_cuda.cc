// Linear and in-place codes in a fused group: what the op must know.
#include <limits>

#include <cuda_runtime_api.h>

#include "core/require.h"
#include "cuda_check.h"
#include "quantizers/quantizer/quantizer.h"
#include "quantizers/quantizer/quantizer_cuda.h"
#include "quantizers/quantizer/quantizer_op.h"

namespace fz::quantizer {

template <class T>
void QuantizerBase::beginFlatEncode(const CudaRun& run, const GroupRun& group, GroupArgs& args) {
  requireValidCombination();
  const CudaInput& input = run.inputs[0];
  n_values_ = checkedValues(input.size.n_bytes, run.outputs[0].capacity_bytes);
  stored_version_ = 0;
  constexpr bool kIsFloat = sizeof(T) == 4;
  FlatArgs<T> flat = {};
  flat.record = run.record;
  flat.wrap = linear_ && policy_ == LinearPolicy::Wrap;
  flat.is_ladder = isLadder();
  flat.is_conditional = group.all_passes;
  flat.rung = group.pass;
  flat.radius = radius_;
  // The state comes back clean from every kernel; only new memory must be cleared.
  const std::size_t state_bytes =
      device::kStateBytes + device::kMaxRangeBlocks * sizeof(device::RangePart);
  static_assert(sizeof(EncodeState<T>) <= device::kStateBytes);
  std::uint8_t* work = group_state_.get<std::uint8_t>(run.pool, state_bytes).data();
  flat.state = reinterpret_cast<EncodeState<T>*>(work);
  if (!has_group_state_) {
    FZ_CUDA_CHECK(cudaMemsetAsync(work, 0, device::kStateBytes, run.stream));
    has_group_state_ = true;
  }
  const bool noa = mode_ == ErrorBoundMode::NOA;
  const double threshold = linear_ ? std::numeric_limits<double>::infinity() : threshold_;
  flat.has_rule = !noa || value_base_ > 0.0;
  if (flat.has_rule) {
    flat.range = noa ? value_base_ : 0.0;
    flat.absolute = absoluteBound(error_bound_, flat.range, kIsFloat);
    flat.in_use = boundOfRung(flat.absolute, isLadder(), group.pass, kIsFloat);
    flat.rule =
        makeBinRule<T>({flat.in_use, flat.absolute, threshold, radius_, codeForm(), codeBits()});
  } else if (group.pass == 0 || !group.all_passes) {
    device::EncodeJob job{};
    job.value_bytes = sizeof(T);
    job.code_bytes = codeBits() / 8;
    job.input = input;
    job.codes = run.outputs[0];
    job.record = run.record;
    job.state = work;
    job.parts = reinterpret_cast<device::RangePart*>(work + device::kStateBytes);
    const unsigned n_parts = device::rangeBlocks(input.size.n_bytes);
    device::launchRange(job, n_parts, run.stream);
    device::launchPrepare(
        job, {error_bound_, value_base_, threshold, radius_, codeForm(), false, true, isLadder()},
        n_parts, run.stream);
  }
  args.add(flat);
}

template <class T>
void QuantizerBase::beginFlatDecode(const CudaRun& run, GroupArgs& args) {
  const std::size_t coded_bytes = run.inputs[0].size.n_bytes;
  const std::size_t n_bytes = decodedBytes({&coded_bytes, 1});
  FZ_REQUIRE(run.outputs[0].capacity_bytes >= n_bytes, ErrorCode::kBufferTooSmall,
             "Quantizer: {} bytes needed for the values, {} came", n_bytes,
             run.outputs[0].capacity_bytes);
  FlatArgs<T> flat = {};
  flat.record = run.record;
  flat.radius = radius_;
  flat.publishes = !run.outputs[0].size_known;
  flat.capacity_bytes = run.outputs[0].capacity_bytes;
  args.add(flat);
}

void QuantizerBase::beginFlatGroup(const CudaRun& run, const GroupRun& group, GroupArgs& args) {
  const bool is_float = value_type_ == DataType::FLOAT32;
  if (isInverse()) {
    is_float ? beginFlatDecode<float>(run, args) : beginFlatDecode<double>(run, args);
  } else {
    is_float ? beginFlatEncode<float>(run, group, args) : beginFlatEncode<double>(run, group, args);
  }
}

}  // namespace fz::quantizer
