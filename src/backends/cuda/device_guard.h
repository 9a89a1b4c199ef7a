#pragma once

// What the rest of the library may ask about devices in any build; backends/no_cuda answers where
// there are none.

#include <cstddef>

#include "fz/stream.h"

namespace fz::cuda {

/// Whether this build has the CUDA backend.
bool isBuiltIn() noexcept;

/// Makes a device current and gives the caller's back, so that the library never changes it. -1: no
/// device.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard();

 private:
  int previous_ = -1;  // -1: nothing to restore
};

/// Whether this process has begun to use CUDA. If not, it has no memory on a device either, and the
/// first call would take a tenth of a second and more.
bool isInUse() noexcept;

/// Devices that answer; 0 without a driver. Asked once per process.
int deviceCount() noexcept;
int currentDevice();
/// All that a device has; 0 where it does not say.
std::size_t totalMemory(int device) noexcept;
/// Whether the host cannot read the memory at `data`.
bool isDeviceOnly(const void* data) noexcept;

/// Enqueues a copy inside a device. Throws Error(kCuda).
void copyOnDevice(void* to, const void* from, std::size_t n_bytes, cudaStream_t stream);

/// At the entry of a call: an error that earlier work of the program left with the runtime is
/// logged and taken away, so that it is not found after one of our launches and blamed on it. One
/// that has broken the context stays, and fails our first call.
void dropStaleError(const char* call) noexcept;

}  // namespace fz::cuda
