// Linear and in-place codes in a fused group: what the op must know.
#include <cuda_runtime_api.h>

#include "backends/cuda/padding.h"
#include "core/require.h"
#include "cuda_check.h"
#include "quantizers/quantizer/cuda/op/args.h"
#include "quantizers/quantizer/cuda/stage.h"

namespace fz::quantizer {

template <class T>
void CudaSide::beginFlatEncode(const cuda::Call& call, const GroupRun& group, GroupArgs& args) {
  stage_.requireValidCombination();
  const CudaInput& input = call.inputs[0];
  stage_.n_values_ = stage_.checkedValues(input.size.n_bytes, call.outputs[0].capacity_bytes);
  stage_.stored_version_ = 0;
  FlatArgs<T> flat = {};
  flat.record = call.record;
  flat.wrap = stage_.linear_ && stage_.policy_ == LinearPolicy::Wrap;
  flat.is_ladder = stage_.isLadder();
  flat.is_conditional = group.all_passes;
  flat.rung = group.pass;
  flat.radius = stage_.radius_;
  // The state comes back clean from every kernel; only new memory must be cleared.
  const std::size_t state_bytes =
      device::kStateBytes + device::kMaxRangeBlocks * sizeof(device::RangePart);
  static_assert(sizeof(EncodeState<T>) <= device::kStateBytes);
  std::uint8_t* work = group_state_.get<std::uint8_t>(call.pool, state_bytes).data();
  flat.state = reinterpret_cast<EncodeState<T>*>(work);
  if (!has_group_state_) {
    FZ_CUDA_CHECK(cudaMemsetAsync(work, 0, device::kStateBytes, call.stream));
    has_group_state_ = true;
  }
  const bool noa = stage_.mode_ == ErrorBoundMode::NOA;
  flat.has_rule = !noa || stage_.value_base_ > 0.0;
  if (flat.has_rule) {
    flat.range = noa ? stage_.value_base_ : 0.0;
    const BinSettings settings = state_.binSettings(flat.range, group.pass);
    flat.absolute = settings.bound;
    flat.in_use = settings.bound_in_use;
    flat.rule = makeBinRule<T>(settings);
  } else if (group.pass == 0 || !group.all_passes) {
    device::EncodeJob job{};
    job.value_bytes = sizeof(T);
    job.code_bytes = stage_.codeBits() / 8;
    job.input = input;
    job.codes = call.outputs[0];
    job.record = call.record;
    job.state = work;
    job.parts = reinterpret_cast<device::RangePart*>(work + device::kStateBytes);
    prepareEncode(job, call);
  }
  cuda::clearPadding(flat);
  args.add(flat);
}

template <class T>
void CudaSide::beginFlatDecode(const cuda::Call& call, GroupArgs& args) const {
  const std::size_t coded_bytes = call.inputs[0].size.n_bytes;
  const std::size_t n_bytes = stage_.decodedBytes({&coded_bytes, 1});
  FZ_REQUIRE(call.outputs[0].capacity_bytes >= n_bytes, ErrorCode::kBufferTooSmall,
             "Quantizer: the values need {} bytes, got {}", n_bytes,
             call.outputs[0].capacity_bytes);
  FlatArgs<T> flat = {};
  flat.record = call.record;
  flat.radius = stage_.radius_;
  flat.publishes = !call.outputs[0].size_known;
  flat.capacity_bytes = call.outputs[0].capacity_bytes;
  cuda::clearPadding(flat);
  args.add(flat);
}

void CudaSide::beginFlatGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) {
  const bool is_float = isFloat();
  if (stage_.isInverse()) {
    is_float ? beginFlatDecode<float>(call, args) : beginFlatDecode<double>(call, args);
  } else {
    is_float ? beginFlatEncode<float>(call, group, args)
             : beginFlatEncode<double>(call, group, args);
  }
}

}  // namespace fz::quantizer
