#pragma once

#include <utility>

#include <cuda_runtime_api.h>

#include "cuda_check.h"

namespace fz::cuda {

/// A device event that is made when first needed.
class TimingEvent {
 public:
  TimingEvent() = default;
  TimingEvent(TimingEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  ~TimingEvent() {
    if (event_ != nullptr) {
      FZ_CUDA_CHECK_WARN(cudaEventDestroy(event_));
    }
  }
  void record(cudaStream_t stream) {
    if (event_ == nullptr) {
      FZ_CUDA_CHECK(cudaEventCreate(&event_));
    }
    FZ_CUDA_CHECK(cudaEventRecord(event_, stream));
  }
  /// Milliseconds from `earlier` to this; both must have passed.
  float since(const TimingEvent& earlier) const {
    float ms = 0.0f;
    FZ_CUDA_CHECK(cudaEventElapsedTime(&ms, earlier.event_, event_));
    return ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The device's time of a whole call. Never waits: end() goes before a wait that the call has
/// anyway, and the last one counts.
class CallTimer {
 public:
  /// `on` false: this call is not timed, end() does nothing.
  void begin(bool on, cudaStream_t stream) {
    is_on_ = on;
    has_ended_ = false;
    if (on) {
      begin_.record(stream);
    }
  }
  void end(cudaStream_t stream) {
    if (is_on_) {
      end_.record(stream);
      has_ended_ = true;
    }
  }
  /// After the wait; 0 when the call was not timed.
  float milliseconds() const { return is_on_ && has_ended_ ? end_.since(begin_) : 0.0f; }

 private:
  TimingEvent begin_;
  TimingEvent end_;
  bool is_on_ = false;
  bool has_ended_ = false;
};

}  // namespace fz::cuda
