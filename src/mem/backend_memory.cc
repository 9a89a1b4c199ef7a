#include "fz/backend_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/require.h"
#include "mem/host_memory.h"

#if FZ_HAVE_CUDA
#include <cuda_runtime_api.h>

#include "backends/cuda/captures.h"
#include "backends/cuda/cuda_memory.h"
#include "backends/cuda/device_guard.h"
#include "cuda_check.h"
#endif

namespace fz {

namespace {

void copyBytes([[maybe_unused]] Backend backend, void* to, const void* from, std::size_t n_bytes) {
#if FZ_HAVE_CUDA
  if (backend == Backend::CUDA) {
    FZ_CUDA_CHECK(cudaMemcpy(to, from, n_bytes, cudaMemcpyDefault));
    FZ_CUDA_CHECK(cudaStreamSynchronize(nullptr));  // copies inside a device do not wait
    return;
  }
#endif
  if (n_bytes > 0) {
    std::memcpy(to, from, n_bytes);
  }
}

}  // namespace

BackendMemory::BackendMemory(Backend backend, std::size_t n_bytes)
    : backend_(backend), n_bytes_(n_bytes) {
  FZ_REQUIRE(backend != Backend::Auto, ErrorCode::kInvalidArgument,
             "BackendMemory: name the backend, cpu or cuda");
  FZ_REQUIRE(isBackendAvailable(backend), ErrorCode::kNoDevice,
             "BackendMemory: no device for the backend {}", backendName(backend));
#if FZ_HAVE_CUDA
  if (backend == Backend::CUDA) {
    int device = 0;
    FZ_CUDA_CHECK(cudaGetDevice(&device));
    memory_ = cuda::allocateForCaller(n_bytes, device);
    return;
  }
#endif
  memory_ = allocateOnHost(n_bytes);
  FZ_REQUIRE(memory_ != nullptr, ErrorCode::kOutOfMemory, "BackendMemory: cannot allocate {} bytes",
             n_bytes);
}

BackendMemory::~BackendMemory() {
#if FZ_HAVE_CUDA
  if (backend_ == Backend::CUDA) {
    cuda::freeForCaller(memory_);
    return;
  }
#endif
  std::free(memory_);
}

void BackendMemory::upload(ByteView bytes) {
  FZ_REQUIRE(bytes.size() <= n_bytes_, ErrorCode::kBufferTooSmall,
             "BackendMemory: cannot copy {} bytes into a block of {}", bytes.size(), n_bytes_);
  copyBytes(backend_, memory_, bytes.data(), bytes.size());
}

void BackendMemory::download(MutableByteView bytes) const {
  FZ_REQUIRE(bytes.size() <= n_bytes_, ErrorCode::kBufferTooSmall,
             "BackendMemory: cannot copy {} bytes out of a block of {}", bytes.size(), n_bytes_);
  copyBytes(backend_, bytes.data(), memory_, bytes.size());
}

void BackendMemory::fetch(Backend backend, const void* from, MutableByteView to) {
  copyBytes(backend, to.data(), from, to.size());
}

void BackendMemory::copyFrom(const BackendMemory& other) {
  copyBytes(backend_, memory_, other.memory_, std::min(n_bytes_, other.n_bytes_));
}

void waitForDevice([[maybe_unused]] int device) {
#if FZ_HAVE_CUDA
  const cuda::DeviceGuard guard(device);
  FZ_CUDA_CHECK(cuda::synchronizeDevice());
#endif
}

}  // namespace fz
