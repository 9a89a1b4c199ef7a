// Runs on the CPU: what the bound comes to, the plan, and the lists of outliers.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "backends/cpu/parallel_for.h"
#include "backends/cpu/scan.h"
#include "core/require.h"
#include "core/size_limit.h"
#include "fused/interp/cpu/args.h"
#include "fused/interp/cpu/plan_search.h"
#include "fused/interp/cpu/state.h"
#include "fz/byte_io.h"
#include "fzm_format.h"

namespace fz::interp {

namespace {

constexpr std::size_t kScanValues = 1 << 16;
constexpr std::size_t kWordValues = 64;

/// f(begin, end, part) for parts of a field.
template <class F>
void forScanParts(const CpuRun& run, std::size_t n_values, F f) {
  parallelFor(run.executor, bits::ceilDiv(n_values, kScanValues), [&](std::size_t part) {
    f(part * kScanValues, std::min(n_values, (part + 1) * kScanValues), part);
  });
}

/// f.operator()<T>() for the type of a field.
template <class F>
void withFieldType(DataType type, F f) {
  if (type == DataType::FLOAT32) {
    f.template operator()<float>();
  } else {
    f.template operator()<double>();
  }
}

Source fieldSource(const CpuRun& run, const RunConfig& config, bool has_gaps) {
  const Extents n = squeezed(config.dims);
  return {run.inputs[0].data(),     config.input_type, n[0],
          std::size_t{n[0]} * n[1], has_gaps,          &config.scale};
}

}  // namespace

InterpBase::InterpBase(DataType input_type, DataType code_type)
    : input_type_(input_type), code_type_(code_type), state_(std::make_unique<State>(*this)) {
}
InterpBase::~InterpBase() = default;

void InterpBase::encodeCpu(const CpuRun& run) {
  state_->encode(run);
}
void InterpBase::decodeCpu(const CpuRun& run) {
  state_->decode(run);
}

std::optional<TuneFamily> tuneFamily(std::string_view setting) {
  return setting == "auto"           ? std::optional(TuneFamily::kAll)
         : setting == "lorenzo:auto" ? std::optional(TuneFamily::kLorenzo)
                                     : std::nullopt;
}

Plan planFor(std::string_view setting, const Extents& n) {
  const bool is_iso = setting == "iso" || tuneFamily(setting);
  return is_iso ? isoPlan(n) : fittedPlan(parsePlan(setting), n);
}

ValueRange InterpBase::State::scan(const CpuRun& run) {
  const std::size_t value_bytes = getDataTypeSize(stage.input_type_);
  const std::size_t n = config.values();
  const auto parts = range_memory.get<ValueRange>(run.pool, bits::ceilDiv(n, kScanValues));
  forScanParts(run, n, [&](std::size_t begin, std::size_t end, std::size_t part) {
    parts[part] =
        rangeOf(run.inputs[0].data() + begin * value_bytes, end - begin, stage.input_type_);
  });
  ValueRange all;
  for (const ValueRange& part : parts) {
    if (part.has_finite) {
      all.min = all.has_finite ? std::min(all.min, part.min) : part.min;
      all.max = all.has_finite ? std::max(all.max, part.max) : part.max;
      all.has_finite = true;
    }
    all.has_others = all.has_others || part.has_others;
  }
  return all;
}

void InterpBase::State::beginEncode(std::size_t n_bytes) {
  const std::size_t value_bytes = getDataTypeSize(stage.input_type_);
  FZ_REQUIRE(n_bytes % value_bytes == 0, ErrorCode::kBadSize,
             "{}: input size {} is not a multiple of {} bytes", kName, n_bytes, value_bytes);
  const std::size_t n = n_bytes / value_bytes;
  FZ_REQUIRE_SIZE(n <= kMaxValues, std::string(kName), "at most {} values, got {}", kMaxValues, n);
  const auto dims = stage.dims_.resolve(n, kName);
  for (const std::size_t extent : dims) {
    FZ_REQUIRE(extent <= kMaxValues, ErrorCode::kBadSize, "{}: extents must be at most {}, not {}",
               kName, kMaxValues, extent);
  }
  config.input_type = stage.input_type_;
  config.code_type = stage.code_type_;
  config.mode = stage.mode_;
  config.skips_missing = stage.skips_missing_;
  config.error_bound = stage.error_bound_;
  config.dims = {static_cast<std::uint32_t>(dims[0]), static_cast<std::uint32_t>(dims[1]),
                 static_cast<std::uint32_t>(dims[2])};
}

std::uint32_t InterpBase::State::bestSubBits(const CpuRun& run, const ValueRange& range) {
  using Counts = std::array<std::uint64_t, kMaxSubBits + 1>;
  std::array<Scale, kMaxSubBits + 1> scales;
  for (std::uint32_t bits = 0; bits <= kMaxSubBits; ++bits) {
    scales[bits] = scaleOf(config.absolute_bound, range, stage.input_type_, bits).scale;
  }
  const std::size_t n = config.values();
  const auto parts = counts_memory.get<Counts>(run.pool, bits::ceilDiv(n, kScanValues));
  withFieldType(stage.input_type_, [&]<class T>() {
    const T* const values = reinterpret_cast<const T*>(run.inputs[0].data());
    forScanParts(run, n, [&](std::size_t begin, std::size_t end, std::size_t part) {
      Counts counts = {};
      for (std::size_t i = begin; i < end; ++i) {
        for (std::uint32_t bits = 0; bits <= kMaxSubBits; ++bits) {
          counts[bits] += isCodable(scaled(values[i], scales[bits])) ? 1u : 0u;
        }
      }
      parts[part] = counts;
    });
  });
  Counts all = {};
  for (const Counts& counts : parts) {
    for (std::uint32_t bits = 0; bits <= kMaxSubBits; ++bits) {
      all[bits] += counts[bits];
    }
  }
  return interp::bestSubBits(all.data());
}

Fixing InterpBase::State::fix(const CpuRun& run, const ValueRange& range) {
  Fixing made = makeScale(config.absolute_bound, range, stage.input_type_);
  if (!made.is_complete) {
    made = scaleOf(config.absolute_bound, range, stage.input_type_, bestSubBits(run, range));
  }
  return made;
}

void InterpBase::State::markUncoded(const CpuRun& run, const OutlierBits& bits) const {
  withFieldType(stage.input_type_, [&]<class T>() {
    const T* const values = reinterpret_cast<const T*>(run.inputs[0].data());
    forScanParts(run, config.values(), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        const bool is_nan = values[i] != values[i];
        if (!isCodable(scaled(values[i], config.scale)) && !(is_nan && config.skips_missing)) {
          bits.mark(i);
        }
      }
    });
  });
}

