#include "backends/cuda/zeroed_scratch.h"

#include <algorithm>
#include <utility>

#include <cuda_runtime_api.h>

#include "backends/cuda/run_context.h"
#include "cuda_check.h"

namespace fz {

std::uint8_t* ZeroedScratch::get(const cuda::Call& call, std::size_t n_bytes) {
  // Nothing is known of the memory while it may change, or if there is none to be had.
  std::size_t n_known_bytes = std::exchange(n_zero_bytes_, 0);
  // Before its memory may change: a block that is given up must not be cleared later.
  if (call.run != nullptr) {
    call.run->withdrawClear(*this);
  }
  std::uint8_t* memory = memory_.get<std::uint8_t>(call.pool, n_bytes).data();
  if (memory != data_ || call.pool != pool_ || is_in_use_ || n_bytes > n_known_bytes) {
    const bool is_new = memory != data_ || call.pool != pool_;
    n_known_bytes = is_new ? n_bytes : std::max(n_bytes, n_known_bytes);
    data_ = memory;
    pool_ = call.pool;
    is_in_use_ = true;
    FZ_CUDA_CHECK(cudaMemsetAsync(data_, 0, n_known_bytes, call.stream));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    FZ_CUDA_CHECK(cudaStreamIsCapturing(call.stream, &status));
    is_uncertain_ = status != cudaStreamCaptureStatusNone;
  }
  n_zero_bytes_ = n_known_bytes;
  n_bytes_ = n_bytes;
  is_in_use_ = true;
  return data_;
}

void ZeroedScratch::clear(const cuda::Call& call) {
  if (call.run == nullptr || !call.run->clearAtEnd(data_, n_bytes_, *this)) {
    FZ_CUDA_CHECK(cudaMemsetAsync(data_, 0, n_bytes_, call.stream));
    recordZero();
  }
}

}  // namespace fz
