// LorenzoQuant on a device: alone, and as the first stage of a fused group.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <cuda_runtime_api.h>

#include "backends/cuda/zeroed_scratch.h"
#include "core/require.h"
#include "cuda_check.h"
#include "fused/lorenzo_quant/config.h"
#include "fused/lorenzo_quant/cuda/kernels.h"
#include "fused/lorenzo_quant/cuda/policy.h"
#include "fused/lorenzo_quant/lorenzo_quant.h"

namespace fz::lorenzo_quant {

namespace {

device::Dims dimsOf(const StageDims& dims) {
  const auto& extents = dims.get();
  return {extents[0], extents[1], extents[2], dims.ndim()};
}

/// The largest grid that n_limit values can have.
Grid gridLimit(const device::Dims& dims, std::uint64_t n_limit) {
  const std::uint64_t nx = dims.x == 0 ? n_limit / (dims.y * dims.z) : dims.x;
  return {nx, dims.y, dims.z, dims.ndim};
}

bool isGrid(const LorenzoQuantConfig& config) {
  return config.dim_y > 1 || config.dim_z > 1;
}

std::size_t roundUp(std::size_t n_bytes) {
  return bits::roundUp<std::size_t>(n_bytes, 256);
}

/// Extremes are gathered in the plan.
template <class T>
void clearPlan(const device::EncodeRun& run, const cuda::Call& call) {
  if (run.scans_range) {
    FZ_CUDA_CHECK(cudaMemsetAsync(run.plan, 0, sizeof(device::EncodePlan<T>), call.stream));
  }
}

}  // namespace

template <class TInput, class TCode>
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(LorenzoQuantStage<TInput, TCode>& stage) : stage_(stage) {}

  /// With all axes; otherwise the stage runs on the host.
  bool hasKernels() const override { return stage_.axes_.leftOut(stage_.ndim()) == 0; }
  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  /// Bound, base and counts: all of them may follow from the data.
  std::vector<DeviceField> fields() const override {
    return {{0, 4, device::kBoundSlot},
            {8, 4, device::kCountSlot},
            {12, 4, device::kRangeSlot},
            {36, 4, device::kBaseSlot},
            {DeviceField::kStageVersion, 2, device::kVersionSlot},
            {DeviceField::kAbsoluteBound, 8, device::kAbsoluteSlot}};
  }
  bool readsUnaligned(std::size_t input) const override { return stage_.isInverse() && input > 0; }
  TileOp tileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override;
  void beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) override;
  void endGroup(const cuda::Call& call, const GroupRun& group) override;
  bool endsRuns() const override { return stage_.isInverse() && hasKernels(); }

 private:
  /// A run, and what limits its launches.
  struct Encoding {
    device::EncodeRun run;
    device::Layout limit;
  };
  struct Decoding {
    device::DecodeRun run;
    device::Layout limit;
    std::size_t entry_limit;
    std::uint64_t* n_blocks_done;  ///< in a group
  };
  /// In a group marks are found at 0 and left so, and the plan's flags with them.
  enum class DecodeWay { kAlone, kGroupBegins, kGroupEnds };
  /// What the plan of an encode follows from, and where it stands.
  struct PlanKey {
    const MemoryPool* pool = nullptr;
    const void* plan = nullptr;
    const void* flags = nullptr;
    std::uint64_t n_bytes = 0;
    std::uint64_t codes_capacity = 0;
    std::array<std::size_t, 3> dims = {};
    int ndim = 1;
    float bound = 0.0f;
    float base = 0.0f;
    bool operator==(const PlanKey&) const = default;
  };

  /// These take working memory.
  Encoding encoding(const cuda::Call& call);
  Decoding decoding(const cuda::Call& call, DecodeWay way);
  /// Where the host knows all of it.
  std::optional<PlanKey> planKey(const Encoding& encoding, const MemoryPool* pool) const;
  bool decodesGrid() const { return stage_.config_.has_value() && isGrid(*stage_.config_); }

  LorenzoQuantStage<TInput, TCode>& stage_;
  Scratch plan_memory_;
  Scratch flag_memory_;
  ZeroedScratch group_memory_;  // of a decode in a group: counter, plan and marks
  /// What the last run in a group has left on the device, flags and counts at 0 with it.
  std::optional<PlanKey> left_plan_;
  bool was_captured_ = false;  // a graph may leave another one at any time
};

