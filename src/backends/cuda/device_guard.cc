#include "backends/cuda/device_guard.h"

#include <array>
#include <atomic>
#include <dlfcn.h>

#include <cuda_runtime_api.h>

#include "backends/cuda/launch.h"
#include "cuda_check.h"
#include "log.h"

namespace fz::cuda {

bool isBuiltIn() noexcept {
  return true;
}

void copyOnDevice(void* to, const void* from, std::size_t n_bytes, cudaStream_t stream) {
  FZ_CUDA_CHECK(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToDevice, stream));
}

DeviceGuard::DeviceGuard(int device) {
  if (device < 0) {
    return;
  }
  int current = 0;
  FZ_CUDA_CHECK(cudaGetDevice(&current));
  if (current != device) {
    FZ_CUDA_CHECK(cudaSetDevice(device));
    previous_ = current;
  }
}

DeviceGuard::~DeviceGuard() {
  if (previous_ >= 0) {
    FZ_CUDA_CHECK_WARN(cudaSetDevice(previous_));
  }
}

bool isInUse() noexcept {
  static std::atomic<bool> was_in_use = false;
  if (was_in_use.load(std::memory_order_relaxed)) {
    return true;
  }
  // The runtime, ours or another, loads the driver's library when it is first called.
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) {
    return false;
  }
  dlclose(driver);
  was_in_use.store(true, std::memory_order_relaxed);
  return true;
}

int deviceCount() noexcept {
  static const int kCount = [] {
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess) {
      cudaGetLastError();  // no driver or no device: not an error to anybody else
      return 0;
    }
    return n;
  }();
  return kCount;
}

int currentDevice() {
  int device = 0;
  FZ_CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

std::size_t totalMemory(int device) noexcept try {
  const DeviceGuard guard(device);
  std::size_t n_free = 0;
  std::size_t n_total = 0;
  FZ_CUDA_CHECK(cudaMemGetInfo(&n_free, &n_total));
  return n_total;
} catch (...) {
  return 0;
}

void dropStaleError(const char* call) noexcept {
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    FZ_LOG(WARN, "CUDA: error %d (%s, %s) was pending before %s, which did not cause it",
           static_cast<int>(status), cudaGetErrorName(status), cudaGetErrorString(status), call);
  }
}

bool isDeviceOnly(const void* data) noexcept {
  cudaPointerAttributes attributes = {};
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeDevice;
}

unsigned multiprocessorCount() {
  static std::array<std::atomic<unsigned>, 64> known{};
  const int device = currentDevice();
  std::atomic<unsigned>& slot = known[static_cast<std::size_t>(device) % known.size()];
  unsigned n = slot.load(std::memory_order_relaxed);
  if (n == 0) {
    int count = 0;
    FZ_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    n = static_cast<unsigned>(count);
    slot.store(n, std::memory_order_relaxed);
  }
  return n;
}

}  // namespace fz::cuda
