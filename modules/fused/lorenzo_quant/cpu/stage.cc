// LorenzoQuant on the CPU: alone over all of the data, or tile by tile in a fused group.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "fused/lorenzo_quant/config.h"
#include "fused/lorenzo_quant/cpu/blocks.h"
#include "fused/lorenzo_quant/lorenzo_quant.h"
#include "mem/scratch.h"
#include "shared/bits.h"

namespace fz {

namespace {

using lorenzo_quant::Cut;
using lorenzo_quant::kName;
using lorenzo_quant::SegmentEntries;

constexpr std::size_t kScanValues = 64 * 1024;  // values per task of the range scan
/// Larger units are refused at once: no cache holds them.
constexpr std::uint64_t kMaxUnitValues = 1u << 23;
/// Threads take a unit each, so there must be several of the long ones.
constexpr std::uint64_t kLongUnitBytes = 256 * 1024;
constexpr std::uint64_t kMinLongUnits = 8;

/// The part of a grid that a range of whole tiles is.
Cut cutOf(const std::array<std::size_t, 3>& extents, int ndim, std::size_t n_values) {
  if (ndim == 1) {
    return lorenzo_quant::makeCut({n_values, 1, 1, 1});
  }
  const std::size_t n_rows = n_values / std::max<std::size_t>(1, extents[0]);
  return ndim == 2 ? lorenzo_quant::makeCut({extents[0], n_rows, 1, 2})
                   : lorenzo_quant::makeCut({extents[0], extents[1],
                                             n_rows / std::max<std::size_t>(1, extents[1]), 3});
}

}  // namespace

/// What a run needs, and the stage's part in groups. A run, alone and in a group alike: begin,
/// tiles in any order, end.
template <class TInput, class TCode>
struct LorenzoQuantStage<TInput, TCode>::State final : CpuTileOp {
  /// The outlier lists of a stream, checked.
  struct Deltas {
    const TInput* values = nullptr;
    const std::uint32_t* indices = nullptr;
    bool wide = false;  ///< some delta is beyond the integers of this type
  };

  explicit State(LorenzoQuantStage& owner) : stage(owner) {}

  void beginTiles(const CpuRun& run, const TileCut& /*cut*/) override {
    stage.isInverse() ? beginDecode(run) : beginEncode(run);
  }
  void encodeTile(const TileRange& range, const void* in, void* out) override;
  void encodeAhead(const TileRange& range, const void* in, void* out) override;
  void decodeTile(const TileRange& range, const void* in, void* out) override;
  void endTiles(const CpuRun& run) override { stage.isInverse() ? endDecode(run) : endEncode(run); }

  void beginEncode(const CpuRun& run);
  void endEncode(const CpuRun& run);
  void beginDecode(const CpuRun& run);
  void endDecode(const CpuRun& run);
  lorenzo_quant::EncodeJob encodeJob(const Cut& cut) const;
  lorenzo_quant::DecodeJob decodeJob(const Cut& cut) const;
  LorenzoQuantConfig configOfRun(const CpuRun& run);
  double scannedBase(const CpuRun& run, std::size_t n_values);
  Deltas checkedDeltas(const CpuRun& run);
  Deltas sortedDeltas(const CpuRun& run);
  void restoreExactValues(const CpuRun& run) const;

  LorenzoQuantStage& stage;
  // Of the run at hand.
  LorenzoQuantConfig config;
  SegmentEntries* entries = nullptr;
  std::array<std::size_t, 3> extents = {};
  int ndim = 1;
  Deltas deltas;