void InterpBase::State::takePlan(Tuned tuned) {
  config.plan = tuned.plan;
  reason = std::move(tuned.reason);
  FZ_REQUIRE(configBytes(config.plan) <= FZM_STAGE_CONFIG_SIZE, ErrorCode::kInvalidArgument,
             "{}: the plan takes {} bytes of a config of {}", kName, configBytes(config.plan),
             FZM_STAGE_CONFIG_SIZE);
}

void InterpBase::State::encode(const CpuRun& run) {
  has_run = false;
  beginEncode(run.inputs[0].size());
  const ValueRange range = scan(run);
  const double base = stage.value_base_ > 0.0 ? stage.value_base_ : fp::sub(range.max, range.min);
  config.absolute_bound = resolveBound(config.error_bound, config.mode, base);
  const Fixing fixing = fix(run, range);
  config.scale = fixing.scale;
  const bool has_gaps = range.has_others || !fixing.is_complete;
  const Source source = fieldSource(run, config, has_gaps);
  const Extents n = squeezed(config.dims);
  const std::optional<TuneFamily> family = tuneFamily(stage.plan_);
  Tuned tuned = family ? tunePlan({run.executor, search_memory, stage.code_type_}, source, n,
                                  config.scale.sub_bits, *family, kMaxPlanBytes)
                       : Tuned{planFor(stage.plan_, n), {}};
  takePlan(std::move(tuned));
  const std::size_t n_code_bytes =
      stepsCodes(config.plan.steps(), n) * getDataTypeSize(stage.code_type_);
  if (run.outputs[0].size() < n_code_bytes) {
    stage.requestOutputBytes(0, n_code_bytes);
    return;
  }
  const std::size_t n_values = config.values();
  const auto words = bits_memory.get<std::uint64_t>(run.pool, bits::ceilDiv(n_values, kWordValues));
  std::fill(words.begin(), words.end(), std::uint64_t{0});
  const FieldCheck check = {run.inputs[0].data(), config.input_type, config.scale,
                            config.absolute_bound};
  Core c = core(run);
  c.outliers = {words.data()};
  c.check = fixing.is_proved ? nullptr : &check;
  if (has_gaps) {
    markUncoded(run, c.outliers);
  }
  encodePlan(c, wholePlan(config.plan, n, config.scale.sub_bits), source, run.outputs[0].data(),
             Lattice{});
  has_run = true;
  stage.setActualBytes(0, n_code_bytes);
  writeOutliers(run, words);
}

