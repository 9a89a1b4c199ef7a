#include "fused/interp/config.h"

#include <algorithm>
#include <cmath>

#include "core/require.h"
#include "fz/byte_io.h"
#include "shared/fp.h"

namespace fz::interp {

namespace {

constexpr std::size_t kPlanOffset = 52;  // SPEC: config

// Bits of a level. SPEC: plan.
constexpr std::uint32_t kNestedBit = 3;
constexpr std::uint32_t kFirstKernelBit = 4;
constexpr std::uint32_t kKernelBits = 2;
constexpr std::uint32_t kPairBits = 3;
constexpr std::uint32_t kCubeBits = 4;

std::size_t levelBytes(Axes axes) {
  return countAxes(axes);  // 6, 11 or 23 bits
}

}  // namespace

Extents squeezed(const Extents& dims) {
  Extents left = {1, 1, 1};
  std::size_t n = 0;
  for (const std::uint32_t extent : dims) {
    if (extent != 1) {
      left[n++] = extent;
    }
  }
  return left;
}

std::size_t planBytes(const Plan& plan) {
  std::size_t n_bytes = 2;
  for (const Level& level : plan.steps().levels) {
    n_bytes += levelBytes(level.axes) + (level.is_nested ? 1 : 0);
  }
  return n_bytes;
}

void writePlan(const Plan& plan, ByteWriter& out) {
  const std::span<const Level> levels = plan.steps().levels;
  out.u8(static_cast<std::uint8_t>(plan.lorenzo | (plan.has_alpha ? 1 << kNestedBit : 0)));
  out.u8(static_cast<std::uint8_t>(countOuter(levels)));
  for (const Level& level : levels) {
    std::uint32_t word = level.axes | (level.is_nested ? 1u << kNestedBit : 0u);
    std::uint32_t at = kFirstKernelBit;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (has(level.axes, axis)) {
        word |= static_cast<std::uint32_t>(level.kernels[axis]) << at;
        at += kKernelBits;
      }
    }
    for (std::size_t pair = 0; pair < 3; ++pair) {
      if ((level.axes & kPairs[pair]) == kPairs[pair]) {
        word |= std::uint32_t{level.pair_sets[pair]} << at;
        at += kPairBits;
      }
    }
    word |= level.axes == kXyz ? std::uint32_t{level.cube_set} << at : 0u;
    for (std::size_t i = 0; i < levelBytes(level.axes); ++i) {
      out.u8(static_cast<std::uint8_t>(word >> (8 * i)));
    }
    if (level.is_nested) {
      out.u8(static_cast<std::uint8_t>(level.inner_lorenzo | level.n_inner << 3));
    }
  }
}

namespace {

Level readLevel(ByteReader& in) {
  Level level;
  std::uint32_t word = in.u8();
  level.axes = static_cast<Axes>(word & kXyz);
  level.is_nested = (word >> kNestedBit & 1) != 0;
  for (std::size_t i = 1; i < levelBytes(level.axes); ++i) {
    word |= std::uint32_t{in.u8()} << (8 * i);
  }
  word >>= kFirstKernelBit;
  const auto take = [&](std::uint32_t n_bits, std::uint32_t end) {
    const std::uint32_t value = word & ((1u << n_bits) - 1);
    word >>= n_bits;
    FZ_REQUIRE(value < end, ErrorCode::kCorrupt, "Interp: a level with choice {} of {}", value,
               end);
    return static_cast<std::uint8_t>(value);
  };
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (has(level.axes, axis)) {
      level.kernels[axis] = static_cast<Kernel>(take(kKernelBits, kKernels));
    }
  }
  for (std::size_t pair = 0; pair < 3; ++pair) {
    if ((level.axes & kPairs[pair]) == kPairs[pair]) {
      level.pair_sets[pair] = take(kPairBits, kPairSets.size());
    }
  }
  if (level.axes == kXyz) {
    level.cube_set = take(kCubeBits, kCubeSets.size());
  }
  FZ_REQUIRE(word == 0 && !in.failed(), ErrorCode::kCorrupt, "Interp: a level with bits left over");
  if (level.is_nested) {
    const std::uint8_t inner = in.u8();
    level.inner_lorenzo = static_cast<Axes>(inner & kXyz);
    level.n_inner = static_cast<std::uint8_t>(inner >> 3);
  }
  return level;
}

/// Levels from fine to coarse on a lattice of n, and Lorenzo on what is left of it.
void checkSteps(const Steps& steps, Extents n, Axes allowed) {
  for (Steps rest = steps; !rest.levels.empty(); rest = withoutFinest(rest)) {
    const std::span<const Level> group = finest(rest.levels);
    const Level& level = group.front();
    FZ_REQUIRE(level.axes != 0 && (level.axes & ~(allowed & activeAxes(n))) == 0,
               ErrorCode::kCorrupt, "Interp: a level along axes {} of a lattice of {} x {} x {}",
               level.axes, n[0], n[1], n[2]);
    if (level.is_nested) {
      FZ_REQUIRE(countAxes(level.axes) == 1 && allowed == kXyz, ErrorCode::kCorrupt,
                 "Interp: a nested level along axes {}", level.axes);
      checkSteps(innerSteps(group), pointsOf(n, level.axes, level.axes),
                 static_cast<Axes>(kXyz & ~level.axes));
    }
    n = halved(n, level.axes);
  }
  FZ_REQUIRE((steps.lorenzo & ~activeAxes(n)) == 0, ErrorCode::kCorrupt,
             "Interp: Lorenzo along axes {} of a lattice of {} x {} x {}", steps.lorenzo, n[0],
             n[1], n[2]);
}

}  // namespace

