#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>

#include "backends/cpu/parallel_for.h"

/// Threads that help each other: work may be cut wherever it is, inside other pieces too, and
/// whoever has nothing to do takes pieces of any of it.
namespace fz::interp {

class Crew {
 public:
  /// f(piece, member), for members below size(); each runs one piece at a time, but for those that
  /// it cuts its own into, and for what it helps with while it waits for them.
  struct Body {
    void* object;
    void (*call)(void* object, std::size_t piece, std::size_t member);
  };
  /// Of work whose pieces leave what their member has at hand alone: who waits for them helps
  /// nobody.
  static constexpr std::size_t kDeepest = std::numeric_limits<std::size_t>::max();

  explicit Crew(const CpuExecutor& executor)
      : executor_(executor), n_members_(executor.threadCount()) {}

  std::size_t size() const noexcept { return n_members_; }
  const CpuExecutor& executor() const noexcept { return executor_; }

  /// lead(member), called once, while all other threads help with what it cuts.
  template <class F>
  void run(F lead) {
    n_entered_.store(0, std::memory_order_relaxed);
    is_done_.store(false, std::memory_order_relaxed);
    parallelFor(executor_, n_members_, [&](std::size_t /*item*/) {
      const std::size_t member = n_entered_.fetch_add(1, std::memory_order_relaxed);
      if (member == 0) {  // whoever comes first, as the others may never come
        const Done done(*this);
        lead(member);
      } else {
        helpUntilDone(member);
      }
    });
  }

  /// Runs all pieces, the calling member some of them; returns, or throws what one of them threw,
  /// when all have ended. While it waits it helps with work deeper than this, which is less.
  void forEach(std::size_t n_pieces, std::size_t depth, std::size_t member, Body body);

 private:
  struct Work {
    Body body;
    std::size_t n_pieces;
    std::size_t depth;
    std::atomic<std::size_t> next = 0;
    // Guarded by mutex_:
    std::size_t n_helpers = 0;
    std::exception_ptr failure = nullptr;
    Work* newer = nullptr;
  };
  class Done {
   public:
    explicit Done(Crew& crew) : crew_(crew) {}
    Done(const Done&) = delete;
    Done& operator=(const Done&) = delete;
    ~Done() {
      crew_.is_done_.store(true, std::memory_order_relaxed);
      crew_.tellAll();
    }

   private:
    Crew& crew_;
  };

  void helpUntilDone(std::size_t member);
  /// Helps with the oldest work, which is most, of such a depth or deeper. False: there is none.
  bool help(std::size_t least_depth, std::size_t member);
  void takePieces(Work& work, std::size_t member);
  void open(Work& work);
  /// Takes it off the list; false: somebody still works on it.
  void close(Work& work);
  bool isLeft(const Work& work);
  void tellAll();
  void waitForNews(unsigned seen) const;

  const CpuExecutor& executor_;
  std::size_t n_members_;
  std::atomic<std::size_t> n_entered_ = 0;
  std::atomic<bool> is_done_ = false;
  std::atomic<unsigned> news_ = 0;  // counts up when something begins or ends
  std::mutex mutex_;
  Work* oldest_ = nullptr;
};

}  // namespace fz::interp
