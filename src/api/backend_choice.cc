#include "api/backend_choice.h"

#include <cstdlib>
#include <fmt/format.h>

#include "backends/cpu/parallel_for.h"
#include "backends/cuda/device_guard.h"
#include "backends/cuda/host_copy.h"

namespace fz {

namespace {

constexpr std::size_t kKib = std::size_t{1} << 10;
constexpr std::size_t kMib = std::size_t{1} << 20;

// Measured on one H200 (bus of 55 GB/s) with 1, 4 and 16 threads, 64 KiB to 512 MiB, presets
// cuszp2, pfpl, balanced and best (fz_gpu_bench --host). A device needs 0.1 to 0.4 ms for any call,
// and pageable memory comes to it at 9 GB/s for each thread: about what packing takes on the CPU.
struct Limits {
  std::size_t least_threads;     ///< fewer: the device from `small` on
  std::size_t bytes_per_thread;  ///< up to so many for each thread the CPU is quicker
  std::size_t small;             ///< up to so many on any machine
};

Limits limitsToCompress(ChainCost chain) {
  switch (chain) {
    case ChainCost::kPacking:
      return {12, 3 * kMib, 512 * kKib};
    case ChainCost::kShuffle:
      return {12, 0, 512 * kKib};
    case ChainCost::kEntropy:
      break;
  }
  return {12, 0, 128 * kKib};
}

Limits limitsToDecompress(ChainCost chain) {
  return {4, chain == ChainCost::kPacking ? 6 * kMib : kMib, 512 * kKib};
}

BackendChoice choose(const HostCall& call, const Limits& limits) {
  const char* const wish = std::getenv("FZ_BACKEND");
  if (wish != nullptr && *wish != '\0') {
    const std::string_view text = wish;
    // What else it may say is the pipeline's to refuse.
    const Backend backend = text == "cpu"    ? Backend::CPU
                            : text == "cuda" ? Backend::CUDA
                                             : Backend::Auto;
    return {backend, fmt::format("FZ_BACKEND is {}", wish)};
  }
  if (!cuda::isBuiltIn()) {
    return {Backend::CPU, "this build has no CUDA"};
  }
  if (cuda::deviceCount() == 0) {
    return {Backend::CPU, "no CUDA device answers"};
  }
  const std::size_t n_threads = usableThreads(call.n_threads);
  const auto mib = static_cast<double>(call.n_bytes) / static_cast<double>(kMib);
  if (call.n_bytes <= limits.small) {
    return {Backend::CPU,
            fmt::format("{:.2g} MiB take less time than a device takes to begin", mib)};
  }
  if (call.memory != nullptr && !cuda::isPageable(call.memory)) {
    return {Backend::CUDA, "the array is in pinned memory"};
  }
  if (n_threads >= limits.least_threads && call.n_bytes <= n_threads * limits.bytes_per_thread) {
    return {Backend::CPU,
            fmt::format("{} threads are done with {:.3g} MiB before they have crossed "
                        "the bus",
                        n_threads, mib)};
  }
  return {Backend::CUDA, fmt::format("{:.4g} MiB cross the bus sooner than {} {} done with them",
                                     mib, n_threads, n_threads == 1 ? "thread is" : "threads are")};
}

}  // namespace

ChainCost chainCostOf(std::string_view text) {
  const auto has = [&](std::string_view name) { return text.find(name) != std::string_view::npos; };
  if (has("BlockANS") || has("Huffman") || has("Interp")) {
    return ChainCost::kEntropy;
  }
  return has("AdaptiveBitpack") && !has("RZE") ? ChainCost::kPacking : ChainCost::kShuffle;
}

BackendChoice chooseToCompress(const HostCall& call) {
  return choose(call, limitsToCompress(call.chain));
}

BackendChoice chooseToDecompress(const HostCall& call) {
  return choose(call, limitsToDecompress(call.chain));
}

}  // namespace fz
