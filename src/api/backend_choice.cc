#include "api/backend_choice.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>

#include "backends/cpu/parallel_for.h"
#include "backends/cuda/device_guard.h"

namespace fz {

namespace {

constexpr std::size_t kKib = std::size_t{1} << 10;
constexpr std::size_t kMib = std::size_t{1} << 20;
// Fewer copy more slowly than a device decodes.
constexpr std::size_t kThreadsOfABus = 4;
constexpr std::size_t kThreadsThatPack = 12;

// Measured on one H200 (bus of 55 GB/s) with 1, 4 and 16 threads, 64 KiB to 512 MiB, presets
// cuszp2, pfpl, balanced and best (fz_gpu_bench --host); docs/gpu.md has the table.

/// What a process waits for when it uses CUDA for the first time.
constexpr double kBeginSeconds = 0.35;

/// GB/s of one of several threads, to say when beginning is worth it.
double rateOf(const HostCall& call, bool compresses) {
  switch (call.chain) {
    case ChainCost::kPacking:
      return 2.0;
    case ChainCost::kShuffle:
      return 1.5;
    case ChainCost::kEntropy:
      break;
  }
  return compresses ? 0.25 : 0.9;
}

/// What calls would have taken less of on a device, had the process begun to use it. When that is
/// as much as beginning takes, it begins: so nobody ever waits for more than twice what he had to.
bool isWorthBeginning(double seconds) {
  static std::atomic<std::int64_t> n_spent_us{0};
  const auto n_us = static_cast<std::int64_t>(seconds * 1e6);
  return static_cast<double>(n_spent_us.fetch_add(n_us) + n_us) * 1e-6 >= kBeginSeconds;
}

/// Nothing where a device may be asked.
std::optional<BackendChoice> chooseWithoutDevice(const HostCall& call, bool compresses) {
  const char* const wish = std::getenv("FZ_BACKEND");
  if (wish != nullptr && *wish != '\0') {
    const std::string_view text = wish;
    // What else it may say is the pipeline's to refuse.
    const Backend backend = text == "cpu"    ? Backend::CPU
                            : text == "cuda" ? Backend::CUDA
                                             : Backend::Auto;
    return BackendChoice{backend, fmt::format("FZ_BACKEND is {}", wish)};
  }
  if (!cuda::isBuiltIn()) {
    return BackendChoice{Backend::CPU, "this build has no CUDA"};
  }
  if (!cuda::isInUse()) {
    const double rate = 1e9 * rateOf(call, compresses);
    const auto n_threads = static_cast<double>(usableThreads(call.n_threads));
    if (!isWorthBeginning(static_cast<double>(call.n_bytes) / (rate * n_threads))) {
      return BackendChoice{Backend::CPU,
                           "it takes less time than a process needs to begin with CUDA"};
    }
  }
  if (cuda::deviceCount() == 0) {
    return BackendChoice{Backend::CPU, "no CUDA device answers"};
  }
  return std::nullopt;
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
  if (const auto choice = chooseWithoutDevice(call, true)) {
    return *choice;
  }
  // Packing takes many threads no longer than copying to the bus does, where both are under way.
  const std::size_t n_threads = usableThreads(call.n_threads);
  if (call.chain == ChainCost::kPacking && n_threads >= kThreadsThatPack &&
      call.n_bytes >= 8 * kMib && call.n_bytes <= 3 * kMib * n_threads) {
    return {Backend::CPU,
            fmt::format("{} threads pack it before it has crossed the bus", n_threads)};
  }
  return {Backend::CUDA, "it crosses the bus sooner than threads are done with it"};
}

BackendChoice chooseToDecompress(const HostCall& call) {
  if (const auto choice = chooseWithoutDevice(call, false)) {
    return *choice;
  }
  // Packed values are written as fast as memory takes them, which is faster than through the bus.
  const std::size_t n_threads = usableThreads(call.n_threads);
  const std::size_t most = n_threads * (call.chain == ChainCost::kPacking ? 6 : 1) * kMib;
  const std::size_t tiny = (call.chain == ChainCost::kEntropy ? 128 : 256) * kKib;
  const auto mib = static_cast<double>(call.n_bytes) / static_cast<double>(kMib);
  if (n_threads >= kThreadsOfABus && call.n_bytes > tiny && call.n_bytes <= most) {
    return {Backend::CPU,
            fmt::format("{} threads decode {:.3g} MiB before they have crossed the bus", n_threads,
                        mib)};
  }
  return {Backend::CUDA,
          fmt::format("{:.3g} MiB cross the bus sooner than {} {} them", mib, n_threads,
                      n_threads == 1 ? "thread decodes" : "threads decode")};
}

Backend chooseForBatch(const HostCall& call, std::size_t n_fields, bool compresses) {
  if (const auto choice = chooseWithoutDevice(call, compresses)) {
    return choice->backend;
  }
  // Every thread has a field of its own, and none waits for a device that works on little.
  const std::size_t field_bytes = call.n_bytes / std::max<std::size_t>(n_fields, 1);
  if (usableThreads(call.n_threads) >= kThreadsOfABus && n_fields >= kThreadsOfABus &&
      field_bytes <= kMib) {
    return Backend::CPU;
  }
  const HostCall one{field_bytes, call.n_threads, call.chain};
  return (compresses ? chooseToCompress(one) : chooseToDecompress(one)).backend;
}

}  // namespace fz
