#include <algorithm>

#include <cuda_runtime_api.h>

#include "backends/cuda/run_context.h"
#include "backends/cuda/side_stream.h"
#include "backends/cuda/zeroed_scratch.h"
#include "cuda_check.h"

namespace fz::cuda {

RunContext::~RunContext() {
  for (std::size_t i = 0; i < n_sides_; ++i) {
    sides_[i]->abandon();
  }
  for (std::size_t i = 0; i < n_clears_; ++i) {
    const std::size_t n_bytes = clears_[i].n_words * sizeof(std::uint64_t);
    cudaError_t status = cudaSuccess;
    FZ_CUDA_CHECK_WARN(status = cudaMemsetAsync(clears_[i].words, 0, n_bytes, stream()));
    if (status == cudaSuccess) {
      owners_[i]->recordZero();
    }
  }
}

bool RunContext::hasOpenSide() const {
  return std::any_of(sides_.begin(), sides_.begin() + n_sides_,
                     [](const SideStream* side) { return side->isOpen(); });
}

void RunContext::joinSides() {
  for (std::size_t i = 0; i < n_sides_; ++i) {
    sides_[i]->join();
  }
  n_sides_ = 0;
}

bool RunContext::clearAtEnd(std::uint8_t* memory, std::size_t n_bytes, ZeroedScratch& owner) {
  if (n_clears_ == kMaxClears || n_bytes % sizeof(std::uint64_t) != 0) {
    return false;
  }
  clears_[n_clears_] = {reinterpret_cast<std::uint64_t*>(memory), n_bytes / sizeof(std::uint64_t)};
  owners_[n_clears_++] = &owner;
  return true;
}

void RunContext::withdrawClear(const ZeroedScratch& owner) {
  std::size_t n_kept = 0;
  for (std::size_t i = 0; i < n_clears_; ++i) {
    if (owners_[i] != &owner) {
      clears_[n_kept] = clears_[i];
      owners_[n_kept++] = owners_[i];
    }
  }
  n_clears_ = n_kept;
}

void RunContext::recordClears() {
  for (std::size_t i = 0; i < n_clears_; ++i) {
    owners_[i]->recordZero();
  }
  n_clears_ = 0;
}

HostReadback RunContext::takeReadback() {
  if (readback_ != Readback::kOpen) {
    return {};
  }
  readback_ = Readback::kTaken;
  state_->recordReadback();
  return state_->hostReadback();
}

void Call::launch(const KernelLaunch& kernel) const {
  Launcher launcher = run != nullptr ? run->launcher() : Launcher{};
  launcher.stream = stream;  // which may be beside the run's own
  launcher.launch(kernel);
}

const std::uint64_t* Call::mayWrite() const {
  return run != nullptr ? run->mayWrite() : nullptr;
}

void Call::clearAtEnd(ZeroedScratch& scratch) const {
  scratch.clear(*this);
}

HostReadback Call::takeReadback() const {
  return run != nullptr ? run->takeReadback() : HostReadback{};
}

}  // namespace fz::cuda
