#pragma once

#include <cstdint>

namespace fz {

/// A stage of a fused group that may write to its output before the group's kernel does. Its kernel
/// looks whether it may, as the group's does, so that damage leaves the caller's memory alone.
class EarlyOutput {
 public:
  /// Of the run that begins next: on the device, not 0 when it may write; null: it may.
  virtual void setOutputGate(const std::uint64_t* /*gate*/) {}

 protected:
  EarlyOutput() = default;
  EarlyOutput(const EarlyOutput&) = default;
  EarlyOutput& operator=(const EarlyOutput&) = default;
  ~EarlyOutput() = default;
};

}  // namespace fz
