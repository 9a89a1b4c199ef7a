#include "fused/interp/cpu/crew.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "shared/bits.h"

namespace fz::interp {

namespace {

constexpr int kPieceBits = 32;

/// Called again and again by who waits. Most waits are shorter than going to sleep and being woken
/// takes, but others may want the core.
void waitABit(unsigned n_looks) {
  constexpr unsigned kLooksPerYield = 16;
  if (n_looks % kLooksPerYield == kLooksPerYield - 1) {
    std::this_thread::yield();
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Crew::Crew(const CpuExecutor& executor)
    : executor_(executor), n_members_(std::min(executor.threadCount(), kMostMembers)) {
}

void Crew::forEach(std::size_t n_pieces, std::size_t depth, std::size_t member, Body body) {
  if (n_pieces <= 1 || n_members_ == 1) {
    for (std::size_t piece = 0; piece < n_pieces; ++piece) {
      executor_.requireNotCancelled();
      body.call(body.object, piece, member);
    }
    return;
  }
  const std::size_t place = depth * kMostMembers + member;
  Work& work = works_[place];
  work.object.store(body.object, std::memory_order_relaxed);
  work.call.store(body.call, std::memory_order_relaxed);
  work.has_failed.store(false, std::memory_order_relaxed);
  work.n_left.store(n_pieces, std::memory_order_relaxed);
  open_.fetch_or(std::uint64_t{1} << place);  // before somebody may take the last piece
  work.taken.store(std::uint64_t{n_pieces} << kPieceBits, std::memory_order_release);
  if (n_asleep_.load() > 0) {
    wakeAll();
  }
  takePieces(place, member);
  for (unsigned n_looks = 0; work.n_left.load(std::memory_order_acquire) > 0; ++n_looks) {
    if (depth == kDeepest || !help(depth + 1, member)) {
      waitABit(n_looks);
    }
  }
  if (work.has_failed.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex_);
    std::rethrow_exception(std::exchange(work.failure, nullptr));
  }
}

void Crew::helpUntilDone(std::size_t member) {
  constexpr unsigned kMostLooks = 1000;
  for (unsigned n_looks = 0; !is_done_.load(std::memory_order_acquire); ++n_looks) {
    if (help(0, member)) {
      n_looks = 0;
    } else if (n_looks < kMostLooks) {
      waitABit(n_looks);
    } else {
      sleep();
    }
  }
}

bool Crew::help(std::size_t least_depth, std::size_t member) {
  std::uint64_t open = open_.load(std::memory_order_relaxed) >> (least_depth * kMostMembers);
  for (; open != 0; open &= open - 1) {
    const std::size_t place = least_depth * kMostMembers + bits::firstSet(open);
    const std::uint64_t taken = works_[place].taken.load(std::memory_order_relaxed);
    if (static_cast<std::uint32_t>(taken) < taken >> kPieceBits) {
      takePieces(place, member);
      return true;
    }
  }
  return false;
}

void Crew::takePieces(std::size_t place, std::size_t member) {
  Work& work = works_[place];
  for (;;) {
    // Who begins a piece knows that the work cannot end before it does.
    const std::uint64_t taken = work.taken.fetch_add(1, std::memory_order_acquire);
    const std::uint64_t n_pieces = taken >> kPieceBits;
    const std::uint64_t piece = static_cast<std::uint32_t>(taken);
    if (piece >= n_pieces) {
      return;
    }
    if (piece + 1 == n_pieces) {
      open_.fetch_and(~(std::uint64_t{1} << place), std::memory_order_relaxed);
    }
    runPiece(work, piece, member);
    work.n_left.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void Crew::runPiece(Work& work, std::size_t piece, std::size_t member) {
  if (work.has_failed.load(std::memory_order_relaxed)) {
    return;
  }
  try {
    executor_.requireNotCancelled();
    work.call.load(std::memory_order_relaxed)(work.object.load(std::memory_order_relaxed), piece,
                                              member);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    work.failure = work.failure == nullptr ? std::current_exception() : work.failure;
    work.has_failed.store(true, std::memory_order_relaxed);
  }
}

void Crew::sleep() {
  // Whoever opens work after the look at what is open sees this one asleep, and wakes it.
  n_asleep_.fetch_add(1);
  const unsigned seen = n_wakes_.load();
  if (open_.load() == 0 && !is_done_.load()) {
    n_wakes_.wait(seen);
  }
  n_asleep_.fetch_sub(1);
}

void Crew::wakeAll() {
  n_wakes_.fetch_add(1);
  n_wakes_.notify_all();
}

}  // namespace fz::interp