template <class TInput, class TCode>
auto CudaSide<TInput, TCode>::encoding(const cuda::Call& call) -> Encoding {
  const CudaInput& input = call.inputs[0];
  const LorenzoQuantConfig config = stage_.configFromSettings();
  if (input.size.isExact()) {
    stage_.dims_.resolve(stage_.checkedCount(input.size.n_bytes), kName);
  }
  const device::Dims dims = dimsOf(stage_.dims_);
  const std::uint64_t n_limit =
      std::min<std::uint64_t>(input.size.n_bytes / sizeof(TInput), kMaxValues);
  Grid grid = gridLimit(dims, n_limit);
  if (grid.nx > n_limit / (grid.ny * grid.nz)) {
    grid = {0, 1, 1, dims.ndim};  // no input of such a size fits: the device will say so
  }
  const device::Layout limit = device::makeLayout<TInput>(grid);
  const std::size_t n_chunks = bits::ceilDiv<std::size_t>(limit.n_segments, device::kChunkSegments);
  const std::size_t plan_bytes =
      roundUp(sizeof(device::EncodePlan<TInput>) + sizeof(std::uint64_t));  // and blocksDone()
  const std::size_t counts_bytes = roundUp(n_chunks * sizeof(std::uint32_t));
  const auto plan = plan_memory_.get<std::uint8_t>(
      call.pool, plan_bytes + counts_bytes + n_chunks * sizeof(device::EntryPlace));
  const auto flags = flag_memory_.get<std::uint32_t>(call.pool, limit.n_segments);
  const bool is_relative = stage_.mode_ != ErrorBoundMode::ABS;
  const bool scans_range = is_relative && stage_.value_base_ == 0.0;
  const ResolvedBound known = is_relative
                                  ? resolveBound(stage_.error_bound_, stage_.value_base_)
                                  : ResolvedBound{config.abs_error_bound, config.value_base};
  return {
      {.in = input.data,
       .size = input.size,
       .dims = dims,
       .scans_range = scans_range,
       .is_noa = stage_.mode_ == ErrorBoundMode::NOA,
       .bound = known.bound,
       .base = known.base,
       .error_bound = stage_.error_bound_,
       .radius = stage_.quant_radius_,
       .zigzag = stage_.zigzag_codes_,
       .publishes_codes = !call.outputs[0].size_known,
       .codes = call.outputs[0].data,
       .codes_capacity = call.outputs[0].capacity_bytes,
       .values = call.outputs[1].data,
       .values_capacity = call.outputs[1].capacity_bytes,
       .indices = reinterpret_cast<std::uint32_t*>(call.outputs[2].data),
       .indices_capacity = call.outputs[2].capacity_bytes,
       .record = call.record,
       .plan = plan.data(),
       .flags = flags.data(),
       .n_clear = 0,
       .n_chunks = n_chunks,
       .counts = reinterpret_cast<std::uint32_t*>(plan.data() + plan_bytes),
       .firsts = reinterpret_cast<device::EntryPlace*>(plan.data() + plan_bytes + counts_bytes)},
      limit};
}

template <class TInput, class TCode>
void CudaSide<TInput, TCode>::encode(const cuda::Call& call) {
  left_plan_.reset();
  const Encoding own = encoding(call);
  clearPlan<TInput>(own.run, call);
  device::launchEncode<TInput, TCode>(own.run, own.limit, call);
}

template <class TInput, class TCode>
void CudaSide<TInput, TCode>::finishEncode(const StageRecord& record) {
  if (!hasKernels()) {
    return;  // the host has all of it
  }
  LorenzoQuantConfig config = stage_.configFromSettings();
  const auto low32 = [&](unsigned slot) { return static_cast<std::uint32_t>(record.value[slot]); };
  config.num_elements = low32(device::kCountSlot);
  config.outlier_count = low32(device::kRangeSlot);
  config.abs_error_bound = fp::bitCast<float>(low32(device::kBoundSlot));
  config.value_base = fp::bitCast<float>(low32(device::kBaseSlot));
  stage_.config_ = config;
  stage_.setStageVersion(static_cast<std::uint16_t>(record.value[device::kVersionSlot]));
}

