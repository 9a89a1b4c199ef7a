// What needs all of the data: the bound and the lists of outliers.
#include <algorithm>
#include <cmath>

#include "backends/cpu/parallel_for.h"
#include "backends/cpu/scan.h"
#include "core/require.h"
#include "quantizers/quantizer/codec_bound.h"
#include "quantizers/quantizer/state.h"

namespace fz::quantizer {

namespace {

/// f(U{}) for the bits of a value.
template <class F>
void withBits(DataType type, F f) {
  if (type == DataType::FLOAT32) {
    f(std::uint32_t{});
  } else {
    f(std::uint64_t{});
  }
}

}  // namespace

float logStepV1(double bound) {
  const float ratio = 1.0f + static_cast<float>(std::min(bound, 0x1p100));
  return 2.0f * std::log2(ratio);  // legacy libm: what the writers of version 1 used
}

double QuantizerBase::State::scanRange(const CpuRun& run) const {
  const std::size_t value_bytes = getDataTypeSize(stage.value_type_);
  const TileCut cut{.n_values = stage.n_values_, .tile_values = kTileValues};
  struct alignas(64) Part {
    ValueRange range{1.0, -1.0};
  };
  // A fixed number of parts, so nothing is allocated; min and max do not care about the grouping.
  constexpr std::size_t kParts = 64;
  Part parts[kParts];
  const std::size_t n_tiles = cut.tileCount();
  parallelFor(run.executor, std::min(kParts, n_tiles), [&](std::size_t part) {
    ValueRange& all = parts[part].range;
    for (std::size_t tile = part; tile < n_tiles; tile += kParts) {
      const TileRange range = cut.at(tile);
      const ValueRange r = rangeOfTile(
          value_bytes, run.inputs[0].data() + range.first * value_bytes, range.n_values);
      if (r.low <= r.high) {
        all = all.low <= all.high ? ValueRange{std::min(all.low, r.low), std::max(all.high, r.high)}
                                  : r;
      }
    }
  });
  ValueRange all{1.0, -1.0};
  for (const Part& part : parts) {
    const ValueRange& r = part.range;
    if (r.low <= r.high) {
      all = all.low <= all.high ? ValueRange{std::min(all.low, r.low), std::max(all.high, r.high)}
                                : r;
    }
  }
  return rangeBetween(all.low, all.high);
}

void QuantizerBase::State::resolveBound(const CpuRun& run) {
  stage.range_in_use_ = 0.0;
  stage.abs_bound_ = 0.0;
  stage.bound_in_use_ = 0.0;
  if (stage.mode_ == ErrorBoundMode::REL) {
    return;
  }
  if (stage.mode_ == ErrorBoundMode::NOA) {
    stage.range_in_use_ = stage.value_base_ > 0.0 ? stage.value_base_ : scanRange(run);
  }
  const BinSettings settings = binSettings(stage.range_in_use_, rung);
  stage.abs_bound_ = settings.bound;
  stage.bound_in_use_ = settings.bound_in_use;
  rules_ = makeBinRules(settings);
}

/// Puts the outliers of a tile behind those of the tiles that came before it, if they fit.
void QuantizerBase::State::keepOutliers(const TileRange& range,
                                        std::size_t n_refused,
                                        const void* in) {
  const std::uint64_t begin = n_kept_.fetch_add(n_refused, std::memory_order_relaxed);
  kept_at_[range.first / cut_.tile_values] = begin;
  withBits(stage.value_type_, [&]<class U>(U /*bits*/) {
    if (begin + n_refused <= kept_.size() / sizeof(U)) {
      U* out = reinterpret_cast<U*>(kept_.data()) + begin;
      forEachRefused(refused_.data() + range.first / kMaskValues, range.n_values,
                     [&](std::size_t i) { *out++ = static_cast<const U*>(in)[i]; });
    }
  });
}

/// The values from the field, tile by tile.
template <class U>
void QuantizerBase::State::gatherOutliers(const CpuRun& run,
                                          std::span<const std::uint64_t> offsets) const {
  const U* const values = reinterpret_cast<const U*>(run.inputs[0].data());
  U* const out = reinterpret_cast<U*>(run.outputs[1].data());
  parallelFor(run.executor, offsets.size(), [&](std::size_t tile) {
    const TileRange range = cut_.at(tile);
    U* at = out + offsets[tile];
    forEachRefused(refused_.data() + range.first / kMaskValues, range.n_values,
                   [&](std::size_t i) { *at++ = values[range.first + i]; });
  });
}

/// The values that tiles kept, in the order of the tiles. One thread kept them so.
template <class U>
void QuantizerBase::State::orderOutliers(const CpuRun& run,
                                         std::span<const std::uint64_t> offsets,
                                         std::size_t n) {
  const auto end_of = [&](std::size_t tile) {
    return tile + 1 < offsets.size() ? offsets[tile + 1] : std::uint64_t{n};
  };
  bool is_ordered = true;
  for (std::size_t tile = 0; tile < offsets.size(); ++tile) {
    is_ordered = is_ordered && (offsets[tile] == end_of(tile) || offsets[tile] == kept_at_[tile]);
  }
  if (is_ordered) {
    return;
  }
  U* const out = reinterpret_cast<U*>(run.outputs[1].data());
  const auto kept = outliers_.get<U>(run.pool, n);
  std::copy_n(out, n, kept.data());
  parallelFor(run.executor, offsets.size(), [&](std::size_t tile) {
    if (offsets[tile] != end_of(tile)) {
      std::copy_n(kept.data() + kept_at_[tile], end_of(tile) - offsets[tile], out + offsets[tile]);
    }
  });
}

void QuantizerBase::State::writeOutliers(const CpuRun& run, std::size_t n_outliers) {
  if (n_outliers == 0) {
    return;
  }
  const auto offsets = tile_counts_.get<std::uint64_t>(run.pool, cut_.tileCount());
  parallelFor(run.executor, offsets.size(), [&](std::size_t tile) {
    const TileRange range = cut_.at(tile);
    const std::size_t n_masks = bits::ceilDiv(range.n_values, kMaskValues);
    offsets[tile] = 0;
    for (const std::uint64_t mask : refused_.subspan(range.first / kMaskValues, n_masks)) {
      if (mask != 0) {  // counting is slow where the machine may lack an instruction for it
        offsets[tile] += static_cast<std::uint64_t>(__builtin_popcountll(mask));
      }
    }
  });
  const std::uint64_t total = exclusiveScan(offsets);
  FZ_ASSERT(total == n_outliers);
  auto* const indices = reinterpret_cast<std::uint32_t*>(run.outputs[2].data());
  parallelFor(run.executor, offsets.size(), [&](std::size_t tile) {
    const TileRange range = cut_.at(tile);
    std::uint32_t* at = indices + offsets[tile];
    forEachRefused(refused_.data() + range.first / kMaskValues, range.n_values,
                   [&](std::size_t i) { *at++ = static_cast<std::uint32_t>(range.first + i); });
  });
  withBits(stage.value_type_, [&]<class U>(U /*bits*/) {
    kept_at_.empty() ? gatherOutliers<U>(run, offsets) : orderOutliers<U>(run, offsets, total);
  });
}

/// Lists that are not ascending, which our encoders do not write. With an index twice, the last
/// entry wins.
void QuantizerBase::State::sortOutliers(const CpuRun& run) {
  const std::size_t k = stage.n_outliers_;
  const std::size_t value_bytes = getDataTypeSize(stage.value_type_);
  const auto order = tile_counts_.get<std::uint64_t>(run.pool, k);
  for (std::size_t j = 0; j < k; ++j) {
    order[j] = std::uint64_t{indices_[j]} << 32 | j;
  }
  std::sort(order.begin(), order.end());
  const auto values = outliers_.get<std::uint8_t>(run.pool, k * value_bytes);
  const auto indices = tile_places_.get<std::uint32_t>(run.pool, k);
  for (std::size_t j = 0; j < k; ++j) {
    const std::size_t from = static_cast<std::uint32_t>(order[j]);
    indices[j] = static_cast<std::uint32_t>(order[j] >> 32);
    std::copy_n(values_ + from * value_bytes, value_bytes, values.data() + j * value_bytes);
  }
  indices_ = indices.data();
  values_ = values.data();
}

void QuantizerBase::State::takeOutliers(const CpuRun& run) {
  const std::size_t k = stage.n_outliers_;
  if (k == 0) {
    return;
  }
  indices_ = reinterpret_cast<const std::uint32_t*>(run.inputs[2].data());
  values_ = run.inputs[1].data();
  FirstIndex outside;
  FirstIndex unordered;
  parallelRanges(run.executor, k, [&](std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j) {
      if (indices_[j] >= stage.n_values_) {
        outside.record(j);
        return;
      }
      if (j > 0 && indices_[j] <= indices_[j - 1]) {
        unordered.record(j);
      }
    }
  });
  FZ_REQUIRE(!outside.found(), ErrorCode::kCorrupt,
             "Quantizer: outlier {} has index {} of {} values", outside.value(),
             indices_[outside.value()], stage.n_values_);
  if (unordered.found()) {
    sortOutliers(run);
  }
}

void QuantizerBase::State::putOutliers(const TileRange& range, void* out) const {
  const std::uint32_t* const end = indices_ + stage.n_outliers_;
  const std::uint32_t* at = std::lower_bound(indices_, end, range.first);
  withBits(stage.value_type_, [&]<class U>(U /*bits*/) {
    const U* const values = reinterpret_cast<const U*>(values_);
    for (; at != end && *at < range.first + range.n_values; ++at) {
      static_cast<U*>(out)[*at - range.first] = values[at - indices_];
    }
  });
}

}  // namespace fz::quantizer
