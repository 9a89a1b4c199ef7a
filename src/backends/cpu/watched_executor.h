#pragma once

#include "backends/cpu/parallel_for.h"
#include "fz/progress.h"

namespace fz {

/// Throws Error(kCancelled) where the caller asked the run to stop; null is nobody.
void requireNotCancelled(const RunProgress* progress);

/// Threads of another executor, which begin nothing more once their caller asked the run to stop:
/// run() then throws Error(kCancelled).
class WatchedExecutor final : public CpuExecutor {
 public:
  /// Both must outlive this.
  WatchedExecutor(const CpuExecutor& inner, const RunProgress& progress)
      : inner_(inner), progress_(progress) {}

  std::size_t threadCount() const noexcept override { return inner_.threadCount(); }
  bool isWatched() const noexcept override { return true; }
  void run(std::size_t n_items, Body body) const override;
  void requireNotCancelled() const override { fz::requireNotCancelled(&progress_); }

 private:
  const CpuExecutor& inner_;
  const RunProgress& progress_;
};

}  // namespace fz
