#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace fz {

/// How far a pipeline's call has come. The pipeline counts, anybody may look at any time from any
/// thread, or ask it to stop; nothing is called back. On a device stages are enqueued at once, so
/// they count together when the work is done.
struct RunProgress {
  /// Ends the call with Error(kCancelled), soon on the CPU and before the next call's work on a
  /// device, and every later one until it is false again. The pipeline stays usable.
  std::atomic<bool> is_cancelled{false};
  /// Of the call at work.
  std::atomic<std::size_t> n_stages{0};
  std::atomic<std::size_t> n_stages_done{0};
  /// Stages that work at this moment: one, or all of a fused group.
  std::atomic<std::size_t> n_stages_at_work{0};
  /// Tiles of those stages; 0 where they do not tell.
  std::atomic<std::size_t> n_tiles{0};
  std::atomic<std::size_t> n_tiles_done{0};

  /// From 0 to 1, by stages and, inside a stage, by tiles.
  double part() const noexcept {
    const std::size_t n_all = n_stages.load(std::memory_order_relaxed);
    const std::size_t n_here = n_tiles.load(std::memory_order_relaxed);
    const auto done = static_cast<double>(n_stages_done.load(std::memory_order_relaxed));
    const double here =
        n_here == 0 ? 0.0
                    : static_cast<double>(n_tiles_done.load(std::memory_order_relaxed)) /
                          static_cast<double>(n_here) *
                          static_cast<double>(n_stages_at_work.load(std::memory_order_relaxed));
    const double part = n_all == 0 ? 0.0 : (done + here) / static_cast<double>(n_all);
    // The counters are read one after the other, so they need not fit together.
    return part > 1.0 ? 1.0 : part;
  }

  // For the pipeline.

  void beginCall(std::size_t n) noexcept {
    beginStages(0, 0);
    n_stages_done.store(0, std::memory_order_relaxed);
    n_stages.store(n, std::memory_order_relaxed);
  }
  void beginStages(std::size_t n, std::size_t n_tiles_here) noexcept {
    n_tiles.store(0, std::memory_order_relaxed);
    n_tiles_done.store(0, std::memory_order_relaxed);
    n_stages_at_work.store(n, std::memory_order_relaxed);
    n_tiles.store(n_tiles_here, std::memory_order_relaxed);
  }
  void endStages(std::size_t n) noexcept {
    beginStages(0, 0);
    n_stages_done.fetch_add(n, std::memory_order_relaxed);
  }
};

}  // namespace fz
