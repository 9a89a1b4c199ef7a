#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace fz {

/// Order among threads that each work on a chunk: what is done with chunk k comes after the same
/// was done with chunk k - 1.
class Turns {
 public:
  /// Waits for the turn of a chunk. False: there are no more turns, as one before has failed.
  bool wait(std::uint64_t chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ == chunk || is_over_; });
    return !is_over_;
  }
  /// The turn is over, the next chunk's begins.
  void pass() {
    const std::lock_guard lock(mutex_);
    ++next_;
    changed_.notify_all();
  }
  /// Nobody has a turn any more.
  void end() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  bool is_over_ = false;
};

}  // namespace fz
