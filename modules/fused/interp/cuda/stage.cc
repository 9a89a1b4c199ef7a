// Interp on a device.
#include <algorithm>

#include <cuda_runtime_api.h>

#include "backends/cpu/exec_context.h"
#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "cuda_check.h"
#include "fused/interp/blocks.h"
#include "fused/interp/config.h"
#include "fused/interp/cpu/lorenzo_search.h"
#include "fused/interp/cpu/state.h"
#include "fused/interp/cuda/kernels.h"
#include "fused/interp/cuda/walk.h"
#include "fused/interp/interp_stage.h"
#include "fz/cuda_part.h"
#include "mem/scratch.h"

namespace fz::interp {

/// Bound, scale and gaps are found out on the device, so that nothing waits where the plan is
/// given. Which axes Lorenzo alone takes is counted on the device, where there are no gaps; other
/// plans are searched on the host, which gets the parts of the field that the search looks at.
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(InterpBase& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override {
    return {{3, 1, device::kSlotSubBits},
            {16, 8, device::kSlotBound},
            {24, 8, device::kSlotUnits},
            {32, 8, device::kSlotOrigin},
            {DeviceField::kAbsoluteBound, 8, device::kSlotFrameBound}};
  }

 private:
  RunConfig& config() { return stage_.state_->config; }
  device::Setup* clearedSetup(const cuda::Call& call);
  void enqueueSetup(const cuda::Call& call, device::Setup* setup, std::uint32_t* words);
  void enqueueProbe(const cuda::Call& call, device::Setup* setup, const FieldParts& parts);
  Tuned tune(const cuda::Call& call, device::Setup* setup, TuneFamily family);
  /// walk(Arena&), once to measure and once with memory, at least n_bytes.
  template <class F>
  void inArena(const cuda::Call& call, std::size_t n_bytes, F walk);

  InterpBase& stage_;
  Scratch setup_memory_;
  Scratch bits_memory_;
  Scratch arena_memory_;
  Scratch counts_memory_;
  // Of a search; the host's come without a pool.
  Scratch crop_memory_;
  SearchMemory search_memory_;
};

namespace {

constexpr std::uint64_t kMostCropValues = std::uint64_t{1} << 20;  // see plan_search.cc

std::uint32_t axesOf(const Extents& n) {
  return std::max(1u, countAxes(activeAxes(n)));
}

/// Levels of one axis each along some axes, along x on the finest lattices, where rows become
/// short: no plan keeps more lattices at once.
void addSingleLevels(Plan& plan, Axes axes, std::size_t n_each) {
  for (std::size_t axis = 3; axis-- > 0;) {
    for (std::size_t i = 0; has(axes, axis) && i < n_each; ++i) {
      Level level;
      level.axes = static_cast<Axes>(1u << axis);
      plan.add(level);
    }
  }
}

/// Memory for encoding a field with whatever plan: what those take that need most, which code
/// differences along an axis by many levels, and some for the ends of rows.
std::size_t mostMemory(const cuda::Call& call, const Extents& n) {
  constexpr std::size_t kEach = 26;
  constexpr std::size_t kEachInside = 15;
  constexpr std::size_t kLeastForEnds = std::size_t{1} << 20;
  constexpr std::size_t kMostForEnds = std::size_t{16} << 20;
  std::size_t most = 0;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    Plan plan;
    if (axis == 3) {
      addSingleLevels(plan, kXyz, kEach);
    } else {
      Level nested;
      nested.axes = static_cast<Axes>(1u << axis);
      nested.is_nested = true;
      nested.n_inner = 2 * kEachInside;
      plan.add(nested);
      addSingleLevels(plan, static_cast<Axes>(kXyz & ~nested.axes), kEachInside);
    }
    const Plan fitted = fittedPlan(plan, n);
    device::Arena arena(nullptr);
    device::Walk(call, arena, nullptr, DataType::INT32, {})
        .encode(wholePlan(fitted, n, 0), device::fieldGrid(nullptr, DataType::FLOAT32, n), nullptr,
                {});
    most = std::max(most, arena.most());
  }
  return most + std::clamp(most / 4, kLeastForEnds, kMostForEnds);
}

/// Waits where only the device knows it.
std::uint64_t exactBytes(const DeviceSize& size, cudaStream_t stream) {
  std::uint64_t n_bytes = size.n_bytes;
  if (!size.isExact()) {
    FZ_CUDA_CHECK(
        cudaMemcpyAsync(&n_bytes, size.on_device, sizeof(n_bytes), cudaMemcpyDefault, stream));
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  return n_bytes;
}

}  // namespace

device::Setup* CudaSide::clearedSetup(const cuda::Call& call) {
  device::Setup* const setup = setup_memory_.get<device::Setup>(call.pool, 1).data();
  FZ_CUDA_CHECK(cudaMemsetAsync(setup, 0, sizeof(*setup), call.stream));
  return setup;
}

template <class F>
void CudaSide::inArena(const cuda::Call& call, std::size_t n_bytes, F walk) {
  device::Arena measure(nullptr);
  walk(measure);
  const std::size_t most = std::max({std::size_t{1}, n_bytes, measure.most()});
  device::Arena arena(arena_memory_.get<std::uint8_t>(call.pool, most).data());
  walk(arena);
}

void CudaSide::enqueueSetup(const cuda::Call& call, device::Setup* setup, std::uint32_t* words) {
  const RunConfig& config = stage_.state_->config;
  device::launchSetup({.setup = setup,
                       .values = call.inputs[0].data,
                       .n_values = config.values(),
                       .type = config.input_type,
                       .error_bound = config.error_bound,
                       .mode = config.mode,
                       .value_base = stage_.value_base_,
                       .skips_missing = config.skips_missing,
                       .n_axes = axesOf(squeezed(config.dims)),
                       .has_alpha = config.plan.has_alpha,
                       .outliers = words,
                       .record = call.record},
                      call);
}

void CudaSide::enqueueProbe(const cuda::Call& call, device::Setup* setup, const FieldParts& parts) {
  const RunConfig& config = stage_.state_->config;
  const Extents n = squeezed(config.dims);
  const CodeArray array = makeCodeArray(parts.n);
  device::ProbeJob job = {};
  job.setup = setup;
  job.field = device::fieldGrid(call.inputs[0].data, config.input_type, n);
  for (unsigned axis = 0; axis < 3; ++axis) {
    job.n[axis] = parts.n[axis];
    job.n_blocks[axis] = array.n_blocks[axis];
    job.log2[axis] = array.log2[axis];
  }
  for (const std::array<std::size_t, 3>& first : parts.first) {
    job.first[job.n_parts++] = first[0] + (first[1] + first[2] * n[1]) * n[0];
  }
  constexpr LogTable kLogs = makeLogTable();
  std::copy(kLogs.begin(), kLogs.end(), job.logs);
  device::launchProbe(job, call);
}

Tuned CudaSide::tune(const cuda::Call& call, device::Setup* setup, TuneFamily family) {
  const RunConfig& config = stage_.state_->config;
  const Extents n = squeezed(config.dims);
  const bool is_probed = family == TuneFamily::kLorenzo && config.values() != 0;
  const FieldParts parts = is_probed ? lorenzoParts(n) : FieldParts{};
  if (is_probed) {
    enqueueProbe(call, setup, parts);
  }
  device::Setup found = {};
  FZ_CUDA_CHECK(cudaMemcpyAsync(&found, setup, sizeof(found), cudaMemcpyDeviceToHost, call.stream));
  FZ_CUDA_CHECK(cudaStreamSynchronize(call.stream));
  if (is_probed && found.has_gaps == 0) {
    EndCosts costs;
    std::copy(std::begin(found.end_costs), std::end(found.end_costs), costs.begin());
    return cheapestLorenzo(n, parts, costs);
  }
  const ExecContext* const context = stage_.execContext();
  const CpuExecutor& executor =
      context != nullptr && context->cpu != nullptr ? *context->cpu : CpuExecutor::serial();
  // As much as a search may look at, whatever the values are.
  crop_memory_.get<std::int32_t>(call.pool, std::min(config.values(), kMostCropValues));
  const auto read = [&](const std::array<std::size_t, 3>& first, const Extents& n_crop,
                        std::int32_t* out) {
    const std::size_t n_values = std::size_t{n_crop[0]} * n_crop[1] * n_crop[2];
    const auto on_device = crop_memory_.get<std::int32_t>(call.pool, n_values);
    device::PickJob job = {};
    job.setup = setup;
    job.source = device::fieldGrid(call.inputs[0].data, config.input_type, n);
    job.source.data =
        static_cast<std::uint8_t*>(job.source.data) +
        (first[0] + (first[1] + first[2] * n[1]) * n[0]) * getDataTypeSize(config.input_type);
    job.n = {{n_crop[0], n_crop[1], n_crop[2]}};
    job.stride = {{1, 1, 1}};
    job.out = device::fieldGrid(on_device.data(), DataType::INT32, n_crop);
    device::launchPick(job, call);
    FZ_CUDA_CHECK(cudaMemcpyAsync(out, on_device.data(), on_device.size_bytes(),
                                  cudaMemcpyDeviceToHost, call.stream));
    FZ_CUDA_CHECK(cudaStreamSynchronize(call.stream));
  };
  return tunePlan({executor, search_memory_, stage_.code_type_},
                  CropSource{found.has_gaps != 0, read}, n, found.scale.sub_bits, family,
                  kMaxPlanBytes);
}

void CudaSide::encode(const cuda::Call& call) {
  InterpBase::State& state = *stage_.state_;
  state.has_run = false;
  state.beginEncode(exactBytes(call.inputs[0].size, call.stream));
  RunConfig& config = state.config;
  const Extents n = squeezed(config.dims);
  const std::uint64_t n_values = config.values();
  const std::optional<TuneFamily> family = tuneFamily(stage_.plan_);
  state.takePlan({family ? Plan{} : planFor(stage_.plan_, n), {}});
  device::Setup* const setup = clearedSetup(call);
  const auto words =
      bits_memory_.get<std::uint32_t>(call.pool, bits::ceilDiv<std::uint64_t>(n_values, 32) + 1);
  FZ_CUDA_CHECK(cudaMemsetAsync(words.data(), 0, words.size_bytes(), call.stream));
  enqueueSetup(call, setup, words.data());
  if (family) {
    state.takePlan(tune(call, setup, *family));
    if (config.plan.has_alpha) {
      device::launchBins(setup, axesOf(n), true, call);
    }
  }
  // Until the device has said more: a frame's header is laid out by it.
  config.absolute_bound =
      config.mode == ErrorBoundMode::ABS ? resolveBound(config.error_bound, config.mode, 0.0) : 0.0;
  state.has_run = true;
  const std::size_t n_code_bytes =
      stepsCodes(config.plan.steps(), n) * getDataTypeSize(stage_.code_type_);
  const CudaOutput& codes = call.outputs[0];
  if (!codes.size_known) {
    device::launchPublish(call.record, 0, n_code_bytes, codes.capacity_bytes, call);
  }
  if (codes.capacity_bytes < n_code_bytes) {
    return;  // the run is repeated with more room
  }
  const device::Marks marks = {words.data(), call.inputs[0].data, config.input_type, true, {}};
  // With a search all the memory that another plan might need, so that later calls take none.
  inArena(call, family == TuneFamily::kAll ? mostMemory(call, n) : 0, [&](device::Arena& arena) {
    device::Walk(call, arena, setup, stage_.code_type_, marks)
        .encode(wholePlan(config.plan, n, 0),
                device::fieldGrid(call.inputs[0].data, config.input_type, n), codes.data, {});
  });
  const auto counts =
      counts_memory_.get<std::uint64_t>(call.pool, device::listChunks(n_values) + 1);
  device::launchList({.setup = setup,
                      .words = words.data(),
                      .n_values = n_values,
                      .values = call.inputs[0].data,
                      .value_bytes = static_cast<std::uint32_t>(getDataTypeSize(config.input_type)),
                      .counts = counts.data(),
                      .out = call.outputs[1],
                      .record = call.record},
                     call);
}

void CudaSide::finishEncode(const StageRecord& record) {
  const auto number = [&](unsigned slot) { return fp::bitCast<double>(record.value[slot]); };
  RunConfig& found = config();
  found.scale.sub_bits = static_cast<std::uint32_t>(record.value[device::kSlotSubBits]);
  found.scale.units_per_value = number(device::kSlotUnits);
  found.scale.value_per_unit = fp::div(1.0, found.scale.units_per_value);
  found.scale.origin = number(device::kSlotOrigin);
  found.absolute_bound = number(device::kSlotBound);
  stage_.state_->has_run = true;
}

void CudaSide::decode(const cuda::Call& call) {
  const std::size_t n_inputs = std::min<std::size_t>(call.inputs.size(), 2);
  std::array<std::size_t, 2> sizes = {};
  bool all_exact = true;
  for (std::size_t i = 0; i < n_inputs; ++i) {
    sizes[i] = call.inputs[i].size.n_bytes;
    all_exact = all_exact && call.inputs[i].size.isExact();
  }
  FZ_REQUIRE(stage_.state_->has_run, ErrorCode::kInvalidState, "{}: cannot decode without a config",
             kName);
  if (all_exact || n_inputs < 2) {  // else the device checks the same
    static_cast<void>(stage_.decodedBytes(std::span(sizes).first(n_inputs)));
  }
  const RunConfig& config = stage_.state_->config;
  const Extents n = squeezed(config.dims);
  const auto value_bytes = static_cast<std::uint32_t>(getDataTypeSize(config.input_type));
  const std::uint64_t n_bytes = config.values() * value_bytes;
  const std::uint64_t code_bytes =
      stepsCodes(config.plan.steps(), n) * getDataTypeSize(stage_.code_type_);
  const CudaOutput& out = call.outputs[0];
  if (!out.size_known) {
    device::launchPublish(call.record, 0, n_bytes, out.capacity_bytes, call);
  }
  if (out.capacity_bytes < n_bytes) {
    return;  // the run is repeated with more room
  }
  device::Setup* const setup = clearedSetup(call);
  device::launchDecodeSetup({.setup = setup,
                             .codes_size = call.inputs[0].size,
                             .codes_bytes = code_bytes,
                             .outliers_size = call.inputs[1].size,
                             .n_values = config.values(),
                             .value_bytes = value_bytes,
                             .n_axes = axesOf(n),
                             .has_alpha = config.plan.has_alpha,
                             .record = call.record},
                            call);
  if (call.inputs[0].size.n_bytes < code_bytes) {
    return;  // recorded, unless the stage before this one has had too little room itself
  }
  inArena(call, 0, [&](device::Arena& arena) {
    device::Walk(call, arena, setup, stage_.code_type_, {})
        .decode(wholePlan(config.plan, n, 0), call.inputs[0].data,
                device::fieldGrid(out.data, config.input_type, n));
  });
  device::launchScatter({.setup = setup,
                         .list = call.inputs[1].data,
                         .n_limit = call.inputs[1].size.n_bytes / (4 + value_bytes),
                         .n_values = config.values(),
                         .value_bytes = value_bytes,
                         .out = out.data,
                         .record = call.record},
                        call);
}

void CudaSide::throwError(const StageRecord& record) const {
  fz::detail::throwError(
      ErrorCode::kCorrupt,
      record.value[device::kSlotCodesOff] != 0
          ? fmt::format("{}: the config or the sizes of the parts contradict each other", kName)
          : fmt::format("{}: outlier {} is out of order or beyond the values", kName,
                        record.error_index));
}

MakeCudaPart cudaPartMaker() {
  return [](SimpleStage& stage) -> std::unique_ptr<CudaPart> {
    auto* const own = dynamic_cast<InterpBase*>(&stage);
    return own == nullptr ? nullptr : std::make_unique<CudaSide>(*own);
  };
}

}  // namespace fz::interp
