#pragma once

namespace fz {

struct CudaRun;

/// A stage of a fused group that may write to its output before the group's kernel does, which
/// looks by itself whether it may. Whoever decodes waits for the payload's checksum first, so that
/// damage leaves the caller's memory alone.
class EarlyOutput {
 public:
  /// Whether beginGroupCuda enqueues such a write for this run.
  virtual bool writesEarly(const CudaRun& /*run*/) const { return false; }

 protected:
  EarlyOutput() = default;
  EarlyOutput(const EarlyOutput&) = default;
  EarlyOutput& operator=(const EarlyOutput&) = default;
  ~EarlyOutput() = default;
};

}  // namespace fz
