#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fused/interp/bound.h"
#include "fused/interp/plan.h"
#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/span.h"
#include "fz/stage_descriptor.h"
#include "fzm_format.h"

namespace fz {
class ByteReader;
class ByteWriter;
}  // namespace fz

/// What a run works out before it codes anything, and the bytes of it. SPEC.md has the layout.
namespace fz::interp {

inline constexpr std::string_view kName = "Interp";
/// Indices of outliers have 32 bits.
inline constexpr std::uint64_t kMaxValues = 0xffffffffu;

/// What decoding needs.
struct RunConfig {
  DataType input_type = DataType::FLOAT32;
  DataType code_type = DataType::INT16;
  ErrorBoundMode mode = ErrorBoundMode::ABS;
  bool skips_missing = false;
  double error_bound = 0.0;     ///< as it was asked for
  double absolute_bound = 0.0;  ///< what it came to
  Scale scale;
  Extents dims = {};  ///< as they were given
  Plan plan;          ///< of squeezed(dims)

  std::uint64_t values() const { return std::uint64_t{dims[0]} * dims[1] * dims[2]; }
};

/// The extents without axes of one value, and those that are left moved to the front.
Extents squeezed(const Extents& dims);

/// Bytes of a plan in a config.
std::size_t planBytes(const Plan& plan);
void writePlan(const Plan& plan, ByteWriter& out);
/// A plan of untrusted bytes, all of them, for a field of these extents. Throws Error(kCorrupt).
Plan readPlan(ByteReader& in, const Extents& n);

std::size_t configBytes(const Plan& plan);
/// Of a plan in a config that has all bytes a stage can have.
inline constexpr std::size_t kMaxPlanBytes = FZM_STAGE_CONFIG_SIZE - 52;
void writeConfig(const RunConfig& config, ByteWriter& out);
/// Trusts nothing. Throws Error(kCorrupt).
RunConfig readConfig(ByteReader& in);
StageTypes typesFromConfig(ByteView config);

}  // namespace fz::interp
