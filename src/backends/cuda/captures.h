#pragma once

#include <cuda_runtime_api.h>

namespace fz::cuda {

/// Held while this library captures a stream: a wait for the whole device would be refused
/// meanwhile, whichever thread asks for it, and spoil the capture.
class CaptureScope {
 public:
  CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;
  ~CaptureScope();
};

/// Waits for all work on the current device, and first for captures of this library to end. Those
/// of others are spoilt, as by any such wait.
cudaError_t synchronizeDevice();

/// While it lives, calls that take or wait for memory do not spoil a capture that another stream is
/// in.
class UnnoticedByCaptures {
 public:
  UnnoticedByCaptures() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  UnnoticedByCaptures(const UnnoticedByCaptures&) = delete;
  UnnoticedByCaptures& operator=(const UnnoticedByCaptures&) = delete;
  ~UnnoticedByCaptures() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace fz::cuda
