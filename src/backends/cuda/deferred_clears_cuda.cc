#include <cuda_runtime_api.h>

#include "backends/cuda/deferred_clears.h"
#include "cuda_check.h"
#include "mem/zeroed_scratch.h"

namespace fz::cuda {

namespace {

thread_local DeferredClears* current = nullptr;

}  // namespace

DeferredClears::DeferredClears(cudaStream_t stream) : stream_(stream), previous_(current) {
  current = this;
}

DeferredClears::~DeferredClears() {
  current = previous_;
  for (std::size_t i = 0; i < n_ranges_; ++i) {
    const std::size_t n_bytes = ranges_[i].n_words * sizeof(std::uint64_t);
    cudaError_t status = cudaSuccess;
    FZ_CUDA_CHECK_WARN(status = cudaMemsetAsync(ranges_[i].words, 0, n_bytes, stream_));
    if (status == cudaSuccess) {
      owners_[i]->noteZero();
    }
  }
}

bool DeferredClears::add(std::uint8_t* memory,
                         std::size_t n_bytes,
                         cudaStream_t stream,
                         ZeroedScratch& owner) {
  if (current == nullptr || current->stream_ != stream || current->n_ranges_ == kMostRanges ||
      n_bytes % sizeof(std::uint64_t) != 0) {
    return false;
  }
  const std::size_t at = current->n_ranges_++;
  current->ranges_[at] = {reinterpret_cast<std::uint64_t*>(memory),
                          n_bytes / sizeof(std::uint64_t)};
  current->owners_[at] = &owner;
  return true;
}

void DeferredClears::withdraw(const ZeroedScratch& owner) {
  if (current == nullptr) {
    return;
  }
  std::size_t n_kept = 0;
  for (std::size_t i = 0; i < current->n_ranges_; ++i) {
    if (current->owners_[i] != &owner) {
      current->ranges_[n_kept] = current->ranges_[i];
      current->owners_[n_kept++] = current->owners_[i];
    }
  }
  current->n_ranges_ = n_kept;
}

void DeferredClears::release() {
  for (std::size_t i = 0; i < n_ranges_; ++i) {
    owners_[i]->noteZero();
  }
  n_ranges_ = 0;
}

}  // namespace fz::cuda
