#include "backends/cpu/parallel_for.h"

#include <algorithm>
#include <sched.h>
#include <thread>

#include "backends/cpu/executors.h"

namespace fz {

namespace {

class SerialExecutor final : public CpuExecutor {
 public:
  std::size_t threadCount() const noexcept override { return 1; }
  void run(std::size_t n_items, Body body) const override { body.call(body.object, 0, n_items); }
};

}  // namespace

const CpuExecutor& CpuExecutor::serial() {
  static const SerialExecutor kSerial;
  return kSerial;
}

std::size_t hardwareThreads() noexcept {
  // The affinity mask, not the machine: containers and batch systems give us fewer cores.
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

ThreadBackend defaultThreadBackend() noexcept {
  return hasTbb() ? ThreadBackend::kTbb : ThreadBackend::kStd;
}

std::size_t usableThreads(std::size_t n_threads) noexcept {
  return std::min(n_threads == 0 ? hardwareThreads() : n_threads, kMaxThreads);
}

std::unique_ptr<CpuExecutor> makeCpuExecutor(std::size_t n_threads, ThreadBackend backend) {
  const std::size_t count = usableThreads(n_threads);
  if (count == 1) {
    return std::make_unique<SerialExecutor>();
  }
  // TBB never runs more threads than there are cores, and complains on standard error when asked.
  const bool fits_tbb = hasTbb() && count <= hardwareThreads();
  return backend == ThreadBackend::kTbb && fits_tbb ? makeTbbExecutor(count)
                                                    : makeStdExecutor(count);
}

}  // namespace fz
