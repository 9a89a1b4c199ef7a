#include <mutex>
#include <shared_mutex>

#include "backends/cuda/captures.h"

namespace fz::cuda {

namespace {

/// One capture, or any number of waits. Who comes goes through the turnstile, so that those who
/// wait for the room are not passed for ever.
struct Gate {
  std::mutex turnstile;
  std::shared_mutex room;
};

Gate& gate() {
  // Never destroyed: pipelines may end after static objects have.
  static Gate& only = *new Gate;
  return only;
}

thread_local bool is_capturing = false;

}  // namespace

CaptureScope::CaptureScope() {
  const std::lock_guard turn(gate().turnstile);
  gate().room.lock();
  is_capturing = true;
}
CaptureScope::~CaptureScope() {
  is_capturing = false;
  gate().room.unlock();
}

cudaError_t synchronizeDevice() {
  if (is_capturing) {  // refused, and the capture fails; waiting for it here would take for ever
    return cudaDeviceSynchronize();
  }
  std::unique_lock turn(gate().turnstile);
  const std::shared_lock room(gate().room);
  turn.unlock();
  return cudaDeviceSynchronize();
}

}  // namespace fz::cuda
