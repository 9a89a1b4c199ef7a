#include "fused/lorenzo_quant/lorenzo_quant_cuda.h"

#include <algorithm>

#include <cuda_runtime_api.h>

#include "core/require.h"
#include "cuda_check.h"
#include "fused/lorenzo_quant/lorenzo_quant.h"
#include "fused/lorenzo_quant/lorenzo_quant_config_impl.h"
#include "fused/lorenzo_quant/lorenzo_quant_cuda_impl.h"
#include "fused/lorenzo_quant/lorenzo_quant_decode.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_entries.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_op.h"

namespace fz {

namespace {

namespace device = lorenzo_quant::device;
using lorenzo_quant::kName;

device::Dims dimsOf(const StageDims& dims) {
  const auto& extents = dims.get();
  return {extents[0], extents[1], extents[2], dims.ndim()};
}

/// The largest grid that n_limit values can have.
lorenzo_quant::Grid gridLimit(const device::Dims& dims, std::uint64_t n_limit) {
  const std::uint64_t nx = dims.x == 0 ? n_limit / (dims.y * dims.z) : dims.x;
  return {nx, dims.y, dims.z, dims.ndim};
}

std::size_t roundUp(std::size_t n_bytes) {
  return bits::roundUp<std::size_t>(n_bytes, 256);
}

}  // namespace

template <class TInput, class TCode>
bool LorenzoQuantStage<TInput, TCode>::hasCuda() const {
  return true;
}

template <class TInput, class TCode>
auto LorenzoQuantStage<TInput, TCode>::cudaEncoding(const CudaRun& run) -> CudaEncoding {
  const CudaInput& input = run.inputs[0];
  const LorenzoQuantConfig config = configFromSettings();
  if (input.size.isExact()) {
    dims_.resolve(checkedCount(input.size.n_bytes), kName);
  }
  const device::Dims dims = dimsOf(dims_);
  const std::uint64_t n_limit =
      std::min<std::uint64_t>(input.size.n_bytes / sizeof(TInput), lorenzo_quant::kMaxValues);
  lorenzo_quant::Grid grid = gridLimit(dims, n_limit);
  if (grid.nx > n_limit / (grid.ny * grid.nz)) {
    grid = {0, 1, 1, dims.ndim};  // no input of such a size fits: the device will say so
  }
  const device::Layout limit = device::makeLayout<TInput>(grid);
  const std::size_t n_chunks = bits::ceilDiv<std::size_t>(limit.n_segments, device::kChunkSegments);
  const std::size_t plan_bytes =
      roundUp(sizeof(device::EncodePlan<TInput>) + sizeof(std::uint64_t));  // and blocksDone()
  const std::size_t counts_bytes = roundUp(n_chunks * sizeof(std::uint32_t));
  const auto plan = device_plan_.get<std::uint8_t>(
      run.pool, plan_bytes + counts_bytes + n_chunks * sizeof(device::EntryPlace));
  const auto flags = device_flags_.get<std::uint32_t>(run.pool, limit.n_segments);
  const bool is_relative = mode_ != ErrorBoundMode::ABS;
  const bool scans_range = is_relative && value_base_ == 0.0;
  const lorenzo_quant::ResolvedBound known =
      is_relative ? lorenzo_quant::resolveBound(error_bound_, value_base_)
                  : lorenzo_quant::ResolvedBound{config.abs_error_bound, config.value_base};
  return {
      {.in = input.data,
       .size = input.size,
       .dims = dims,
       .scans_range = scans_range,
       .is_noa = mode_ == ErrorBoundMode::NOA,
       .bound = known.bound,
       .base = known.base,
       .error_bound = error_bound_,
       .radius = quant_radius_,
       .zigzag = zigzag_codes_,
       .publishes_codes = !run.outputs[0].size_known,
       .codes = run.outputs[0].data,
       .codes_capacity = run.outputs[0].capacity_bytes,
       .values = run.outputs[1].data,
       .values_capacity = run.outputs[1].capacity_bytes,
       .indices = reinterpret_cast<std::uint32_t*>(run.outputs[2].data),
       .indices_capacity = run.outputs[2].capacity_bytes,
       .record = run.record,
       .plan = plan.data(),
       .flags = flags.data(),
       .n_clear = 0,
       .n_chunks = n_chunks,
       .counts = reinterpret_cast<std::uint32_t*>(plan.data() + plan_bytes),
       .firsts = reinterpret_cast<device::EntryPlace*>(plan.data() + plan_bytes + counts_bytes)},
      limit};
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::encodeCuda(const CudaRun& run) {
  left_plan_.reset();
  const CudaEncoding encoding = cudaEncoding(run);
  device::clearPlan<TInput>(encoding.run, run.stream);
  device::launchEncode<TInput, TCode>(encoding.run, encoding.limit, run.stream);
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::finishEncodeCuda(const StageRecord& record) {
  LorenzoQuantConfig config = configFromSettings();
  const auto low32 = [&](unsigned slot) { return static_cast<std::uint32_t>(record.value[slot]); };
  config.num_elements = low32(device::kCountSlot);
  config.outlier_count = low32(device::kRangeSlot);
  config.abs_error_bound = fp::bitCast<float>(low32(device::kBoundSlot));
  config.value_base = fp::bitCast<float>(low32(device::kBaseSlot));
  config_ = config;
  setStageVersion(static_cast<std::uint16_t>(record.value[device::kVersionSlot]));
}

template <class TInput, class TCode>
auto LorenzoQuantStage<TInput, TCode>::cudaDecoding(const CudaRun& run, DecodeWay way)
    -> CudaDecoding {
  FZ_REQUIRE(run.inputs.size() >= 3, ErrorCode::kCorrupt, "{}: 3 or 4 parts needed, {} came", kName,
             run.inputs.size());
  FZ_REQUIRE(config_.has_value(), ErrorCode::kInvalidState, "{}: nothing to decode: no config",
             kName);
  std::array<std::size_t, 4> sizes = {};
  const std::size_t n_parts = std::min(run.inputs.size(), sizes.size());
  bool all_exact = true;
  for (std::size_t i = 0; i < n_parts; ++i) {
    sizes[i] = run.inputs[i].size.n_bytes;
    all_exact = all_exact && run.inputs[i].size.isExact();
  }
  if (all_exact) {  // the device checks the same, with a message that says less
    static_cast<void>(decodedBytes(std::span(sizes).first(n_parts)));
  }
  StageDims dims;
  dims.setOwn({config_->dim_x, config_->dim_y, config_->dim_z});
  LorenzoQuantConfig largest = *config_;
  largest.num_elements =
      static_cast<std::uint32_t>(std::min(sizes[0] / sizeof(TCode), lorenzo_quant::kMaxValues));
  const device::Layout limit = device::makeLayout<TInput>(lorenzo_quant::gridOfStream(largest));
  const std::size_t entry_limit =
      std::min(sizes[1] / sizeof(TInput), sizes[2] / sizeof(std::uint32_t));
  // Segments, and values beyond the layout: any share of them may be.
  const std::size_t n_words =
      limit.n_segments * device::kLaneValues<TInput> + largest.num_elements / 32 + 1;
  const std::size_t n_mark_words = entry_limit == 0 ? 0 : bits::roundUp<std::size_t>(n_words, 4);
  constexpr std::size_t kPlanBytes = 256;
  constexpr std::size_t kCounterPlace = kPlanBytes - sizeof(std::uint64_t);
  static_assert(sizeof(device::DecodePlan<TInput>) <= kCounterPlace);
  std::uint8_t* plan = nullptr;
  std::uint32_t* marks = nullptr;
  if (way == DecodeWay::kAlone) {
    plan = device_plan_.get<std::uint8_t>(run.pool, kPlanBytes).data();
    marks = n_mark_words == 0 ? nullptr
                              : device_flags_.get<std::uint32_t>(run.pool, n_mark_words).data();
  } else {
    const std::size_t n_bytes = kPlanBytes + n_mark_words * sizeof(std::uint32_t);
    plan = way == DecodeWay::kGroupBegins ? group_memory_.get(run, n_bytes) : group_memory_.data();
    marks = n_mark_words == 0 ? nullptr : reinterpret_cast<std::uint32_t*>(plan + kPlanBytes);
  }
  return {{.codes = run.inputs[0].data,
           .codes_size = run.inputs[0].size,
           .values = run.inputs[1].data,
           .values_size = run.inputs[1].size,
           .indices = reinterpret_cast<const std::uint32_t*>(run.inputs[2].data),
           .indices_size = run.inputs[2].size,
           .dims = dimsOf(dims),
           .zigzag = config_->zigzag_codes != 0,
           .out = run.outputs[0].data,
           .out_capacity = run.outputs[0].capacity_bytes,
           .publishes_out = !run.outputs[0].size_known,
           .record = run.record,
           .plan = plan,
           .marks = marks,
           .n_mark_words = n_mark_words},
          limit,
          entry_limit,
          reinterpret_cast<std::uint64_t*>(plan + kCounterPlace)};
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::decodeCuda(const CudaRun& run) {
  left_plan_.reset();  // where the plan of a decode goes
  const CudaDecoding decoding = cudaDecoding(run, DecodeWay::kAlone);
  device::launchDecode<TInput, TCode>(decoding.run, decoding.limit, decoding.entry_limit,
                                      run.stream);
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::throwDeviceError(const StageRecord& record) const {
  if (!isInverse()) {
    detail::throwError(
        ErrorCode::kBadSize,
        fmt::format("{}: the dims do not hold the input of {} bytes", kName, record.error_index));
  }
  const bool has_entry = record.error_index != ~std::uint64_t{0};
  detail::throwError(
      ErrorCode::kCorrupt,
      has_entry ? fmt::format("{}: list entry {} is beyond the values, out of order or the second "
                              "of its index ({} such entries)",
                              kName, record.error_index, record.error_count)
                : fmt::format("{}: the parts do not have the sizes of the config", kName));
}

#define FZ_LORENZO_QUANT_CUDA(TInput, TCode)                                            \
  template bool LorenzoQuantStage<TInput, TCode>::hasCuda() const;                      \
  template LorenzoQuantStage<TInput, TCode>::CudaEncoding                               \
  LorenzoQuantStage<TInput, TCode>::cudaEncoding(const CudaRun&);                       \
  template LorenzoQuantStage<TInput, TCode>::CudaDecoding                               \
  LorenzoQuantStage<TInput, TCode>::cudaDecoding(const CudaRun&, DecodeWay);            \
  template void LorenzoQuantStage<TInput, TCode>::encodeCuda(const CudaRun&);           \
  template void LorenzoQuantStage<TInput, TCode>::decodeCuda(const CudaRun&);           \
  template void LorenzoQuantStage<TInput, TCode>::finishEncodeCuda(const StageRecord&); \
  template void LorenzoQuantStage<TInput, TCode>::throwDeviceError(const StageRecord&) const
FZ_LORENZO_QUANT_CUDA(float, std::uint16_t);
FZ_LORENZO_QUANT_CUDA(float, std::uint8_t);
FZ_LORENZO_QUANT_CUDA(double, std::uint16_t);
FZ_LORENZO_QUANT_CUDA(double, std::uint32_t);
#undef FZ_LORENZO_QUANT_CUDA

}  // namespace fz
