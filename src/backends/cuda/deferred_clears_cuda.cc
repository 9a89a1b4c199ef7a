#include <algorithm>

#include <cuda_runtime_api.h>

#include "backends/cuda/deferred_clears.h"
#include "cuda_check.h"

namespace fz::cuda {

namespace {

thread_local DeferredClears* current = nullptr;

}  // namespace

DeferredClears::DeferredClears(cudaStream_t stream) : stream_(stream), previous_(current) {
  current = this;
}

DeferredClears::~DeferredClears() {
  current = previous_;
  for (const ClearRange& range : ranges()) {
    FZ_CUDA_CHECK_WARN(
        cudaMemsetAsync(range.words, 0, range.n_words * sizeof(std::uint64_t), stream_));
  }
}

bool DeferredClears::add(std::uint8_t* memory, std::size_t n_bytes, cudaStream_t stream) {
  if (current == nullptr || current->stream_ != stream || current->n_ranges_ == kMostRanges ||
      n_bytes % sizeof(std::uint64_t) != 0) {
    return false;
  }
  current->ranges_[current->n_ranges_++] = {reinterpret_cast<std::uint64_t*>(memory),
                                            n_bytes / sizeof(std::uint64_t)};
  return true;
}

bool DeferredClears::withdraw(const std::uint8_t* memory) {
  if (current == nullptr) {
    return false;
  }
  const auto end = current->ranges_.begin() + static_cast<std::ptrdiff_t>(current->n_ranges_);
  const auto kept = std::remove_if(current->ranges_.begin(), end, [&](const ClearRange& range) {
    return reinterpret_cast<const std::uint8_t*>(range.words) == memory;
  });
  current->n_ranges_ = static_cast<std::size_t>(kept - current->ranges_.begin());
  return kept != end;
}

}  // namespace fz::cuda
