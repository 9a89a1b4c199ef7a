#include <fmt/format.h>

#include <cuda_runtime_api.h>

#include "backends/cuda/batch_memory.h"
#include "core/require.h"
#include "cuda_check.h"

namespace fz::cuda {

BatchMemory::~BatchMemory() {
  if (data_ != nullptr) {
    FZ_CUDA_CHECK_WARN(is_pinned_ ? cudaFreeHost(data_) : cudaFree(data_));
  }
}

bool BatchMemory::reserve(std::size_t n_bytes, bool is_pinned) {
  if (n_bytes <= n_bytes_) {
    return false;
  }
  if (data_ != nullptr) {
    FZ_CUDA_CHECK(is_pinned_ ? cudaFreeHost(data_) : cudaFree(data_));
    data_ = nullptr;
    n_bytes_ = 0;
  }
  void* memory = nullptr;
  const cudaError_t status =
      is_pinned ? cudaMallocHost(&memory, n_bytes) : cudaMalloc(&memory, n_bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    detail::throwError(ErrorCode::kOutOfMemory,
                       fmt::format("DeviceBatch: cannot allocate {} bytes", n_bytes));
  }
  FZ_CUDA_CHECK(status);
  data_ = static_cast<std::uint8_t*>(memory);
  n_bytes_ = n_bytes;
  is_pinned_ = is_pinned;
  return true;
}

}  // namespace fz::cuda
