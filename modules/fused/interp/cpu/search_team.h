#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "backends/cpu/parallel_for.h"
#include "fused/interp/cpu/cost.h"
#include "fused/interp/cpu/grid.h"
#include "fused/interp/cpu/measure.h"

/// Who does the work of a search. Its tasks are small and many, so each is done by one thread, with
/// memory of its own that is kept from search to search.
namespace fz::interp {

using Cost = std::uint64_t;  ///< in 1/1024 bit

/// Codes of one step, and what parts of them cost.
class CodeBuffer {
 public:
  void setType(DataType type) { is_short_ = type == DataType::INT16; }
  void* reserve(std::uint64_t n_codes) {
    if (is_short_) {
      short_.resize(std::max<std::size_t>(short_.size(), n_codes));
      return short_.data();
    }
    wide_.resize(std::max<std::size_t>(wide_.size(), n_codes));
    return wide_.data();
  }
  Cost cost(std::uint64_t first, std::uint64_t n) const {
    return is_short_ ? blockCost(std::span(short_).subspan(first, n))
                     : blockCost(std::span(wide_).subspan(first, n));
  }
  void addTo(ClassCost& total, std::uint64_t n) const {
    if (is_short_) {
      total.add(std::span(short_).first(n));
    } else {
      total.add(std::span(wide_).first(n));
    }
  }

 private:
  bool is_short_ = false;
  std::vector<std::int16_t> short_;
  std::vector<std::int32_t> wide_;
};

/// What one thread works with. Its memory comes without a pool, which is not for threads.
class Worker {
 public:
  void setType(DataType type) {
    type_ = type;
    codes.setType(type);
  }
  Core core() { return {CpuExecutor::serial(), nullptr, stack, tile_memory_, type_, {}, nullptr}; }

  ScratchStack stack;
  CodeBuffer codes;
  ProbeMemory probe_memory;

 private:
  DataType type_ = DataType::INT16;
  Scratch tile_memory_;
};

/// Some workers, and the threads that they run on.
class SearchTeam {
 public:
  SearchTeam(const CpuExecutor& executor, std::span<Worker> workers)
      : executor_(executor), workers_(workers) {}

  /// One of the workers, while no other is at work.
  Worker& first() const { return workers_.front(); }
  std::size_t size() const { return workers_.size(); }

  /// f(item, worker) for all items, in any order, possibly at the same time.
  template <class F>
  void forEach(std::size_t n_items, F f) const {
    if (workers_.size() == 1) {  // item by item, so that a call can be asked to stop
      parallelFor(executor_, n_items, [&](std::size_t item) { f(item, workers_.front()); });
      return;
    }
    std::atomic<std::size_t> next = 0;
    parallelFor(executor_, std::min(workers_.size(), n_items), [&](std::size_t worker) {
      for (std::size_t item = next.fetch_add(1, std::memory_order_relaxed); item < n_items;
           item = next.fetch_add(1, std::memory_order_relaxed)) {
        f(item, workers_[worker]);
      }
    });
  }

 private:
  const CpuExecutor& executor_;
  std::span<Worker> workers_;
};

/// The workers of a stage, and where they read parts of its field to.
class SearchMemory {
 public:
  SearchTeam team(const CpuExecutor& executor, DataType code_type) {
    const std::size_t n_workers = std::max<std::size_t>(1, executor.threadCount());
    if (workers_.size() != n_workers) {
      workers_ = std::vector<Worker>(n_workers);
    }
    for (Worker& worker : workers_) {
      worker.setType(code_type);
      worker.stack.popTo(0);  // of a search that ended early
    }
    return {executor, workers_};
  }
  ScratchStack& crops() { return crops_; }

 private:
  std::vector<Worker> workers_;
  ScratchStack crops_;
};

}  // namespace fz::interp
