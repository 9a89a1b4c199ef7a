#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "format/frame_header.h"
#include "fz/limits.h"
#include "mem/mempool.h"
#include "pipeline/perf.h"
#include "shared/function_ref.h"

namespace fz {

struct DecodePlan;
class Engine;
class Stage;
struct ExecContext;
struct RunProgress;
namespace cuda {
class CallTimer;
class GraphNodeLauncher;
}  // namespace cuda

/// Where a decoded array goes: given its length, returns memory for it.
using OutputProvider = FunctionRef<void*(std::size_t n_bytes)>;

/// Runs the inverse of a frame's graph. Keeps the graph between calls, so frames of one pipeline
/// decode without building anything again.
class FrameDecoder {
 public:
  FrameDecoder(MemoryPool* pool, MemoryStrategy strategy);
  ~FrameDecoder();

  /// Stages for types that the registry does not know, by position in the frame; may hold nulls.
  void setCustomStages(std::vector<Stage*> stages) { custom_stages_ = std::move(stages); }

  /// Decodes a checked frame. Every size the frame claims is compared with what its parts can
  /// give before memory is taken. Throws Error (kCorrupt, kLimit, kUnsupported, kOutOfMemory).
  void decode(const FrameHeader& header,
              ByteView payload,
              const DecodeLimits& limits,
              const ExecContext& context,
              OutputProvider provide_output,
              cudaStream_t stream);

  /// Rows of the last decode.
  std::vector<StageTimingResult> collectTimings() const;
  /// The plan of the last decode; null before.
  const DecodePlan* plan() const { return plan_.get(); }
  const std::vector<Stage*>& customStages() const { return custom_stages_; }
  void enableProfiling(bool on) { profiling_ = on; }
  /// Bytes that a copy of the frame takes; they count against the memory limit.
  void setFrameCopyBytes(std::size_t n_bytes) { frame_copy_bytes_ = n_bytes; }
  /// Waits for the payload's checksum as a device finds it; the CPU computes its own. `may_write`:
  /// where the device records, before it decodes, whether it is the one that the header has.
  void setPayloadCrc(std::function<std::uint32_t()> wait_for_crc, const std::uint64_t* may_write) {
    wait_for_crc_ = std::move(wait_for_crc);
    may_write_ = may_write;
  }
  /// Counts stages as they are done; may be null.
  void setProgress(RunProgress* progress) { progress_ = progress; }
  /// Told when a device has the last work of a decode; may be null.
  void setCallTimer(cuda::CallTimer* timer) { call_timer_ = timer; }
  /// Launches a device's kernels; may be null.
  void setGraphNodes(cuda::GraphNodeLauncher* nodes) { graph_nodes_ = nodes; }
  bool isFor(MemoryStrategy strategy) const { return strategy_ == strategy; }

 private:
  class InverseMode;

  /// Runs the plan on a device until every size is settled.
  void runOnDevice(const FrameHeader& header, const ExecContext& context, cudaStream_t stream);
  void bindSegments(const FrameHeader& header, ByteView payload, cudaStream_t stream);

  MemoryPool* pool_;
  MemoryStrategy strategy_;
  std::vector<Stage*> custom_stages_;
  std::unique_ptr<DecodePlan> plan_;
  bool profiling_ = false;
  std::function<std::uint32_t()> wait_for_crc_;
  const std::uint64_t* may_write_ = nullptr;
  std::size_t frame_copy_bytes_ = 0;
  cuda::CallTimer* call_timer_ = nullptr;
  cuda::GraphNodeLauncher* graph_nodes_ = nullptr;
  RunProgress* progress_ = nullptr;
  std::vector<std::uint16_t> key_;  // of the frame at hand
};

}  // namespace fz
