#pragma once

#include <atomic>

#include "fz/cpu_tile.h"
#include "fz/span.h"

namespace fz {

/// Looks at the field of a run part by part, when that is in cache anyway, and from any thread.
/// Once it has found something, the run ends with Error(kBoundViolation).
class FieldWatch {
 public:
  virtual ~FieldWatch() = default;

  /// Before a run.
  void reset() { has_found_.store(false, std::memory_order_relaxed); }
  /// Whole values, aligned to their size.
  void look(ByteView part) noexcept {
    if (!hasFound() && isThereIn(part)) {
      has_found_.store(true, std::memory_order_relaxed);
    }
  }
  /// What it looks for besides NaN and infinities; the same for all of a run.
  virtual SoughtValues sought() const noexcept = 0;
  bool hasFound() const noexcept { return has_found_.load(std::memory_order_relaxed); }

 private:
  virtual bool isThereIn(ByteView part) const noexcept = 0;

  std::atomic<bool> has_found_ = false;
};

}  // namespace fz
