// Builds without CUDA: there are no devices.
#include "backends/cuda/cuda_memory.h"
#include "backends/cuda/device_guard.h"
#include "backends/cuda/host_copy.h"
#include "core/require.h"
#include "fz/simple_stage.h"

namespace fz {

void executeAloneCuda(SimpleStage& /*stage*/,
                      cudaStream_t /*stream*/,
                      MemoryPool* /*pool*/,
                      std::span<const ByteView> /*inputs*/,
                      std::span<const MutableByteView> /*outputs*/) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}

}  // namespace fz

namespace fz::cuda {

bool isBuiltIn() noexcept {
  return false;
}
DeviceGuard::DeviceGuard(int /*device*/) {
}
DeviceGuard::~DeviceGuard() = default;
bool isInUse() noexcept {
  return false;
}
int deviceCount() noexcept {
  return 0;
}
int currentDevice() {
  return -1;
}
std::size_t totalMemory(int /*device*/) noexcept {
  return 0;
}
void releasePinnedPieces() noexcept {
}
bool isDeviceOnly(const void* /*data*/) noexcept {
  return false;
}
void copyOnDevice(void* /*to*/, const void* /*from*/, std::size_t /*n*/, cudaStream_t /*stream*/) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}
void dropStaleError(const char* /*call*/) noexcept {
}
void* allocateForCaller(std::size_t /*n_bytes*/, int /*device*/) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}
void freeForCaller(void* /*memory*/) noexcept {
}

}  // namespace fz::cuda
