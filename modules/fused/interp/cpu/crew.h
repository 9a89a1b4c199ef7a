#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>

#include "backends/cpu/parallel_for.h"

/// Threads that help each other: work may be cut wherever it is, inside other pieces too, and
/// whoever has nothing to do takes pieces of any of it. Beginning and ending takes microseconds.
namespace fz::interp {

class Crew {
 public:
  static constexpr std::size_t kMostMembers = 16;
  /// Pieces of work are cut in turn so many times, with the first.
  static constexpr std::size_t kDepths = 4;
  /// Of work whose pieces cut nothing and use nothing that their member has in use: who waits for
  /// them helps nobody.
  static constexpr std::size_t kDeepest = kDepths - 1;

  /// f(piece, member), for members below size(). A member is in one piece at a time, but for those
  /// that it cuts its own into, and for deeper ones that it helps with while it waits for them.
  struct Body {
    void* object;
    void (*call)(void* object, std::size_t piece, std::size_t member);
  };

  explicit Crew(const CpuExecutor& executor);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::size_t size() const noexcept { return n_members_; }

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
  /// when all have ended. A member has one work of a depth at a time.
  void forEach(std::size_t n_pieces, std::size_t depth, std::size_t member, Body body);

 private:
  /// Work that is cut, or has been. It stays where it is, so that who comes late may look at it.
  struct Work {
    alignas(64) std::atomic<std::uint64_t> taken = 0;  // pieces there are << 32 | pieces begun
    std::atomic<void*> object = nullptr;
    std::atomic<void (*)(void*, std::size_t, std::size_t)> call = nullptr;
    std::atomic<bool> has_failed = false;
    std::exception_ptr failure = nullptr;  // guarded by mutex_
    alignas(64) std::atomic<std::size_t> n_left = 0;
  };
  class Done {
   public:
    explicit Done(Crew& crew) : crew_(crew) {}
    Done(const Done&) = delete;
    Done& operator=(const Done&) = delete;
    ~Done() {
      crew_.is_done_.store(true);
      crew_.wakeAll();
    }

   private:
    Crew& crew_;
  };

  void helpUntilDone(std::size_t member);
  /// Helps with the least deep work, which is most, of such a depth or deeper. False: there is
  /// none.
  bool help(std::size_t least_depth, std::size_t member);
  /// Takes pieces as long as there are any.
  void takePieces(std::size_t place, std::size_t member);
  void runPiece(Work& work, std::size_t piece, std::size_t member);
  void sleep();
  void wakeAll();

  const CpuExecutor& executor_;
  std::size_t n_members_;
  std::atomic<std::size_t> n_entered_ = 0;
  std::array<Work, kDepths * kMostMembers> works_;   // by depth, then by member
  alignas(64) std::atomic<std::uint64_t> open_ = 0;  // by place in works_: there may be a piece
  alignas(64) std::atomic<bool> is_done_ = false;
  std::atomic<int> n_asleep_ = 0;
  std::atomic<unsigned> n_wakes_ = 0;
  std::mutex mutex_;
};

}  // namespace fz::interp
