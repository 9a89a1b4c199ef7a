#pragma once

namespace fz::cuda {

/// Makes a device current and gives the caller's back, so that the library never changes it.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard();

 private:
  int previous_ = -1;  // -1: nothing to restore
};

/// Devices that answer; 0 without a driver. Asked once per process.
int deviceCount() noexcept;
int currentDevice();
/// Whether the host cannot read the memory at `data`.
bool isDeviceOnly(const void* data) noexcept;

/// At the entry of a call: an error that earlier work of the program left with the runtime is
/// logged and taken away, so that it is not found after one of our launches and blamed on it. One
/// that has broken the context stays, and fails our first call.
void dropStaleError(const char* call) noexcept;

}  // namespace fz::cuda
