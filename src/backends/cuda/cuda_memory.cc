#include "backends/cuda/cuda_memory.h"

#include <cstdint>
#include <limits>

#include <cuda_runtime_api.h>

#include "backends/cuda/captures.h"
#include "backends/cuda/device_guard.h"
#include "cuda_check.h"
#include "log.h"

namespace fz::cuda {

namespace {

cudaMemPool_t asPool(void* p) {
  return static_cast<cudaMemPool_t>(p);
}
cudaStream_t asStream(void* s) {
  return static_cast<cudaStream_t>(s);
}

/// The driver keeps the last error for whoever asks next; a failure that is handled here must not
/// turn up there.
bool succeeded(cudaError_t status) {
  if (status != cudaSuccess) {
    cudaGetLastError();
  }
  return status == cudaSuccess;
}

/// Null where the device has none. Throws Error(kOutOfMemory).
cudaMemPool_t makePool(int device) {
  int supported = 0;
  if (!succeeded(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device)) ||
      supported == 0) {
    return nullptr;
  }
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = device;
  cudaMemPool_t pool = nullptr;
  const cudaError_t status = cudaMemPoolCreate(&pool, &props);
  if (status == cudaErrorMemoryAllocation) {  // now, but not for ever
    FZ_CUDA_CHECK(status);
  }
  if (!succeeded(status)) {
    return nullptr;
  }
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  succeeded(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  return pool;
}

}  // namespace

CudaMemory::CudaMemory(int device, bool force_fallback) : device_(device) {
  const DeviceGuard guard(device);
  if (force_fallback) {
    return;
  }
  pool_ = makePool(device);
  cudaStream_t stream = nullptr;
  const cudaError_t status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (status != cudaSuccess && pool_ != nullptr) {  // no destructor will run
    FZ_CUDA_CHECK_WARN(cudaMemPoolDestroy(asPool(pool_)));
  }
  FZ_CUDA_CHECK(status);
  stream_ = stream;
  if (pool_ == nullptr) {
    FZ_LOG(INFO, "memory pool: device %d has no stream-ordered pool, using cudaMalloc", device);
  }
}

CudaMemory::~CudaMemory() {
  const UnnoticedByCaptures unnoticed;
  if (stream_ != nullptr) {
    // A pool may be destroyed while blocks are on their way back to it, says the documentation;
    // with other threads at work the driver then locks up or crashes (seen with 580.159).
    FZ_CUDA_CHECK_WARN(cudaStreamSynchronize(asStream(stream_)));
  }
  if (pool_ != nullptr) {
    FZ_CUDA_CHECK_WARN(cudaMemPoolDestroy(asPool(pool_)));
  }
  if (stream_ != nullptr) {
    FZ_CUDA_CHECK_WARN(cudaStreamDestroy(asStream(stream_)));
  }
}

void* CudaMemory::allocateDevice(std::size_t n_bytes) noexcept try {
  const DeviceGuard guard(device_);
  void* memory = nullptr;
  if (pool_ == nullptr) {
    return succeeded(cudaMalloc(&memory, n_bytes)) ? memory : nullptr;
  }
  if (!succeeded(cudaMallocFromPoolAsync(&memory, n_bytes, asPool(pool_), asStream(stream_)))) {
    return nullptr;
  }
  return succeeded(cudaStreamSynchronize(asStream(stream_))) ? memory : nullptr;
} catch (...) {
  return nullptr;
}

void CudaMemory::releaseDevice(void* memory) noexcept try {
  const DeviceGuard guard(device_);
  if (pool_ == nullptr) {
    FZ_CUDA_CHECK_WARN(cudaFree(memory));
    return;
  }
  const UnnoticedByCaptures unnoticed;
  // Work that uses the block may still run on a stream that is not known here.
  FZ_CUDA_CHECK_WARN(synchronizeDevice());
  FZ_CUDA_CHECK_WARN(cudaFreeAsync(memory, asStream(stream_)));
} catch (...) {
}

void* CudaMemory::allocatePinned(std::size_t n_bytes) noexcept try {
  const DeviceGuard guard(device_);
  void* memory = nullptr;
  return succeeded(cudaMallocHost(&memory, n_bytes)) ? memory : nullptr;
} catch (...) {
  return nullptr;
}

void CudaMemory::releasePinned(void* memory) noexcept {
  FZ_CUDA_CHECK_WARN(cudaFreeHost(memory));
}

void* allocateForCaller(std::size_t n_bytes, int device) {
  const DeviceGuard guard(device);
  void* memory = nullptr;
  FZ_CUDA_CHECK(cudaMalloc(&memory, n_bytes == 0 ? 1 : n_bytes));
  return memory;
}
void freeForCaller(void* memory) noexcept {
  FZ_CUDA_CHECK_WARN(cudaFree(memory));
}

}  // namespace fz::cuda
