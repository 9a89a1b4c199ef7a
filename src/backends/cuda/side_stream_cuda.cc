#include "backends/cuda/run_context.h"
#include "backends/cuda/side_stream.h"
#include "cuda_check.h"

namespace fz::cuda {

void SideStream::drop() noexcept {
  if (stream_ != nullptr) {
    FZ_CUDA_CHECK_WARN(cudaStreamDestroy(stream_));
  }
  for (cudaEvent_t event : {begins_, ends_}) {
    if (event != nullptr) {
      FZ_CUDA_CHECK_WARN(cudaEventDestroy(event));
    }
  }
  stream_ = nullptr;
  begins_ = nullptr;
  ends_ = nullptr;
}

void SideStream::make(cudaStream_t beside) {
  int device = 0;
  FZ_CUDA_CHECK(cudaGetDevice(&device));
  if (ends_ != nullptr && device == device_) {
    return;
  }
  drop();
  int priority = 0;
  if (priority_ == Priority::kSame) {
    FZ_CUDA_CHECK(cudaStreamGetPriority(beside, &priority));
  } else {
    FZ_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(nullptr, &priority));
  }
  FZ_CUDA_CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority));
  FZ_CUDA_CHECK(cudaEventCreateWithFlags(&begins_, cudaEventDisableTiming));
  FZ_CUDA_CHECK(cudaEventCreateWithFlags(&ends_, cudaEventDisableTiming));
  device_ = device;
}

Call SideStream::fork(const Call& call) {
  if (call.run == nullptr || !call.run->hasRoomForSide()) {
    return call;
  }
  make(call.stream);
  FZ_CUDA_CHECK(cudaEventRecord(begins_, call.stream));
  FZ_CUDA_CHECK(cudaStreamWaitEvent(stream_, begins_, 0));
  waiting_ = call.stream;
  is_open_ = true;
  call.run->recordSide(*this);
  Call beside = call;
  beside.stream = stream_;
  return beside;
}

void SideStream::join() {
  if (is_open_) {
    is_open_ = false;
    FZ_CUDA_CHECK(cudaEventRecord(ends_, stream_));
    FZ_CUDA_CHECK(cudaStreamWaitEvent(waiting_, ends_, 0));
  }
}

void SideStream::abandon() noexcept {
  if (is_open_) {
    is_open_ = false;
    cudaError_t status = cudaSuccess;
    FZ_CUDA_CHECK_WARN(status = cudaEventRecord(ends_, stream_));
    if (status == cudaSuccess) {
      FZ_CUDA_CHECK_WARN(cudaStreamWaitEvent(waiting_, ends_, 0));
    }
  }
}

}  // namespace fz::cuda
