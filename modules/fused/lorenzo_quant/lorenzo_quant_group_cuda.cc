// LorenzoQuant's part in fused groups on a device: where it takes part, and with which code.
#include <fmt/format.h>
#include <utility>

#include "fused/lorenzo_quant/lorenzo_quant_cuda_impl.h"
#include "fused/lorenzo_quant/lorenzo_quant_decode.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_entries.cuh"
#include "fused/lorenzo_quant/lorenzo_quant_group_decode_cuda.h"
#include "fused/lorenzo_quant/lorenzo_quant_op.h"

namespace fz {

namespace {

namespace device = lorenzo_quant::device;

/// Why an encoder of a grid is quicker stage by stage; null where a group is. All are right in a
/// group: what decides is measured (docs/performance.md).
const char* whyEncodedStaged(std::size_t value_bytes, int ndim, std::size_t nx) {
  if (ndim == 2 && (value_bytes == 4 || nx % 2 == 0)) {
    return nullptr;
  }
  if (ndim == 2) {
    return "reads the rows above again, which for doubles in rows of an odd length takes longer "
           "than stage by stage";
  }
  if (value_bytes == 4) {
    return nx % 8 == 0 ? nullptr
                       : "reads the rows above and behind again, which takes longer than stage by "
                         "stage where rows are no multiple of 8 values";
  }
  const bool has_short_rows = nx != 0 && nx % 128 == 0 && 2048 % nx == 0 && nx <= 1024;
  return has_short_rows ? nullptr
                        : "reads the rows above and behind again, which for doubles takes longer "
                          "than stage by stage unless rows have 128, 256, 512 or 1024 values";
}

bool isGrid(const LorenzoQuantConfig& config) {
  return config.dim_y > 1 || config.dim_z > 1;
}

}  // namespace

template <class TInput, class TCode>
TileOp LorenzoQuantStage<TInput, TCode>::cudaTileOp() const {
  if (!isInverse()) {
    const char* why =
        ndim() > 1 ? whyEncodedStaged(sizeof(TInput), ndim(), dims_.get()[0]) : nullptr;
    if (why != nullptr) {
      return NoOp{why};
    }
    return RowsOp{.reach = RowsReach::kLines, .variant = static_cast<std::uint64_t>(ndim())};
  }
  if (!config_.has_value()) {
    return NoOp{"has no config to decode with"};
  }
  if (isGrid(*config_)) {
    if (sizeof(TCode) != 2) {
      return NoOp{"sums down the rows of tiles, for which it takes codes of 16 bits only"};
    }
    return RowsOp{.reach = RowsReach::kRuns, .variant = static_cast<std::uint64_t>(config_->ndim)};
  }
  if (sizeof(TCode) > 2) {
    return NoOp{"a tile of 32-bit codes is more than a warp has at a time"};
  }
  return RowsOp{
      .unit_values = lorenzo_quant::kMaxTileValues, .reach = RowsReach::kLines, .variant = 1};
}

template <class TInput, class TCode>
std::string LorenzoQuantStage<TInput, TCode>::tileOpType() const {
  const char* input = sizeof(TInput) == 4 ? "float" : "double";
  const int code_bits = 8 * sizeof(TCode);
  if (!isInverse() && ndim() > 1) {
    return fmt::format("fz::lorenzo_quant::LorenzoQuantGridOp<{}, std::uint{}_t, {}>", input,
                       code_bits, ndim());
  }
  if (isInverse() && config_.has_value() && isGrid(*config_)) {
    return fmt::format("fz::lorenzo_quant::LorenzoQuantGridDecodeOp<{}, std::uint{}_t, {}>", input,
                       code_bits, config_->ndim);
  }
  return fmt::format("fz::lorenzo_quant::LorenzoQuantOp<{}, std::uint{}_t>", input, code_bits);
}

template <class TInput, class TCode>
std::string LorenzoQuantStage<TInput, TCode>::tileOpHeader() const {
  if (!isInverse() && ndim() > 1) {
    return "fused/lorenzo_quant/lorenzo_quant_grid_op.cuh";
  }
  if (isInverse() && config_.has_value() && isGrid(*config_)) {
    return "fused/lorenzo_quant/lorenzo_quant_grid_decode.cuh";
  }
  return "fused/lorenzo_quant/lorenzo_quant_op.cuh";
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::beginGroupCuda(const CudaRun& run,
                                                      const GroupRun& /*group*/,
                                                      GroupArgs& args) {
  lorenzo_quant::LorenzoQuantArgs own{};
  if (isInverse()) {
    const CudaDecoding decoding = cudaDecoding(run, DecodeWay::kGroupBegins);
    own.decode = decoding.run;
    device::launchGroupBegin<TInput>(own.decode, sizeof(TCode), decoding.entry_limit,
                                     run.mayWrite(), run.stream);
  } else {
    const CudaEncoding encoding = cudaEncoding(run);
    own.encode = encoding.run;
    own.encode.n_clear = encoding.limit.n_segments;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    FZ_CUDA_CHECK(cudaStreamIsCapturing(run.stream, &capture));
    was_captured_ = was_captured_ || capture != cudaStreamCaptureStatusNone;
    // Taken away meanwhile: a run that breaks off leaves nobody knows what.
    const std::optional<PlanKey> left = std::exchange(left_plan_, std::nullopt);
    if (!left.has_value() || left != planKey(encoding, run.pool)) {
      device::clearPlan<TInput>(own.encode, run.stream);
      device::launchEncodeSetup<TInput>(own.encode, sizeof(TCode), run.stream);
    }
  }
  args.add(own);
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::endGroupCuda(const CudaRun& run, const GroupRun& /*group*/) {
  if (isInverse()) {
    const CudaDecoding decoding = cudaDecoding(run, DecodeWay::kGroupEnds);
    if (decoding.entry_limit != 0) {
      device::launchGroupEnd<TInput>(decoding.run, decoding.entry_limit, decoding.n_blocks_done,
                                     run);
    }
    group_memory_.noteZero();
  } else {
    CudaEncoding encoding = cudaEncoding(run);
    const std::optional<PlanKey> key = planKey(encoding, run.pool);
    encoding.run.n_clear = key.has_value() ? encoding.limit.n_segments : 0;
    device::launchEntries<TInput>(encoding.run, encoding.limit, run.stream);
    left_plan_ = key;
  }
}

template <class TInput, class TCode>
auto LorenzoQuantStage<TInput, TCode>::planKey(const CudaEncoding& encoding,
                                               const MemoryPool* pool) const
    -> std::optional<PlanKey> {
  const device::EncodeRun& run = encoding.run;
  // Blocks that leave zeros count themselves, which takes many of them as long as the setup.
  const bool is_kept =
      !was_captured_ && run.n_chunks != 0 && run.n_chunks <= device::kMostKeptChunks;
  if (!is_kept || run.scans_range || run.publishes_codes || !run.size.isExact()) {
    return std::nullopt;
  }
  return PlanKey{.pool = pool,
                 .plan = run.plan,
                 .flags = run.flags,
                 .n_bytes = run.size.n_bytes,
                 .codes_capacity = run.codes_capacity,
                 .dims = {run.dims.x, run.dims.y, run.dims.z},
                 .ndim = run.dims.ndim,
                 .bound = run.bound,
                 .base = run.base};
}

#define FZ_LORENZO_QUANT_GROUP(TInput, TCode)                                                     \
  template TileOp LorenzoQuantStage<TInput, TCode>::cudaTileOp() const;                           \
  template std::string LorenzoQuantStage<TInput, TCode>::tileOpType() const;                      \
  template std::string LorenzoQuantStage<TInput, TCode>::tileOpHeader() const;                    \
  template void LorenzoQuantStage<TInput, TCode>::beginGroupCuda(const CudaRun&, const GroupRun&, \
                                                                 GroupArgs&);                     \
  template std::optional<LorenzoQuantStage<TInput, TCode>::PlanKey>                               \
  LorenzoQuantStage<TInput, TCode>::planKey(const CudaEncoding&, const MemoryPool*) const;        \
  template void LorenzoQuantStage<TInput, TCode>::endGroupCuda(const CudaRun&, const GroupRun&)
FZ_LORENZO_QUANT_GROUP(float, std::uint16_t);
FZ_LORENZO_QUANT_GROUP(float, std::uint8_t);
FZ_LORENZO_QUANT_GROUP(double, std::uint16_t);
FZ_LORENZO_QUANT_GROUP(double, std::uint32_t);
#undef FZ_LORENZO_QUANT_GROUP

}  // namespace fz
