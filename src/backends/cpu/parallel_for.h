#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "fz/limits.h"

namespace fz {

/// Which library runs the threads. Both give the same bytes: tiles are fixed, threads only take
/// tiles.
enum class ThreadBackend : std::uint8_t { kTbb, kStd };

/// Runs the tiles of a stage on a number of threads.
class CpuExecutor {
 public:
  /// A range of items; non-owning, so a call allocates nothing.
  struct Body {
    void* object;
    void (*call)(void* object, std::size_t begin, std::size_t end);
  };

  virtual ~CpuExecutor() = default;
  virtual std::size_t threadCount() const noexcept = 0;
  /// Whether run() is to be called even where one thread does it all.
  virtual bool isWatched() const noexcept { return false; }
  /// Calls body on disjoint ranges that cover [0, n_items); returns when all are done. An
  /// exception from the body is rethrown here.
  virtual void run(std::size_t n_items, Body body) const = 0;
  /// Throws Error(kCancelled) where the caller asked the run to stop; for long work inside run().
  virtual void requireNotCancelled() const {}

  static const CpuExecutor& serial();
};

/// What a request for n threads comes to: 0 means as many as the machine has (or the container
/// allows), and more than kMaxThreads means kMaxThreads.
std::size_t usableThreads(std::size_t n_threads) noexcept;
/// An executor of usableThreads(n_threads) threads, or of as many as the system gives.
std::unique_ptr<CpuExecutor> makeCpuExecutor(std::size_t n_threads, ThreadBackend backend);
/// TBB where the build has it, else std::jthread.
ThreadBackend defaultThreadBackend() noexcept;
std::size_t hardwareThreads() noexcept;

/// f(begin, end) on disjoint ranges that cover [0, n_items).
template <class F>
void parallelRanges(const CpuExecutor& executor, std::size_t n_items, F&& f) {
  if (n_items == 0) {
    return;
  }
  if (n_items == 1 || (executor.threadCount() == 1 && !executor.isWatched())) {
    f(std::size_t{0}, n_items);
    return;
  }
  using Fn = std::remove_reference_t<F>;
  executor.run(n_items, {const_cast<void*>(static_cast<const void*>(&f)),
                         [](void* object, std::size_t begin, std::size_t end) {
                           (*static_cast<Fn*>(object))(begin, end);
                         }});
}

/// f(i) for every i in [0, n_items), in any order, possibly at the same time.
template <class F>
void parallelFor(const CpuExecutor& executor, std::size_t n_items, F&& f) {
  parallelRanges(executor, n_items, [&f](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      f(i);
    }
  });
}

/// Lowers `first` to `index`, if that is smaller.
inline void recordFirst(std::atomic<std::uint64_t>& first, std::uint64_t index) noexcept {
  std::uint64_t seen = first.load(std::memory_order_relaxed);
  while (index < seen && !first.compare_exchange_weak(seen, index, std::memory_order_relaxed)) {
  }
}

/// Smallest index at which something was found; the same whatever the threads do.
class FirstIndex {
 public:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  void record(std::uint64_t index) noexcept { recordFirst(first_, index); }
  bool found() const noexcept { return value() != kNone; }
  std::uint64_t value() const noexcept { return first_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> first_{kNone};
};

}  // namespace fz
