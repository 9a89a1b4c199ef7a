#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

/// What the executors ask of a stage, in its current direction, beyond what programs may.
struct StageAccess {
  /// The device side; null where the stage has none in this build.
  static CudaPart* cudaPart(const SimpleStage& stage);
  /// Whether it has kernels for the current direction.
  static bool hasKernels(const SimpleStage& stage);
  static std::vector<DeviceField> deviceFields(const SimpleStage& stage);
  /// Whether the size of output `port` follows from the sizes of the inputs.
  static bool isOutputSizeFixed(const SimpleStage& stage, std::size_t port);
  static CpuTilePart* cpuTilePart(SimpleStage& stage) { return stage.cpuTilePart(); }

  /// What execute() does before and after the stage's work, for a group that does the work.
  static void beginInGroup(SimpleStage& stage,
                           MemoryPool* pool,
                           const std::vector<void*>& inputs,
                           const std::vector<void*>& outputs,
                           const std::vector<std::size_t>& sizes,
                           const TileCut& cut);
  static void endInGroup(SimpleStage& stage, MemoryPool* pool);

  /// Enqueues the stage's work on a device; on the host, with copies and waits, where it has no
  /// kernels.
  static void enqueueCuda(SimpleStage& stage, const cuda::Call& call);
  /// After the records were read back: takes the sizes over, asks for larger outputs, throws what
  /// the device found.
  static void finishCuda(SimpleStage& stage,
                         const StageRecord& record,
                         std::span<const std::size_t> capacities);

 private:
  static void runOnHost(SimpleStage& stage, const cuda::Call& call);
};

}  // namespace fz