template <class TInput, class TCode>
auto CudaSide<TInput, TCode>::decoding(const cuda::Call& call, DecodeWay way) -> Decoding {
  FZ_REQUIRE(call.inputs.size() >= 3, ErrorCode::kCorrupt, "{}: expected 3 or 4 parts, got {}",
             kName, call.inputs.size());
  FZ_REQUIRE(stage_.config_.has_value(), ErrorCode::kInvalidState,
             "{}: cannot decode without a config", kName);
  std::array<std::size_t, 4> sizes = {};
  const std::size_t n_parts = std::min(call.inputs.size(), sizes.size());
  bool all_exact = true;
  for (std::size_t i = 0; i < n_parts; ++i) {
    sizes[i] = call.inputs[i].size.n_bytes;
    all_exact = all_exact && call.inputs[i].size.isExact();
  }
  if (all_exact) {  // the device checks the same, with a message that says less
    static_cast<void>(stage_.decodedBytes(std::span(sizes).first(n_parts)));
  }
  StageDims dims;
  dims.setOwn({stage_.config_->dim_x, stage_.config_->dim_y, stage_.config_->dim_z});
  LorenzoQuantConfig largest = *stage_.config_;
  largest.num_elements = static_cast<std::uint32_t>(std::min(sizes[0] / sizeof(TCode), kMaxValues));
  const device::Layout limit = device::makeLayout<TInput>(gridOfStream(largest));
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
    plan = plan_memory_.get<std::uint8_t>(call.pool, kPlanBytes).data();
    marks = n_mark_words == 0 ? nullptr
                              : flag_memory_.get<std::uint32_t>(call.pool, n_mark_words).data();
  } else {
    const std::size_t n_bytes = kPlanBytes + n_mark_words * sizeof(std::uint32_t);
    plan = way == DecodeWay::kGroupBegins ? group_memory_.get(call, n_bytes) : group_memory_.data();
    marks = n_mark_words == 0 ? nullptr : reinterpret_cast<std::uint32_t*>(plan + kPlanBytes);
  }
  return {{.codes = call.inputs[0].data,
           .codes_size = call.inputs[0].size,
           .values = call.inputs[1].data,
           .values_size = call.inputs[1].size,
           .indices = reinterpret_cast<const std::uint32_t*>(call.inputs[2].data),
           .indices_size = call.inputs[2].size,
           .dims = dimsOf(dims),
           .zigzag = stage_.config_->zigzag_codes != 0,
           .out = call.outputs[0].data,
           .out_capacity = call.outputs[0].capacity_bytes,
           .publishes_out = !call.outputs[0].size_known,
           .record = call.record,
           .plan = plan,
           .marks = marks,
           .n_mark_words = n_mark_words},
          limit,
          entry_limit,
          reinterpret_cast<std::uint64_t*>(plan + kCounterPlace)};
}

template <class TInput, class TCode>
void CudaSide<TInput, TCode>::decode(const cuda::Call& call) {
  left_plan_.reset();  // where the plan of a decode goes
  const Decoding own = decoding(call, DecodeWay::kAlone);
  device::launchDecode<TInput, TCode>(own.run, own.limit, own.entry_limit, call);
}

template <class TInput, class TCode>
void CudaSide<TInput, TCode>::throwError(const StageRecord& record) const {
  if (!stage_.isInverse()) {
    detail::throwError(
        ErrorCode::kBadSize,
        fmt::format("{}: the dims do not match the input of {} bytes", kName, record.error_index));
  }
  const bool has_entry = record.error_index != ~std::uint64_t{0};
  detail::throwError(
      ErrorCode::kCorrupt,
      has_entry ? fmt::format("{}: list entry {} is beyond the values, out of order or the second "
                              "of its index ({} such entries)",
                              kName, record.error_index, record.error_count)
                : fmt::format("{}: the parts do not have the sizes of the config", kName));
}

template <class TInput, class TCode>
TileOp CudaSide<TInput, TCode>::tileOp() const {
  if (!hasKernels()) {
    return NoOp{"predicts along some axes only"};
  }
  if (!stage_.isInverse()) {
    const int ndim = stage_.ndim();
    const char* obstacle = device::fusedEncodeObstacle(sizeof(TInput), ndim, stage_.getDims()[0]);
    if (obstacle != nullptr) {
      return NoOp{obstacle};
    }
    return RowsOp{.reach = RowsReach::kLines, .variant = static_cast<std::uint64_t>(ndim)};
  }
  if (!stage_.config_.has_value()) {
    return NoOp{"has no config to decode with"};
  }
  if (decodesGrid()) {
    if (sizeof(TCode) != 2) {
      return NoOp{"sums down the rows of tiles, for which it takes codes of 16 bits only"};
    }
    return RowsOp{.reach = RowsReach::kRuns,
                  .variant = static_cast<std::uint64_t>(stage_.config_->ndim)};
  }
  if (sizeof(TCode) > 2) {
    return NoOp{"a tile of 32-bit codes is more than a warp has at a time"};
  }
  return RowsOp{.unit_values = kMaxTileValues, .reach = RowsReach::kLines, .variant = 1};
}

