#include "interruptible.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <optional>
#include <system_error>
#include <thread>

namespace fz::python {

namespace nb = nanobind;

namespace {

/// Less is done before anybody could press a key, and would notice the start of a thread.
constexpr std::size_t kShortBytes = std::size_t{4} << 20;
constexpr std::chrono::milliseconds kBetweenLooks{50};

/// Work on a thread of its own.
class Worker {
 public:
  /// Throws std::system_error where there are no more threads.
  explicit Worker(const std::function<void(RunProgress&)>& work)
      : thread_([this, &work] { run(work); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Whether it ended within that time.
  bool waitFor(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, time, [this] { return has_ended_; });
  }
  void cancel() { progress_.is_cancelled = true; }
  void join() { thread_.join(); }
  /// What the work threw, when it has ended.
  std::exception_ptr failure() const { return failure_; }

 private:
  void run(const std::function<void(RunProgress&)>& work) {
    try {
      work(progress_);
    } catch (...) {
      failure_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    ended_.notify_one();
  }

  RunProgress progress_;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::jthread thread_;  // last: it uses the others
};

/// Waits with the GIL given up; takes it to let Python handle its signals. What a handler raised.
std::optional<nb::python_error> waitWithSignals(Worker& worker) {
  std::optional<nb::python_error> raised;
  const nb::gil_scoped_release release;
  while (!worker.waitFor(kBetweenLooks)) {
    if (raised) {
      continue;  // one is enough; the work is about to end
    }
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) {
      raised.emplace();
      worker.cancel();
    }
  }
  worker.join();
  return raised;
}

std::unique_ptr<Worker> startWorker(std::size_t n_bytes,
                                    const std::function<void(RunProgress&)>& work) {
  if (n_bytes < kShortBytes) {
    return nullptr;
  }
  try {
    return std::make_unique<Worker>(work);
  } catch (const std::system_error&) {
    return nullptr;  // no more threads: it runs on this one
  }
}

}  // namespace

void runInterruptibly(std::size_t n_bytes, const std::function<void(RunProgress&)>& work) {
  const std::unique_ptr<Worker> worker = startWorker(n_bytes, work);
  if (worker == nullptr) {
    const nb::gil_scoped_release release;
    RunProgress nobody_looks;
    work(nobody_looks);
    return;
  }
  std::optional<nb::python_error> raised = waitWithSignals(*worker);
  if (raised) {
    throw std::move(*raised);
  }
  if (worker->failure() != nullptr) {
    std::rethrow_exception(worker->failure());
  }
}

}  // namespace fz::python
