#include <cuda_runtime_api.h>

#include "cuda_check.h"
#include "mem/zeroed_scratch.h"

namespace fz {

std::uint8_t* ZeroedScratch::get(const CudaRun& run, std::size_t n_bytes) {
  data_ = memory_.get<std::uint8_t>(run.pool, n_bytes).data();
  if (is_in_use_ || n_bytes > n_zero_bytes_) {
    n_zero_bytes_ = n_bytes > n_zero_bytes_ ? n_bytes : n_zero_bytes_;
    FZ_CUDA_CHECK(cudaMemsetAsync(data_, 0, n_zero_bytes_, run.stream));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    FZ_CUDA_CHECK(cudaStreamIsCapturing(run.stream, &status));
    is_uncertain_ = status != cudaStreamCaptureStatusNone;
  }
  n_bytes_ = n_bytes;
  is_in_use_ = true;
  return data_;
}

void ZeroedScratch::clear(cudaStream_t stream) {
  FZ_CUDA_CHECK(cudaMemsetAsync(data_, 0, n_bytes_, stream));
  noteZero();
}

}  // namespace fz
