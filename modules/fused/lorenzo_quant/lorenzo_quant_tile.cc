// A run on the CPU, tile by tile: alone over all of the data, or as part of a fused group.
#include <algorithm>
#include <array>

#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "fused/lorenzo_quant/lorenzo_quant.h"
#include "fused/lorenzo_quant/lorenzo_quant_config_impl.h"
#include "fused/lorenzo_quant/lorenzo_quant_cpu.h"
#include "shared/bits.h"

namespace fz {

namespace {

using lorenzo_quant::Cut;
using lorenzo_quant::SegmentEntries;

/// Units larger than this are refused before anybody tries to fit them into a cache.
constexpr std::uint64_t kMaxUnitValues = 1u << 23;
/// Threads take a unit each, so long ones must be several.
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
  return RowsOp{.unit_values = static_cast<std::uint32_t>(unit), .reach = RowsReach::kBands};
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::beginEncode(const CpuRun& run) {
  run_config_ = configOfRun(run);
  run_extents_ = dims_.resolve(run_config_.num_elements, lorenzo_quant::kName);
  run_ndim_ = dims_.ndim();
  const Cut cut = cutOf(run_extents_, run_ndim_, run_config_.num_elements);
  run_entries_ = entries_.get<SegmentEntries>(run.pool, cut.segmentCount() + 1).data();
}

/// A range of whole tiles, which has this cut.
template <class TInput, class TCode>
lorenzo_quant::EncodeJob LorenzoQuantStage<TInput, TCode>::encodeJob(const Cut& cut) const {
  return {.input_type = kDataTypeOf<TInput>,
          .code_type = kDataTypeOf<TCode>,
          .cut = cut,
          .bound = run_config_.abs_error_bound,
          .radius = run_config_.quant_radius,
          .zigzag = zigzag_codes_,
          .in = nullptr,
          .codes = nullptr,
          .entries = run_entries_,
          .n_wanted = cut.n_values};
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::encodeTile(const TileRange& range,
                                                  const void* in,
                                                  void* out) {
  lorenzo_quant::EncodeJob job = encodeJob(cutOf(run_extents_, run_ndim_, range.n_values));
  job.in = in;
  job.codes = out;
  job.entries += job.cut.segmentOf(range.first);
  for (std::uint64_t block = 0; block < job.cut.blockCount(); ++block) {
    lorenzo_quant::encodeBlock(job, block);
  }
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::encodeAhead(const TileRange& range,
                                                   const void* in,
                                                   void* out) {
  const std::size_t layer = run_extents_[0] * (run_ndim_ == 3 ? run_extents_[1] : 1);
  const std::size_t whole = bits::roundUp(range.n_values, std::max<std::size_t>(1, layer));
  lorenzo_quant::EncodeJob job = encodeJob(cutOf(run_extents_, run_ndim_, whole));
  job.in = in;
  job.codes = out;
  job.entries = nullptr;
  job.n_wanted = range.n_values;
  for (std::uint64_t block = 0; block < job.cut.blockCount(); ++block) {
    lorenzo_quant::encodeBlock(job, block);
  }
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::endEncode(const CpuRun& run) {
  const std::size_t n = run_config_.num_elements;
  lorenzo_quant::EncodeJob job = encodeJob(cutOf(run_extents_, run_ndim_, n));
  const std::size_t n_segments = job.cut.segmentCount();
  const std::span<SegmentEntries> entries(run_entries_, n_segments + 1);
  const SegmentEntries total = lorenzo_quant::scanEntries(entries);
  const std::size_t n_entries = std::size_t{total.n_range} + total.n_exact;
  if (run.outputs[1].size() < n_entries * sizeof(TInput) ||
      run.outputs[2].size() < n_entries * sizeof(std::uint32_t)) {
    requestOutputBytes(1, n_entries * sizeof(TInput));
    requestOutputBytes(2, n_entries * sizeof(std::uint32_t));
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
  run_config_.outlier_count = total.n_range;
  config_ = run_config_;
  setStageVersion(lorenzo_quant::versionFor(total.n_exact));
  setActualBytes(0, n * sizeof(TCode));
  setActualBytes(1, n_entries * sizeof(TInput));
  setActualBytes(2, n_entries * sizeof(std::uint32_t));
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::encodeCpu(const CpuRun& run) {
  beginEncode(run);
  const std::size_t n = run_config_.num_elements;
  if (run.outputs[0].size() < n * sizeof(TCode)) {
    requestOutputBytes(0, n * sizeof(TCode));
    return;
  }
  lorenzo_quant::EncodeJob job = encodeJob(cutOf(run_extents_, run_ndim_, n));
  job.in = run.inputs[0].data();
  job.codes = run.outputs[0].data();
  parallelFor(run.executor, job.cut.blockCount(),
              [&](std::size_t block) { lorenzo_quant::encodeBlock(job, block); });
  endEncode(run);
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::beginDecode(const CpuRun& run) {
  std::array<std::size_t, 4> sizes = {};
  const std::size_t n_parts = std::min<std::size_t>(run.inputs.size(), sizes.size());
  for (std::size_t i = 0; i < n_parts; ++i) {
    sizes[i] = run.inputs[i].size();
  }
  const std::size_t n_bytes = decodedBytes(std::span(sizes).first(n_parts));
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "{}: output of {} bytes needed, {} came", lorenzo_quant::kName, n_bytes,
             run.outputs[0].size());
  const lorenzo_quant::Grid grid = lorenzo_quant::gridOfStream(*config_);
  run_extents_ = {grid.nx, grid.ny, grid.nz};
  run_ndim_ = grid.ndim;
  deltas_ = checkedDeltas(run);
}

template <class TInput, class TCode>
lorenzo_quant::DecodeJob LorenzoQuantStage<TInput, TCode>::decodeJob(const Cut& cut) const {
  return {.input_type = kDataTypeOf<TInput>,
          .code_type = kDataTypeOf<TCode>,
          .cut = cut,
          .bound = config_->abs_error_bound,
          .zigzag = config_->zigzag_codes != 0,
          .wide = deltas_.wide,
          .codes = nullptr,
          .deltas = deltas_.values,
          .indices = deltas_.indices,
          .n_deltas = config_->outlier_count,
          .out = nullptr};
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::decodeTile(const TileRange& range,
                                                  const void* in,
                                                  void* out) {
  lorenzo_quant::DecodeJob job = decodeJob(cutOf(run_extents_, run_ndim_, range.n_values));
  job.codes = in;
  job.out = out;
  job.first = range.first;
  for (std::uint64_t block = 0; block < job.cut.blockCount(); ++block) {
    lorenzo_quant::decodeBlock(job, block);
  }
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::endDecode(const CpuRun& run) {
  if (getStageVersion() >= lorenzo_quant::kVersionWithExactValues) {
    restoreExactValues(run);
  }
  setActualBytes(0, config_->num_elements * sizeof(TInput));
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::decodeCpu(const CpuRun& run) {
  beginDecode(run);
  lorenzo_quant::DecodeJob job = decodeJob(
      lorenzo_quant::makeCut({run_extents_[0], run_extents_[1], run_extents_[2], run_ndim_}));
  job.codes = run.inputs[0].data();
  job.out = run.outputs[0].data();
  parallelFor(run.executor, job.cut.blockCount(),
              [&](std::size_t block) { lorenzo_quant::decodeBlock(job, block); });
  const std::size_t n_decoded = job.cut.n_values * sizeof(TInput);
  const std::size_t n_bytes = config_->num_elements * sizeof(TInput);
  std::fill(run.outputs[0].begin() + static_cast<std::ptrdiff_t>(n_decoded),
            run.outputs[0].begin() + static_cast<std::ptrdiff_t>(n_bytes), std::uint8_t{0});
  endDecode(run);
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::beginTiles(const CpuRun& run, const TileCut& /*cut*/) {
  isInverse() ? beginDecode(run) : beginEncode(run);
}

template <class TInput, class TCode>
void LorenzoQuantStage<TInput, TCode>::endTiles(const CpuRun& run) {
  isInverse() ? endDecode(run) : endEncode(run);
}

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define FZ_LORENZO_QUANT_TILE(TInput, TCode)                                                       \
  template TileOp LorenzoQuantStage<TInput, TCode>::cpuTileOp() const;                             \
  template void LorenzoQuantStage<TInput, TCode>::beginEncode(const CpuRun&);                      \
  template void LorenzoQuantStage<TInput, TCode>::endEncode(const CpuRun&);                        \
  template void LorenzoQuantStage<TInput, TCode>::beginDecode(const CpuRun&);                      \
  template void LorenzoQuantStage<TInput, TCode>::endDecode(const CpuRun&);                        \
  template lorenzo_quant::EncodeJob LorenzoQuantStage<TInput, TCode>::encodeJob(const Cut&) const; \
  template lorenzo_quant::DecodeJob LorenzoQuantStage<TInput, TCode>::decodeJob(const Cut&) const; \
  template void LorenzoQuantStage<TInput, TCode>::encodeCpu(const CpuRun&);                        \
  template void LorenzoQuantStage<TInput, TCode>::decodeCpu(const CpuRun&);                        \
  template void LorenzoQuantStage<TInput, TCode>::beginTiles(const CpuRun&, const TileCut&);       \
  template void LorenzoQuantStage<TInput, TCode>::encodeTile(const TileRange&, const void*,        \
                                                             void*);                               \
  template void LorenzoQuantStage<TInput, TCode>::decodeTile(const TileRange&, const void*,        \
                                                             void*);                               \
  template void LorenzoQuantStage<TInput, TCode>::encodeAhead(const TileRange&, const void*,       \
                                                              void*);                              \
  template void LorenzoQuantStage<TInput, TCode>::endTiles(const CpuRun&)
// NOLINTEND(bugprone-macro-parentheses)
FZ_LORENZO_QUANT_TILE(float, std::uint16_t);
FZ_LORENZO_QUANT_TILE(float, std::uint8_t);
FZ_LORENZO_QUANT_TILE(double, std::uint16_t);
FZ_LORENZO_QUANT_TILE(double, std::uint32_t);
#undef FZ_LORENZO_QUANT_TILE

}  // namespace fz
