#include "fused/interp/cpu/crew.h"

#include <thread>

namespace fz::interp {

void Crew::forEach(std::size_t n_pieces, std::size_t depth, std::size_t member, Body body) {
  if (n_pieces <= 1 || n_members_ == 1) {
    for (std::size_t piece = 0; piece < n_pieces; ++piece) {
      executor_.requireNotCancelled();
      body.call(body.object, piece, member);
    }
    return;
  }
  Work work = {body, n_pieces, depth};
  open(work);
  takePieces(work, member);
  close(work);
  for (;;) {
    const unsigned seen = news_.load(std::memory_order_acquire);
    if (isLeft(work)) {
      break;
    }
    if (depth == kDeepest || !help(depth + 1, member)) {
      waitForNews(seen);
    }
  }
  if (work.failure != nullptr) {
    std::rethrow_exception(work.failure);
  }
}

void Crew::helpUntilDone(std::size_t member) {
  for (;;) {
    const unsigned seen = news_.load(std::memory_order_acquire);
    if (is_done_.load(std::memory_order_relaxed)) {
      return;
    }
    if (!help(0, member)) {
      waitForNews(seen);
    }
  }
}

bool Crew::help(std::size_t least_depth, std::size_t member) {
  Work* work = nullptr;
  {
    const std::lock_guard lock(mutex_);
    for (work = oldest_; work != nullptr; work = work->newer) {
      if (work->depth >= least_depth &&
          work->next.load(std::memory_order_relaxed) < work->n_pieces) {
        ++work->n_helpers;
        break;
      }
    }
  }
  if (work == nullptr) {
    return false;
  }
  takePieces(*work, member);
  bool is_last = false;
  {
    const std::lock_guard lock(mutex_);
    is_last = --work->n_helpers == 0;  // from here on it may be gone
  }
  if (is_last) {
    tellAll();
  }
  return true;
}

void Crew::takePieces(Work& work, std::size_t member) {
  try {
    for (std::size_t piece = work.next.fetch_add(1, std::memory_order_relaxed);
         piece < work.n_pieces; piece = work.next.fetch_add(1, std::memory_order_relaxed)) {
      executor_.requireNotCancelled();
      work.body.call(work.body.object, piece, member);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    work.failure = work.failure == nullptr ? std::current_exception() : work.failure;
    work.next.store(work.n_pieces, std::memory_order_relaxed);
  }
}

void Crew::open(Work& work) {
  {
    const std::lock_guard lock(mutex_);
    Work** end = &oldest_;
    while (*end != nullptr) {
      end = &(*end)->newer;
    }
    *end = &work;
  }
  tellAll();
}

void Crew::close(Work& work) {
  const std::lock_guard lock(mutex_);
  Work** at = &oldest_;
  while (*at != &work) {
    at = &(*at)->newer;
  }
  *at = work.newer;
}

bool Crew::isLeft(const Work& work) {
  const std::lock_guard lock(mutex_);
  return work.n_helpers == 0;
}

void Crew::tellAll() {
  news_.fetch_add(1, std::memory_order_release);
  news_.notify_all();
}

void Crew::waitForNews(unsigned seen) const {
  // The next step of a search begins within microseconds as a rule, and going to sleep and being
  // woken takes longer; but others may want the core.
  constexpr int kLooks = 100;
  for (int look = 0; look < kLooks; ++look) {
    if (news_.load(std::memory_order_acquire) != seen) {
      return;
    }
    std::this_thread::yield();
  }
  news_.wait(seen, std::memory_order_acquire);
}

}  // namespace fz::interp
