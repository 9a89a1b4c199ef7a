#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "backends/cpu/executors.h"

namespace fz {

namespace {

/// A pool of std::jthread for builds without TBB and for thread sanitizers, which report false
/// races inside TBB. The caller works too, so n threads means n - 1 workers.
class StdExecutor final : public CpuExecutor {
 public:
  explicit StdExecutor(std::size_t n_threads) {
    workers_.reserve(n_threads - 1);
    try {
      while (workers_.size() + 1 < n_threads) {
        workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
      }
    } catch (const std::system_error&) {
      // The system gives no more threads; those that there are do the work.
    } catch (const std::bad_alloc&) {
      // The same, noticed one allocation earlier.
    }
    n_threads_ = workers_.size() + 1;
  }

  ~StdExecutor() override {
    for (std::jthread& worker : workers_) {
      worker.request_stop();
    }
    const std::lock_guard lock(mutex_);
    wake_.notify_all();
  }

  std::size_t threadCount() const noexcept override { return n_threads_; }

  void run(std::size_t n_items, Body body) const override {
    const std::lock_guard one_job(job_mutex_);
    {
      const std::lock_guard lock(mutex_);
      body_ = body;
      n_items_ = n_items;
      grain_ = std::max<std::size_t>(1, n_items / (n_threads_ * kChunksPerThread));
      next_.store(0, std::memory_order_relaxed);
      failure_ = nullptr;
      n_busy_ = workers_.size();
      ++job_;
    }
    wake_.notify_all();
    takeRanges();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return n_busy_ == 0; });
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  static constexpr std::size_t kChunksPerThread = 8;

  void work(const std::stop_token& stop) {
    std::uint64_t seen_job = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop.stop_requested() || job_ != seen_job; });
        if (stop.stop_requested()) {
          return;
        }
        seen_job = job_;
      }
      takeRanges();
      const std::lock_guard lock(mutex_);
      if (--n_busy_ == 0) {
        done_.notify_all();
      }
    }
  }

  void takeRanges() const {
    for (;;) {
      const std::size_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
      if (begin >= n_items_) {
        return;
      }
      try {
        body_.call(body_.object, begin, std::min(begin + grain_, n_items_));
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = failure_ == nullptr ? std::current_exception() : failure_;
      }
    }
  }

  std::size_t n_threads_ = 1;
  mutable std::mutex job_mutex_;
  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;
  mutable std::condition_variable done_;
  mutable Body body_{};
  mutable std::size_t n_items_ = 0;
  mutable std::size_t grain_ = 1;
  mutable std::atomic<std::size_t> next_{0};
  mutable std::exception_ptr failure_;
  mutable std::size_t n_busy_ = 0;
  mutable std::uint64_t job_ = 0;
  std::vector<std::jthread> workers_;  // last: joined before the members above go
};

}  // namespace

std::unique_ptr<CpuExecutor> makeStdExecutor(std::size_t n_threads) {
  return std::make_unique<StdExecutor>(n_threads);
}

}  // namespace fz
