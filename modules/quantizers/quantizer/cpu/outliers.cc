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

template <class U>
void gatherTile(const U* values,
                const std::uint64_t* masks,
                std::size_t begin,
                std::size_t n,
                U* out_values,
                std::uint32_t* out_indices) {
  forEachRefused(masks + begin / kMaskValues, n, [&](std::size_t i) {
    *out_values++ = values[begin + i];
    *out_indices++ = static_cast<std::uint32_t>(begin + i);
  });
}

template <class U>
void scatterRange(
    const U* values, const std::uint32_t* indices, std::size_t begin, std::size_t end, U* out) {
  for (std::size_t j = begin; j < end; ++j) {
    out[indices[j]] = values[j];
  }
}

}  // namespace

float logStepV1(double bound) {
  const float ratio = 1.0f + static_cast<float>(std::min(bound, 0x1p100));
  return 2.0f * std::log2(ratio);  // legacy libm: what the writers of version 1 used
}

double QuantizerBase::State::scanRange(const CpuRun& run) const {
  const std::size_t value_bytes = getDataTypeSize(stage.value_type_);
  const std::size_t n = stage.n_values_;
  struct alignas(64) Part {
    ValueRange range{1.0, -1.0};
  };
  // A fixed number of parts, so nothing is allocated; min and max do not care about the grouping.
  constexpr std::size_t kParts = 64;
  Part parts[kParts];
  const std::size_t n_tiles = tileCount(n);
  parallelFor(run.executor, std::min(kParts, n_tiles), [&](std::size_t part) {
    ValueRange& all = parts[part].range;
    for (std::size_t tile = part; tile < n_tiles; tile += kParts) {
      const ValueRange r =
          rangeOfTile(value_bytes, run.inputs[0].data() + tile * kTileValues * value_bytes,
                      tileLength(tile, n));
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

void QuantizerBase::State::writeOutliers(const CpuRun& run, std::size_t n_outliers) {
  if (n_outliers == 0) {
    return;
  }
  const std::size_t n = stage.n_values_;
  const auto offsets = tile_counts_.get<std::uint64_t>(run.pool, tileCount(n));
  parallelFor(run.executor, offsets.size(), [&](std::size_t tile) {
    const std::size_t first = tile * (kTileValues / kMaskValues);
    const std::size_t n_masks = bits::ceilDiv(tileLength(tile, n), kMaskValues);
    offsets[tile] = 0;
    for (const std::uint64_t mask : refused_.subspan(first, n_masks)) {
      offsets[tile] += static_cast<std::uint64_t>(__builtin_popcountll(mask));
    }
  });
  const std::uint64_t total = exclusiveScan(offsets);
  FZ_ASSERT(total == n_outliers);
  auto* indices = reinterpret_cast<std::uint32_t*>(run.outputs[2].data());
  const auto gather = [&]<class U>(U /*bits*/) {
    const U* values = reinterpret_cast<const U*>(run.inputs[0].data());
    U* out = reinterpret_cast<U*>(run.outputs[1].data());
    parallelFor(run.executor, offsets.size(), [&](std::size_t tile) {
      gatherTile(values, refused_.data(), tile * kTileValues, tileLength(tile, n),
                 out + offsets[tile], indices + offsets[tile]);
    });
  };
  if (stage.value_type_ == DataType::FLOAT32) {
    gather(std::uint32_t{});
  } else {
    gather(std::uint64_t{});
  }
}

void QuantizerBase::State::scatterOutliers(const CpuRun& run) const {
  const std::size_t k = stage.n_outliers_;
  if (k == 0) {
    return;
  }
  const auto* indices = reinterpret_cast<const std::uint32_t*>(run.inputs[2].data());
  FirstIndex outside;
  FirstIndex unordered;
  parallelRanges(run.executor, k, [&](std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j) {
      if (indices[j] >= stage.n_values_) {
        outside.record(j);
        return;
      }
      if (j > 0 && indices[j] <= indices[j - 1]) {
        unordered.record(j);
      }
    }
  });
  FZ_REQUIRE(!outside.found(), ErrorCode::kCorrupt,
             "Quantizer: outlier {} has index {} of {} values", outside.value(),
             indices[outside.value()], stage.n_values_);
  // With an index twice, the last entry wins; only ascending lists can be cut for threads.
  const CpuExecutor& executor = unordered.found() ? CpuExecutor::serial() : run.executor;
  parallelRanges(executor, k, [&](std::size_t begin, std::size_t end) {
    if (stage.value_type_ == DataType::FLOAT32) {
      scatterRange(reinterpret_cast<const std::uint32_t*>(run.inputs[1].data()), indices, begin,
                   end, reinterpret_cast<std::uint32_t*>(run.outputs[0].data()));
    } else {
      scatterRange(reinterpret_cast<const std::uint64_t*>(run.inputs[1].data()), indices, begin,
                   end, reinterpret_cast<std::uint64_t*>(run.outputs[0].data()));
    }
  });
}

}  // namespace fz::quantizer
