#include <atomic>
#include <chrono>

#include <cuda_runtime_api.h>

#include "backends/cuda/host_flag.h"
#include "cuda_check.h"

namespace fz::cuda {

namespace {

/// Longer calls gain nothing, and whoever waits may sleep.
constexpr std::chrono::microseconds kLongestSpin(500);
constexpr int kLooksPerClock = 64;

}  // namespace

void lowerFlag(std::uint32_t* flag) {
  std::atomic_ref<std::uint32_t>(*flag).store(0, std::memory_order_release);
}

void waitForFlag(const std::uint32_t* flag, cudaStream_t stream) {
  const std::atomic_ref<std::uint32_t> word(*const_cast<std::uint32_t*>(flag));
  const auto end = std::chrono::steady_clock::now() + kLongestSpin;
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (word.load(std::memory_order_acquire) != 0) {
        return;
      }
    }
  } while (std::chrono::steady_clock::now() < end);
  FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
}

}  // namespace fz::cuda
