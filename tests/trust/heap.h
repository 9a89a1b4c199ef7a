#pragma once

#include <cstddef>
#include <cstdint>

/// Watches the heap of this thread: how much it takes, and what happens when it gives nothing.
namespace fz::trust::heap {

/// Bytes that this thread has taken and not given back.
std::int64_t heldBytes();

/// Highest number of bytes held at a time since the last resetPeak(), less those held then.
std::size_t peakBytes();
void resetPeak();

/// Largest single request since the last resetPeak(), also when it was refused.
std::size_t largestRequest();

/// Requests above this many bytes are answered with null; 0: none. A sanitizer's own limit
/// stands in for it where a sanitizer owns the heap.
void refuseAbove(std::size_t n_bytes);

/// True where allocations can be made to fail (not under sanitizers).
bool canFail();
/// The n-th allocation from now on fails, counted from 0, and with `and_all_later` every one after
/// it as well. Until the next call of stopFailing().
void failAt(std::uint64_t n, bool and_all_later);
void stopFailing();
/// While it lives, allocations neither fail nor count: those of a test beside the library's.
class Pause {
 public:
  Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
  ~Pause();

 private:
  bool was_failing_;
};
/// Allocations since failAt().
std::uint64_t requestCount();

}  // namespace fz::trust::heap