  Scratch entry_memory;
  Scratch range_memory;
  Scratch sort_keys;
  Scratch sorted_values;
  Scratch sorted_indices;
};

template <class TInput, class TCode>
LorenzoQuantStage<TInput, TCode>::LorenzoQuantStage() : state_(std::make_unique<State>(*this)) {
}
template <class TInput, class TCode>
LorenzoQuantStage<TInput, TCode>::~LorenzoQuantStage() = default;

template <class TInput, class TCode>
CpuTilePart* LorenzoQuantStage<TInput, TCode>::cpuTilePart() {
  return state_.get();
}

template <class TInput, class TCode>
TileOp LorenzoQuantStage<TInput, TCode>::cpuTileOp() const {
  std::array<std::size_t, 3> dims = dims_.get();
  int ndim = dims_.ndim();
  if (isInverse() && config_.has_value()) {
    StageDims stored;
    stored.setOwn({config_->dim_x, config_->dim_y, config_->dim_z});
    dims = stored.get();
    ndim = stored.ndim();
    const bool is_whole = dims[2] != 0 && config_->num_elements % dims[2] == 0 &&
                          std::uint64_t{dims[0]} * dims[1] == config_->num_elements / dims[2];
    if (ndim > 1 && !is_whole) {
      return NoOp{"has dims that do not say where all values lie"};
    }
  }
  if (ndim > 1 && dims[0] == 0) {
    return NoOp{"learns the length of its rows from the data"};
  }
  const std::uint64_t edge = lorenzo_quant::tileEdge(ndim);
  const std::uint64_t row_values = ndim > 1 ? std::min<std::uint64_t>(dims[0], kMaxUnitValues) : 1;
  const std::uint64_t n_rows = ndim > 2 ? std::min<std::uint64_t>(dims[1], kMaxUnitValues) : 1;
  const std::uint64_t unit = edge * row_values * n_rows;
  if (unit > kMaxUnitValues) {
    return NoOp{"has tiles whose rows lie far apart"};
  }
  const std::uint64_t n_units =
      bits::ceilDiv<std::uint64_t>(dims[static_cast<std::size_t>(ndim - 1)], edge);
  if (ndim > 1 && unit * sizeof(TCode) > kLongUnitBytes && n_units < kMinLongUnits) {
    return NoOp{"has few and long rows of tiles, so threads could not share them"};
  }
  return RowsOp{.unit_values = static_cast<std::uint32_t>(unit),
                .reach = RowsReach::kBands,
                .is_first = true};
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::encodeCpu(const CpuRun& run) {
  state_->beginEncode(run);
  const std::size_t n = state_->config.num_elements;
  if (run.outputs[0].size() < n * sizeof(TCode)) {
    requestOutputBytes(0, n * sizeof(TCode));
    return;
  }
  lorenzo_quant::EncodeJob job = state_->encodeJob(cutOf(state_->extents, state_->ndim, n));
  job.in = run.inputs[0].data();
  job.codes = run.outputs[0].data();
  parallelFor(run.executor, job.cut.blockCount(),
              [&](std::size_t block) { lorenzo_quant::encodeBlock(job, block); });
  state_->endEncode(run);
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::decodeCpu(const CpuRun& run) {
  state_->beginDecode(run);
  lorenzo_quant::DecodeJob job = state_->decodeJob(lorenzo_quant::makeCut(
      {state_->extents[0], state_->extents[1], state_->extents[2], state_->ndim}));
  job.codes = run.inputs[0].data();
  job.out = run.outputs[0].data();
  parallelFor(run.executor, job.cut.blockCount(),
              [&](std::size_t block) { lorenzo_quant::decodeBlock(job, block); });
  const std::size_t n_decoded = job.cut.n_values * sizeof(TInput);
  const std::size_t n_bytes = config_->num_elements * sizeof(TInput);
  std::fill(run.outputs[0].begin() + static_cast<std::ptrdiff_t>(n_decoded),
            run.outputs[0].begin() + static_cast<std::ptrdiff_t>(n_bytes), std::uint8_t{0});
  state_->endDecode(run);
}

template <class TInput, class TCode>
double LorenzoQuantStage<TInput, TCode>::State::scannedBase(const CpuRun& run,
                                                            std::size_t n_values) {
  const auto* in = reinterpret_cast<const TInput*>(run.inputs[0].data());
  const std::size_t n_tasks = bits::ceilDiv(n_values, kScanValues);
  const auto ranges = range_memory.get<lorenzo_quant::ValueRange>(run.pool, n_tasks);
  parallelFor(run.executor, n_tasks, [&](std::size_t task) {
    const std::size_t begin = task * kScanValues;
    ranges[task] = lorenzo_quant::finiteRange(in + begin, std::min(kScanValues, n_values - begin),
                                              kDataTypeOf<TInput>);
  });
  lorenzo_quant::ValueRange all;
  for (const lorenzo_quant::ValueRange& r : ranges) {
    if (r.any) {
      all = all.any ? lorenzo_quant::ValueRange{std::min(all.min, r.min), std::max(all.max, r.max),
                                                true}
                    : r;
    }
  }
  return stage.mode_ == ErrorBoundMode::NOA ? all.max - all.min
                                            : std::max(std::abs(all.min), std::abs(all.max));
}

template <class TInput, class TCode>
LorenzoQuantConfig LorenzoQuantStage<TInput, TCode>::State::configOfRun(const CpuRun& run) {
  const std::uint32_t n = stage.checkedCount(run.inputs[0].size());
  LorenzoQuantConfig found = stage.configFromSettings();
  found.num_elements = n;
  if (stage.mode_ != ErrorBoundMode::ABS) {
    const double base = stage.value_base_ > 0.0 ? stage.value_base_ : scannedBase(run, n);
    const lorenzo_quant::ResolvedBound resolved =
        lorenzo_quant::resolveBound(stage.error_bound_, base);
    found.abs_error_bound = resolved.bound;
    found.value_base = resolved.base;
  }
  return found;
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::State::beginEncode(const CpuRun& run) {
  config = configOfRun(run);
  extents = stage.dims_.resolve(config.num_elements, kName);
  ndim = stage.dims_.ndim();
  const Cut cut = cutOf(extents, ndim, config.num_elements);
  entries = entry_memory.get<SegmentEntries>(run.pool, cut.segmentCount() + 1).data();
}

/// A range of whole tiles, which has this cut.
template <class TInput, class TCode>
lorenzo_quant::EncodeJob LorenzoQuantStage<TInput, TCode>::State::encodeJob(const Cut& cut) const {
  return {.input_type = kDataTypeOf<TInput>,
          .code_type = kDataTypeOf<TCode>,
          .cut = cut,
          .bound = config.abs_error_bound,
          .radius = config.quant_radius,
          .zigzag = stage.zigzag_codes_,
          .axes = stage.axes_,
          .in = nullptr,
          .codes = nullptr,
          .entries = entries,
          .n_wanted = cut.n_values};
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::State::encodeTile(const TileRange& range,
                                                         const void* in,
                                                         void* out) {
  lorenzo_quant::EncodeJob job = encodeJob(cutOf(extents, ndim, range.n_values));
  job.in = in;
  job.codes = out;
  job.entries += job.cut.segmentOf(range.first);
  for (std::uint64_t block = 0; block < job.cut.blockCount(); ++block) {
    lorenzo_quant::encodeBlock(job, block);
  }
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::State::encodeAhead(const TileRange& range,
                                                          const void* in,
                                                          void* out) {
  const std::size_t layer = extents[0] * (ndim == 3 ? extents[1] : 1);
  const std::size_t whole = bits::roundUp(range.n_values, std::max<std::size_t>(1, layer));
  lorenzo_quant::EncodeJob job = encodeJob(cutOf(extents, ndim, whole));
  job.in = in;
  job.codes = out;
  job.entries = nullptr;
  job.n_wanted = range.n_values;
  for (std::uint64_t block = 0; block < job.cut.blockCount(); ++block) {
    lorenzo_quant::encodeBlock(job, block);
  }
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::State::endEncode(const CpuRun& run) {
  const std::size_t n = config.num_elements;
  lorenzo_quant::EncodeJob job = encodeJob(cutOf(extents, ndim, n));
  const std::size_t n_segments = job.cut.segmentCount();
  const SegmentEntries total = lorenzo_quant::scanEntries({entries, n_segments + 1});
  const std::size_t n_entries = std::size_t{total.n_range} + total.n_exact;
  if (run.outputs[1].size() < n_entries * sizeof(TInput) ||
      run.outputs[2].size() < n_entries * sizeof(std::uint32_t)) {
    stage.requestOutputBytes(1, n_entries * sizeof(TInput));
    stage.requestOutputBytes(2, n_entries * sizeof(std::uint32_t));
    return;
  }
  job.in = run.inputs[0].data();
  job.values = run.outputs[1].data();
  job.indices = reinterpret_cast<std::uint32_t*>(run.outputs[2].data());
  job.n_range_total = total.n_range;
  parallelFor(run.executor, n_entries == 0 ? 0 : n_segments, [&](std::size_t segment) {
    const SegmentEntries first = entries[segment];
    const SegmentEntries next = entries[segment + 1];
    lorenzo_quant::writeEntries(job, segment, first,
                                {next.n_range - first.n_range, next.n_exact - first.n_exact});
  });
  config.outlier_count = total.n_range;
  stage.config_ = config;
  stage.setStageVersion(lorenzo_quant::versionFor(total.n_exact, config.left_out));
  stage.setActualBytes(0, n * sizeof(TCode));
  stage.setActualBytes(1, n_entries * sizeof(TInput));
  stage.setActualBytes(2, n_entries * sizeof(std::uint32_t));
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::State::beginDecode(const CpuRun& run) {
  std::array<std::size_t, 4> sizes = {};
  const std::size_t n_parts = std::min<std::size_t>(run.inputs.size(), sizes.size());
  for (std::size_t i = 0; i < n_parts; ++i) {
    sizes[i] = run.inputs[i].size();
  }
  const std::size_t n_bytes = stage.decodedBytes(std::span(sizes).first(n_parts));
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "{}: output needs {} bytes, has {}", kName, n_bytes, run.outputs[0].size());
  const lorenzo_quant::Grid grid = lorenzo_quant::gridOfStream(*stage.config_);
  extents = {grid.nx, grid.ny, grid.nz};
  ndim = grid.ndim;
  deltas = checkedDeltas(run);
}

template <class TInput, class TCode>
auto LorenzoQuantStage<TInput, TCode>::State::checkedDeltas(const CpuRun& run) -> Deltas {
  const std::size_t k = stage.config_->outlier_count;
  Deltas found{reinterpret_cast<const TInput*>(run.inputs[1].data()),
               reinterpret_cast<const std::uint32_t*>(run.inputs[2].data()), false};
  bool ascends = true;
  for (std::size_t i = 0; i < k; ++i) {
    FZ_REQUIRE(found.indices[i] < stage.config_->num_elements, ErrorCode::kCorrupt,
               "{}: outlier {} at index {} of {} values", kName, i, found.indices[i],
               stage.config_->num_elements);
    ascends = ascends && (i == 0 || found.indices[i - 1] < found.indices[i]);
  }
  if (!ascends) {
    found = sortedDeltas(run);  // the original system writes them in no order
  }
  constexpr TInput kIntLimit = sizeof(TInput) == 4 ? TInput(0x1p31) : TInput(0x1p63);
  for (std::size_t i = 0; i < k; ++i) {
    found.wide = found.wide || !(fp::abs(found.values[i]) < kIntLimit);
  }
  return found;
}

template <class TInput, class TCode>
auto LorenzoQuantStage<TInput, TCode>::State::sortedDeltas(const CpuRun& run) -> Deltas {
  const std::size_t k = stage.config_->outlier_count;
  const auto* from_values = reinterpret_cast<const TInput*>(run.inputs[1].data());
  const auto* from_indices = reinterpret_cast<const std::uint32_t*>(run.inputs[2].data());
  const auto keys = sort_keys.get<std::uint64_t>(run.pool, k);
  const auto values = sorted_values.get<TInput>(run.pool, k);
  const auto indices = sorted_indices.get<std::uint32_t>(run.pool, k);
  for (std::size_t i = 0; i < k; ++i) {
    keys[i] = std::uint64_t{from_indices[i]} << 32 | i;
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 0; i < k; ++i) {
    values[i] = from_values[keys[i] & 0xffffffffu];
    indices[i] = static_cast<std::uint32_t>(keys[i] >> 32);
    FZ_REQUIRE(i == 0 || indices[i - 1] < indices[i], ErrorCode::kCorrupt,
               "{}: two outliers at index {}", kName, indices[i]);
  }
  return {values.data(), indices.data(), false};
}

template <class TInput, class TCode>
lorenzo_quant::DecodeJob LorenzoQuantStage<TInput, TCode>::State::decodeJob(const Cut& cut) const {
  return {.input_type = kDataTypeOf<TInput>,
          .code_type = kDataTypeOf<TCode>,
          .cut = cut,
          .bound = stage.config_->abs_error_bound,
          .zigzag = stage.config_->zigzag_codes != 0,
          .axes = Axes::fromLeftOut(stage.config_->left_out),
          .wide = deltas.wide,
          .codes = nullptr,
          .deltas = deltas.values,
          .indices = deltas.indices,
          .n_deltas = stage.config_->outlier_count,
          .out = nullptr};
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::State::decodeTile(const TileRange& range,
                                                         const void* in,
                                                         void* out) {
  lorenzo_quant::DecodeJob job = decodeJob(cutOf(extents, ndim, range.n_values));
  job.codes = in;
  job.out = out;
  job.first = range.first;
  for (std::uint64_t block = 0; block < job.cut.blockCount(); ++block) {
    lorenzo_quant::decodeBlock(job, block);
  }
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::State::restoreExactValues(const CpuRun& run) const {
  const auto* values = reinterpret_cast<const TInput*>(run.inputs[1].data());
  const auto* indices = reinterpret_cast<const std::uint32_t*>(run.inputs[2].data());
  auto* out = reinterpret_cast<TInput*>(run.outputs[0].data());
  const std::size_t n_entries = run.inputs[2].size() / sizeof(std::uint32_t);
  for (std::size_t i = stage.config_->outlier_count; i < n_entries; ++i) {
    FZ_REQUIRE(indices[i] < stage.config_->num_elements &&
                   (i == stage.config_->outlier_count || indices[i - 1] < indices[i]),
               ErrorCode::kCorrupt, "{}: exact value {} at index {} of {}", kName, i, indices[i],
               stage.config_->num_elements);
    std::memcpy(out + indices[i], values + i, sizeof(TInput));
  }
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::State::endDecode(const CpuRun& run) {
  if (stage.getStageVersion() >= lorenzo_quant::kVersionWithExactValues) {
    restoreExactValues(run);
  }
  stage.setActualBytes(0, stage.config_->num_elements * sizeof(TInput));
}

#define FZ_LORENZO_QUANT_CPU(TInput, TCode)                                 \
  template struct LorenzoQuantStage<TInput, TCode>::State;                  \
  template LorenzoQuantStage<TInput, TCode>::LorenzoQuantStage();           \
  template LorenzoQuantStage<TInput, TCode>::~LorenzoQuantStage();          \
  template CpuTilePart* LorenzoQuantStage<TInput, TCode>::cpuTilePart();    \
  template TileOp LorenzoQuantStage<TInput, TCode>::cpuTileOp() const;      \
  template void LorenzoQuantStage<TInput, TCode>::encodeCpu(const CpuRun&); \
  template void LorenzoQuantStage<TInput, TCode>::decodeCpu(const CpuRun&)
FZ_LORENZO_QUANT_CPU(float, std::uint16_t);
FZ_LORENZO_QUANT_CPU(float, std::uint8_t);
FZ_LORENZO_QUANT_CPU(double, std::uint16_t);
FZ_LORENZO_QUANT_CPU(double, std::uint32_t);
#undef FZ_LORENZO_QUANT_CPU

}  // namespace fz