void InterpBase::State::writeOutliers(const CpuRun& run, std::span<const std::uint64_t> words) {
  const std::size_t n = config.values();
  const auto places = counts_memory.get<std::uint64_t>(run.pool, bits::ceilDiv(n, kScanValues));
  const auto wordsOf = [&](std::size_t begin, std::size_t end) {
    return words.subspan(begin / kWordValues, bits::ceilDiv(end - begin, kWordValues));
  };
  forScanParts(run, n, [&](std::size_t begin, std::size_t end, std::size_t part) {
    std::uint64_t count = 0;
    for (const std::uint64_t word : wordsOf(begin, end)) {
      count += static_cast<std::uint64_t>(std::popcount(word));
    }
    places[part] = count;
  });
  const std::size_t n_outliers = exclusiveScan(places);
  const std::size_t value_bytes = getDataTypeSize(stage.input_type_);
  const std::size_t n_bytes = n_outliers * (sizeof(std::uint32_t) + value_bytes);
  if (run.outputs[1].size() < n_bytes) {
    stage.requestOutputBytes(1, n_bytes);
    return;
  }
  const std::uint8_t* const values = run.inputs[0].data();
  std::uint8_t* const indices = run.outputs[1].data();
  std::uint8_t* const kept = indices + n_outliers * sizeof(std::uint32_t);
  forScanParts(
      run, n_outliers == 0 ? 0 : n, [&](std::size_t begin, std::size_t end, std::size_t part) {
        std::size_t place = places[part];
        std::size_t first = begin;
        for (std::uint64_t word : wordsOf(begin, end)) {
          for (; word != 0; word &= word - 1, ++place) {
            const std::size_t index = first + bits::firstSet(word);
            storeLe(indices + place * sizeof(std::uint32_t), static_cast<std::uint32_t>(index));
            std::memcpy(kept + place * value_bytes, values + index * value_bytes, value_bytes);
          }
          first += kWordValues;
        }
      });
  stage.setActualBytes(1, n_bytes);
}

std::size_t InterpBase::State::checkedOutliers(const CpuRun& run) const {
  const std::size_t entry_bytes = sizeof(std::uint32_t) + getDataTypeSize(stage.input_type_);
  const std::size_t n = run.inputs[1].size() / entry_bytes;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t index = loadLe<std::uint32_t>(run.inputs[1].data() + 4 * i);
    FZ_REQUIRE(index >= next && index < config.values(), ErrorCode::kCorrupt,
               "{}: outlier {} at index {} of {} values", kName, i, index, config.values());
    next = index + 1;
  }
  return n;
}

void InterpBase::State::decode(const CpuRun& run) {
  const std::array<std::size_t, 2> sizes = {run.inputs[0].size(),
                                            run.inputs.size() > 1 ? run.inputs[1].size() : 0};
  const std::size_t n_bytes =
      stage.decodedBytes(std::span(sizes).first(std::min<std::size_t>(run.inputs.size(), 2)));
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "{}: output needs {} bytes, has {}", kName, n_bytes, run.outputs[0].size());
  const std::size_t n_outliers = checkedOutliers(run);
  const Extents n = squeezed(config.dims);
  std::uint8_t* const out = run.outputs[0].data();
  decodePlan(core(run), wholePlan(config.plan, n, config.scale.sub_bits), run.inputs[0].data(),
             {out, config.input_type, n[0], std::size_t{n[0]} * n[1], config.scale});
  const std::size_t value_bytes = getDataTypeSize(stage.input_type_);
  const std::uint8_t* const indices = run.inputs[1].data();
  const std::uint8_t* const kept = indices + n_outliers * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < n_outliers; ++i) {
    const std::size_t index = loadLe<std::uint32_t>(indices + 4 * i);
    std::memcpy(out + index * value_bytes, kept + i * value_bytes, value_bytes);
  }
  stage.setActualBytes(0, n_bytes);
}

}  // namespace fz::interp
