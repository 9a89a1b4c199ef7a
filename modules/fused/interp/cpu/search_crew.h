#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fused/interp/cpu/blocks.h"
#include "fused/interp/cpu/crew.h"
#include "fused/interp/cpu/grid.h"
#include "fused/interp/cpu/measure.h"

/// Who does the work of a search: threads with memory of their own, kept from search to search. How
/// work is cut in pieces depends on how many there are, what comes of it does not.
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
  void addTo(ClassCost& total, std::uint64_t first, std::uint64_t n) const {
    if (is_short_) {
      total.add(std::span(short_).subspan(first, n));
    } else {
      total.add(std::span(wide_).subspan(first, n));
    }
  }

 private:
  bool is_short_ = false;
  std::vector<std::int16_t> short_;
  std::vector<std::int32_t> wide_;
};

class SearchTeam;

/// What one thread works with. Its memory comes without a pool, which is not for threads. Alone, or
/// one of a team whose others help with what it cuts in pieces.
class Worker {
 public:
  void setType(DataType type) {
    type_ = type;
    codes.setType(type);
  }
  /// Makes it one of a team.
  void join(SearchTeam& team, std::size_t place);
  /// For a step that takes as long as coding so many values; others help where that is long. Until
  /// the next one is asked for.
  Core core(std::size_t n_coded);
  /// How many may work on what this one cuts, itself included.
  std::size_t teamSize() const;

  /// f(item, worker) for all items, in any order, possibly at the same time. All of them take as
  /// long as coding so many values. Meanwhile codes and probe_memory of this one may be used by
  /// items of other work.
  template <class F>
  void forEach(std::size_t n_items, std::size_t n_coded, F f);
  /// The same for items that cut nothing in pieces, and use nothing that this one has in use.
  template <class F>
  void forPieces(std::size_t n_items, F f);

  /// What its codes cost.
  Cost costOfCodes(std::uint64_t n_codes);
  void addCodesTo(ClassCost& total, std::uint64_t n_codes);

  ScratchStack stack;
  CodeBuffer codes;
  ProbeMemory probe_memory;

 private:
  /// Threads of the team, for functions that know executors.
  class Threads final : public CpuExecutor {
   public:
    explicit Threads(Worker& worker) : worker_(worker) {}
    /// As many as it takes to code so many values.
    void setFor(std::size_t n_coded);
    std::size_t threadCount() const noexcept override { return n_threads_; }
    void run(std::size_t n_items, Body body) const override;

   private:
    Worker& worker_;
    std::size_t n_threads_ = 1;
  };

  template <class F>
  void share(std::size_t n_items, std::size_t depth, F f);

  SearchTeam* team_ = nullptr;
  std::size_t place_ = 0;
  std::size_t depth_ = 0;   // of what it cuts next
  Threads threads_{*this};  // for the last step
  DataType type_ = DataType::INT16;
  Scratch tile_memory_;
};

/// Some workers, and the threads that they run on.
class SearchTeam {
 public:
  SearchTeam(const CpuExecutor& executor, std::span<Worker> workers, DataType code_type)
      : crew_(executor), workers_(workers) {
    for (std::size_t place = 0; place < workers.size(); ++place) {
      workers[place].setType(code_type);
      workers[place].join(*this, place);
    }
  }
  SearchTeam(const SearchTeam&) = delete;
  SearchTeam& operator=(const SearchTeam&) = delete;

  /// f(worker) once, while all others wait for something to help with.
  template <class F>
  void run(F f) {
    crew_.run([&](std::size_t member) { f(workers_[member]); });
  }

 private:
  friend class Worker;

  Crew crew_;
  std::span<Worker> workers_;
};

template <class F>
void Worker::share(std::size_t n_items, std::size_t depth, F f) {
  auto body = [&](std::size_t item, std::size_t member) {
    Worker& worker = team_->workers_[member];
    const std::size_t depth_before = std::exchange(worker.depth_, depth + 1);
    f(item, worker);
    worker.depth_ = depth_before;
  };
  team_->crew_.forEach(n_items, depth, place_,
                       {&body, [](void* object, std::size_t item, std::size_t member) {
                          (*static_cast<decltype(body)*>(object))(item, member);
                        }});
}

template <class F>
void Worker::forEach(std::size_t n_items, std::size_t n_coded, F f) {
  // Less is done before others have begun.
  constexpr std::size_t kLeastCoded = std::size_t{1} << 12;
  if (team_ != nullptr && n_coded >= kLeastCoded && depth_ < Crew::kDeepest) {
    share(n_items, depth_, f);
    return;
  }
  for (std::size_t item = 0; item < n_items; ++item) {
    f(item, *this);
  }
}
template <class F>
void Worker::forPieces(std::size_t n_items, F f) {
  share(n_items, Crew::kDeepest, f);
}

/// The workers of a stage, and where they read parts of its field to.
class SearchMemory {
 public:
  std::span<Worker> workers(std::size_t n_workers) {
    if (workers_.size() != n_workers) {
      workers_ = std::vector<Worker>(n_workers);
    }
    return workers_;
  }
  ScratchStack& crops() { return crops_; }

 private:
  std::vector<Worker> workers_;
  ScratchStack crops_;
};

}  // namespace fz::interp