template <class TInput, class TCode>
std::string CudaSide<TInput, TCode>::tileOpType() const {
  const std::string types =
      fmt::format("{}, std::uint{}_t", sizeof(TInput) == 4 ? "float" : "double", 8 * sizeof(TCode));
  if (stage_.isInverse() && decodesGrid()) {
    return fmt::format("fz::lorenzo_quant::LorenzoQuantGridDecodeOp<{}, {}>", types,
                       stage_.config_->ndim);
  }
  if (!stage_.isInverse() && stage_.ndim() > 1) {
    return fmt::format("fz::lorenzo_quant::LorenzoQuantGridOp<{}, {}>", types, stage_.ndim());
  }
  return fmt::format("fz::lorenzo_quant::LorenzoQuantOp<{}>", types);
}

template <class TInput, class TCode>
std::string CudaSide<TInput, TCode>::tileOpHeader() const {
  if (stage_.isInverse() && decodesGrid()) {
    return "fused/lorenzo_quant/cuda/op/grid_decode.cuh";
  }
  if (!stage_.isInverse() && stage_.ndim() > 1) {
    return "fused/lorenzo_quant/cuda/op/grid_encode.cuh";
  }
  return "fused/lorenzo_quant/cuda/op/op.cuh";
}

template <class TInput, class TCode>
void CudaSide<TInput, TCode>::beginGroup(const cuda::Call& call,
                                         const GroupRun& /*group*/,
                                         GroupArgs& args) {
  LorenzoQuantArgs own{};
  if (stage_.isInverse()) {
    const Decoding begun = decoding(call, DecodeWay::kGroupBegins);
    own.decode = begun.run;
    device::launchGroupBegin<TInput>(own.decode, sizeof(TCode), begun.entry_limit, call);
  } else {
    const Encoding begun = encoding(call);
    own.encode = begun.run;
    own.encode.n_clear = begun.limit.n_segments;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    FZ_CUDA_CHECK(cudaStreamIsCapturing(call.stream, &capture));
    was_captured_ = was_captured_ || capture != cudaStreamCaptureStatusNone;
    // Taken away meanwhile: what a run leaves that breaks off is not known.
    const std::optional<PlanKey> left = std::exchange(left_plan_, std::nullopt);
    if (!left.has_value() || left != planKey(begun, call.pool)) {
      clearPlan<TInput>(own.encode, call);
      device::launchEncodeSetup<TInput>(own.encode, sizeof(TCode), call);
    }
  }
  args.add(own);
}

template <class TInput, class TCode>
void CudaSide<TInput, TCode>::endGroup(const cuda::Call& call, const GroupRun& /*group*/) {
  if (stage_.isInverse()) {
    const Decoding own = decoding(call, DecodeWay::kGroupEnds);
    if (own.entry_limit != 0) {
      device::launchGroupEnd<TInput>(own.run, own.entry_limit, own.n_blocks_done, call);
    }
    group_memory_.recordZero();
  } else {
    Encoding own = encoding(call);
    const std::optional<PlanKey> key = planKey(own, call.pool);
    own.run.n_clear = key.has_value() ? own.limit.n_segments : 0;
    device::launchEntries<TInput>(own.run, own.limit, call);
    left_plan_ = key;
  }
}

template <class TInput, class TCode>
auto CudaSide<TInput, TCode>::planKey(const Encoding& encoding, const MemoryPool* pool) const
    -> std::optional<PlanKey> {
  const device::EncodeRun& run = encoding.run;
  const bool is_kept =
      !was_captured_ && run.n_chunks != 0 && run.n_chunks <= device::kMaxKeptChunks;
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

namespace {

template <class TInput, class TCode>
bool makeIf(SimpleStage& stage, std::unique_ptr<CudaPart>& made) {
  if (auto* own = dynamic_cast<LorenzoQuantStage<TInput, TCode>*>(&stage)) {
    made = std::make_unique<CudaSide<TInput, TCode>>(*own);
  }
  return made != nullptr;
}

std::unique_ptr<CudaPart> makeCudaSide(SimpleStage& stage) {
  std::unique_ptr<CudaPart> made;
  makeIf<float, std::uint16_t>(stage, made) || makeIf<float, std::uint8_t>(stage, made) ||
      makeIf<double, std::uint16_t>(stage, made) || makeIf<double, std::uint32_t>(stage, made);
  return made;
}

}  // namespace

MakeCudaPart cudaPartMaker() {
  return &makeCudaSide;
}

}  // namespace fz::lorenzo_quant
