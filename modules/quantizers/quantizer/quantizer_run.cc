// The passes over the data: bound, codes, outliers, and back.
#include <algorithm>
#include <cmath>

#include "backends/cpu/parallel_for.h"
#include "backends/cpu/scan.h"
#include "core/require.h"
#include "quantizers/quantizer/quantizer.h"
#include "quantizers/quantizer/quantizer_bound_codec.h"
#include "quantizers/quantizer/quantizer_cpu.h"

namespace fz::quantizer {

namespace {

std::size_t tileCount(std::size_t n) {
  return bits::ceilDiv(n, kTileValues);
}
std::size_t tileLength(std::size_t tile, std::size_t n) {
  return std::min(kTileValues, n - tile * kTileValues);
}

/// Calls f(index) for every set bit of a tile's masks, in order, until f returns false.
template <class F>
void forEachRefused(const std::uint64_t* masks, std::size_t tile, std::size_t n, F f) {
  const std::size_t begin = tile * kTileValues;
  const std::size_t end = begin + tileLength(tile, n);
  for (std::size_t at = begin; at < end; at += kMaskValues) {
    for (std::uint64_t mask = masks[at / kMaskValues]; mask != 0; mask &= mask - 1) {
      if (!f(at + static_cast<std::size_t>(__builtin_ctzll(mask)))) {
        return;
      }
    }
  }
}

double valueAt(ByteView bytes, DataType type, std::size_t index) {
  return type == DataType::FLOAT32
             ? static_cast<double>(reinterpret_cast<const float*>(bytes.data())[index])
             : reinterpret_cast<const double*>(bytes.data())[index];
}

template <class U>
void gatherTile(const U* values,
                const std::uint64_t* masks,
                std::size_t tile,
                std::size_t n,
                U* out_values,
                std::uint32_t* out_indices) {
  forEachRefused(masks, tile, n, [&](std::size_t i) {
    *out_values++ = values[i];
    *out_indices++ = static_cast<std::uint32_t>(i);
    return true;
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

double QuantizerBase::scanRange(const CpuRun& run) const {
  const std::size_t value_bytes = getDataTypeSize(value_type_);
  const std::size_t n = n_values_;
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

void QuantizerBase::resolveBound(const CpuRun& run) {
  range_in_use_ = 0.0;
  abs_bound_ = 0.0;
  bound_in_use_ = 0.0;
  if (mode_ == ErrorBoundMode::REL) {
    return;
  }
  const bool is_float = value_type_ == DataType::FLOAT32;
  if (mode_ == ErrorBoundMode::NOA) {
    range_in_use_ = value_base_ > 0.0 ? value_base_ : scanRange(run);
  }
  abs_bound_ = absoluteBound(error_bound_, range_in_use_, is_float);
  bound_in_use_ = boundOfRung(abs_bound_, isLadder(), rung_, is_float);
}

CodeForm QuantizerBase::codeForm() const {
  return linear_    ? CodeForm::kLinear
         : inplace_ ? CodeForm::kInplace
         : zigzag_  ? CodeForm::kZigzag
                    : CodeForm::kTwosComplement;
}

std::size_t QuantizerBase::encodeCodes(const CpuRun& run) {
  const std::size_t n = n_values_;
  const Widths widths{getDataTypeSize(value_type_), getDataTypeSize(code_type_)};
  const std::span<std::uint64_t> masks =
      masks_.get<std::uint64_t>(run.pool, bits::ceilDiv(n, kMaskValues));
  const std::span<std::uint64_t> counts = tile_counts_.get<std::uint64_t>(run.pool, tileCount(n));
  const BinSettings abs{
      bound_in_use_, abs_bound_, linear_ ? std::numeric_limits<double>::infinity() : threshold_,
      radius_,       codeForm(), codeBits()};
  const RelSettings rel{error_bound_, threshold_, radius_, codeBits()};
  parallelFor(run.executor, counts.size(), [&](std::size_t tile) {
    const std::size_t begin = tile * kTileValues;
    const EncodeTileArgs args{
        run.inputs[0].data() + begin * widths.value_bytes, tileLength(tile, n),
        run.outputs[0].data() + begin * widths.code_bytes, masks.data() + begin / kMaskValues};
    counts[tile] = mode_ == ErrorBoundMode::REL ? encodeRelTile(widths, rel, args)
                                                : encodeAbsTile(widths, abs, args);
  });
  std::size_t n_refused = 0;
  for (const std::uint64_t count : counts) {
    n_refused += count;
  }
  return n_refused;
}

void QuantizerBase::writeOutliers(const CpuRun& run, std::size_t n_outliers) {
  if (n_outliers == 0) {
    return;
  }
  const std::size_t n = n_values_;
  const auto masks = masks_.get<std::uint64_t>(run.pool, bits::ceilDiv(n, kMaskValues));
  const auto offsets = tile_counts_.get<std::uint64_t>(run.pool, tileCount(n));
  const std::uint64_t total = exclusiveScan(offsets);
  FZ_ASSERT(total == n_outliers);
  auto* indices = reinterpret_cast<std::uint32_t*>(run.outputs[2].data());
  const auto gather = [&]<class U>(U /*bits*/) {
    const U* values = reinterpret_cast<const U*>(run.inputs[0].data());
    U* out = reinterpret_cast<U*>(run.outputs[1].data());
    parallelFor(run.executor, offsets.size(), [&](std::size_t tile) {
      gatherTile(values, masks.data(), tile, n, out + offsets[tile], indices + offsets[tile]);
    });
  };
  if (value_type_ == DataType::FLOAT32) {
    gather(std::uint32_t{});
  } else {
    gather(std::uint64_t{});
  }
}

void QuantizerBase::settleRefused(const CpuRun& run, std::size_t n_refused) {
  if (n_refused == 0) {
    return;
  }
  if (linear_ && policy_ != LinearPolicy::Wrap) {
    noteViolations(run, n_refused);
    return;
  }
  const std::size_t n = n_values_;
  const auto masks = masks_.get<std::uint64_t>(run.pool, bits::ceilDiv(n, kMaskValues));
  const auto counts = tile_counts_.get<std::uint64_t>(run.pool, tileCount(n));
  const BinSettings settings{bound_in_use_, abs_bound_,        threshold_,
                             radius_,       CodeForm::kLinear, codeBits()};
  const auto wrap = [&]<class T, class C>(T /*value*/, C /*code*/, std::size_t i) {
    const T x = reinterpret_cast<const T*>(run.inputs[0].data())[i];
    reinterpret_cast<C*>(run.outputs[0].data())[i] = wrappedCode<T, C>(x, makeBinRule<T>(settings));
  };
  const bool is_float = value_type_ == DataType::FLOAT32;
  const bool is_short = codeBits() == 16;
  parallelFor(run.executor, counts.size(), [&](std::size_t tile) {
    if (counts[tile] == 0) {
      return;
    }
    counts[tile] = 0;
    forEachRefused(masks.data(), tile, n, [&](std::size_t i) {
      if (linear_) {
        if (is_float) {
          is_short ? wrap(float{}, std::uint16_t{}, i) : wrap(float{}, std::uint32_t{}, i);
        } else {
          is_short ? wrap(double{}, std::uint16_t{}, i) : wrap(double{}, std::uint32_t{}, i);
        }
        return true;
      }
      const std::uint32_t raw = reinterpret_cast<const std::uint32_t*>(run.inputs[0].data())[i];
      reinterpret_cast<std::uint32_t*>(run.outputs[0].data())[i] = raw;
      if (isRawBits(raw, radius_)) {
        masks[i / kMaskValues] &= ~(std::uint64_t{1} << (i % kMaskValues));
      } else {
        ++counts[tile];
      }
      return true;
    });
  });
  std::size_t n_left = 0;
  for (const std::uint64_t count : counts) {
    n_left += count;
  }
  noteViolations(run, n_left);
}

void QuantizerBase::noteViolations(const CpuRun& run, std::size_t n_refused) {
  if (n_refused == 0) {
    return;
  }
  const std::size_t n = n_values_;
  const auto masks = masks_.get<std::uint64_t>(run.pool, bits::ceilDiv(n, kMaskValues));
  n_violations_ = n_refused;
  bool first = true;
  bool finite = true;
  for (std::size_t tile = 0; tile < tileCount(n) && finite; ++tile) {
    forEachRefused(masks.data(), tile, n, [&](std::size_t i) {
      const double value = valueAt(run.inputs[0], value_type_, i);
      if (first) {
        first_violation_ = i;
        first_violating_value_ = value;
        first = false;
      }
      finite = fp::isFinite(value);
      return finite;
    });
  }
  // No step helps a NaN or an infinity, so they end the ladder at once.
  if (isLadder() && finite && rung_ < kLastRung) {
    ++rung_;
    wants_rerun_ = true;
  }
}

void QuantizerBase::decodeCpu(const CpuRun& run) {
  std::size_t sizes[4] = {};
  const std::size_t n_inputs = std::min(run.inputs.size(), std::size_t{4});
  for (std::size_t i = 0; i < n_inputs; ++i) {
    sizes[i] = run.inputs[i].size();
  }
  const std::size_t n_bytes = decodedBytes({sizes, n_inputs});
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "Quantizer: {} bytes needed for the values, {} came", n_bytes, run.outputs[0].size());
  const Widths widths{getDataTypeSize(value_type_), getDataTypeSize(code_type_)};
  const CodeForm form = inplace_              ? CodeForm::kInplace
                        : zigzag_ && !linear_ ? CodeForm::kZigzag
                                              : CodeForm::kTwosComplement;
  const AbsDecodeSettings abs{bound_in_use_, radius_, form};
  const RelDecodeSettings rel{error_bound_, getStageVersion(), logStepV1(error_bound_)};
  const std::size_t n = n_values_;
  parallelFor(run.executor, tileCount(n), [&](std::size_t tile) {
    const std::size_t begin = tile * kTileValues;
    const DecodeTileArgs args{run.inputs[0].data() + begin * widths.code_bytes, tileLength(tile, n),
                              run.outputs[0].data() + begin * widths.value_bytes};
    if (mode_ == ErrorBoundMode::REL) {
      decodeRelTile(widths, rel, args);
    } else {
      decodeAbsTile(widths, abs, args);
    }
  });
  if (hasOutlierPorts()) {
    scatterOutliers(run);
  }
  setActualBytes(0, n_bytes);
}

void QuantizerBase::scatterOutliers(const CpuRun& run) const {
  const std::size_t k = n_outliers_;
  if (k == 0) {
    return;
  }
  const auto* indices = reinterpret_cast<const std::uint32_t*>(run.inputs[2].data());
  FirstIndex outside;
  FirstIndex unordered;
  parallelRanges(run.executor, k, [&](std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j) {
      if (indices[j] >= n_values_) {
        outside.note(j);
        return;
      }
      if (j > 0 && indices[j] <= indices[j - 1]) {
        unordered.note(j);
      }
    }
  });
  FZ_REQUIRE(!outside.found(), ErrorCode::kCorrupt,
             "Quantizer: outlier {} has index {} of {} values", outside.value(),
             indices[outside.value()], n_values_);
  // With an index twice, the last entry wins; only ascending lists can be cut for threads.
  const CpuExecutor& executor = unordered.found() ? CpuExecutor::serial() : run.executor;
  parallelRanges(executor, k, [&](std::size_t begin, std::size_t end) {
    if (value_type_ == DataType::FLOAT32) {
      scatterRange(reinterpret_cast<const std::uint32_t*>(run.inputs[1].data()), indices, begin,
                   end, reinterpret_cast<std::uint32_t*>(run.outputs[0].data()));
    } else {
      scatterRange(reinterpret_cast<const std::uint64_t*>(run.inputs[1].data()), indices, begin,
                   end, reinterpret_cast<std::uint64_t*>(run.outputs[0].data()));
    }
  });
}

}  // namespace fz::quantizer