Plan readPlan(ByteReader& in, const Extents& n) {
  Plan plan;
  const std::uint8_t first = in.u8();
  const std::uint8_t n_outer = in.u8();
  plan.lorenzo = static_cast<Axes>(first & kXyz);
  plan.has_alpha = first >> kNestedBit == 1;
  FZ_REQUIRE(first < 16 && !in.failed(), ErrorCode::kCorrupt, "Interp: a plan that begins with {}",
             first);
  for (std::uint32_t outer = 0; outer < n_outer; ++outer) {
    std::uint32_t n_inner = 0;
    for (std::uint32_t i = 0; i <= n_inner; ++i) {
      const Level level = readLevel(in);
      FZ_REQUIRE(!in.failed() && (i == 0 || !level.is_nested) && plan.add(level),
                 ErrorCode::kCorrupt, "Interp: a plan that ends in level {}, or nests twice",
                 plan.n_levels);
      n_inner = i == 0 ? level.n_inner : n_inner;
    }
  }
  FZ_REQUIRE(in.remaining() == 0, ErrorCode::kCorrupt, "Interp: {} bytes behind the plan",
             in.remaining());
  checkSteps(plan.steps(), n, kXyz);
  return plan;
}

std::size_t configBytes(const Plan& plan) {
  return kPlanOffset + planBytes(plan);
}

void writeConfig(const RunConfig& config, ByteWriter& out) {
  out.u8(static_cast<std::uint8_t>(config.input_type));
  out.u8(static_cast<std::uint8_t>(config.code_type));
  out.u8(static_cast<std::uint8_t>(config.mode));
  out.u8(static_cast<std::uint8_t>(config.scale.sub_bits));
  out.u8(config.skips_missing ? 1 : 0).zeros(3);
  out.f64(config.error_bound).f64(config.absolute_bound);
  out.f64(config.scale.units_per_value).f64(config.scale.origin);
  for (const std::uint32_t extent : config.dims) {
    out.u32(extent);
  }
  writePlan(config.plan, out);
}

RunConfig readConfig(ByteReader& in) {
  RunConfig config;
  config.input_type = static_cast<DataType>(in.u8());
  config.code_type = static_cast<DataType>(in.u8());
  const std::uint8_t mode = in.u8();
  config.scale.sub_bits = in.u8();
  const std::uint8_t missing = in.u8();
  const std::uint32_t zeros = in.u16() | std::uint32_t{in.u8()} << 16;
  config.error_bound = in.f64();
  config.absolute_bound = in.f64();
  config.scale.units_per_value = in.f64();
  config.scale.origin = in.f64();
  for (std::uint32_t& extent : config.dims) {
    extent = in.u32();
  }
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "{}: config of less than {} bytes", kName,
             kPlanOffset);
  config.mode = static_cast<ErrorBoundMode>(mode);
  FZ_REQUIRE((config.mode == ErrorBoundMode::ABS || config.mode == ErrorBoundMode::NOA) &&
                 config.scale.sub_bits <= kMaxSubBits && missing <= 1 && zeros == 0,
             ErrorCode::kCorrupt, "{}: config with mode {}, {} sub-bin bits, missing {}", kName,
             mode, config.scale.sub_bits, missing);
  config.skips_missing = missing == 1;
  FZ_REQUIRE(std::isfinite(config.error_bound) && config.error_bound > 0.0 &&
                 std::isfinite(config.absolute_bound) && config.absolute_bound >= 0.0,
             ErrorCode::kCorrupt, "{}: config with the error bound {}, absolute {}", kName,
             config.error_bound, config.absolute_bound);
  config.scale.value_per_unit = fp::div(1.0, config.scale.units_per_value);
  FZ_REQUIRE(std::isnormal(config.scale.units_per_value) && config.scale.units_per_value > 0.0 &&
                 std::isnormal(config.scale.value_per_unit) && std::isfinite(config.scale.origin),
             ErrorCode::kCorrupt, "{}: config with {} units per value from {} on", kName,
             config.scale.units_per_value, config.scale.origin);
  std::uint64_t n_values = 0;
  FZ_REQUIRE(!__builtin_mul_overflow(std::uint64_t{config.dims[0]} * config.dims[1],
                                     std::uint64_t{config.dims[2]}, &n_values) &&
                 n_values <= kMaxValues,
             ErrorCode::kCorrupt, "{}: config with dims {} x {} x {}", kName, config.dims[0],
             config.dims[1], config.dims[2]);
  config.plan = readPlan(in, squeezed(config.dims));
  return config;
}

StageTypes typesFromConfig(ByteView config) {
  if (config.size() < 2) {
    return {DataType::FLOAT32, DataType::INT16};  // readConfig refuses it with a better message
  }
  return {static_cast<DataType>(config[0]), static_cast<DataType>(config[1])};
}

}  // namespace fz::interp
