#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fused/interp/config.h"
#include "fused/interp/cpu/grid.h"
#include "fused/interp/cpu/plan_search.h"
#include "fused/interp/interp_stage.h"
#include "mem/scratch.h"

namespace fz::interp {

/// The plan that a setting means for a field of these extents.
Plan planFor(std::string_view setting, const Extents& n);

/// Smallest and largest finite value of a part of a field.
ValueRange rangeOf(const void* values, std::size_t n_values, DataType type);

/// What a run found, or a config said, and the memory of runs.
struct InterpBase::State {
  explicit State(InterpBase& owner) : stage(owner) {}

  void encode(const CpuRun& run);
  void decode(const CpuRun& run);

  InterpBase& stage;
  RunConfig config;
  bool has_run = false;
  std::string reason;  ///< why the plan of the last encode was chosen; empty: nothing was searched

  Core core(const CpuRun& run) {
    return {run.executor, run.pool, stack, worker_memory, stage.code_type_, {}, nullptr};
  }
  /// Checks the size of what came; sets all of the config but scale and plan.
  void beginEncode(std::size_t n_bytes);
  /// Throws Error(kInvalidArgument) where a config has no room for it.
  void takePlan(Tuned tuned);
  ValueRange scan(const CpuRun& run);
  Fixing fix(const CpuRun& run, const ValueRange& range);
  /// The sub-bin bits with which most values have a fixed point, where not all can.
  std::uint32_t bestSubBits(const CpuRun& run, const ValueRange& range);
  /// Marks the values that have no fixed point.
  void markUncoded(const CpuRun& run, const OutlierBits& bits) const;
  void writeOutliers(const CpuRun& run, std::span<const std::uint64_t> words);
  /// Throws Error(kCorrupt) unless indices ascend and exist.
  std::size_t checkedOutliers(const CpuRun& run) const;

  ScratchStack stack;
  Scratch worker_memory;
  SearchMemory search_memory;
  Scratch range_memory;
  Scratch bits_memory;
  Scratch counts_memory;
};

}  // namespace fz::interp
