#include <algorithm>
#include <stdexcept>

#include <cuda_runtime_api.h>

#include "fz/error.h"
#include "fz/host_api.h"
#include "gpu/device_lives.h"
#include "gpu/failing_cuda.h"

namespace fz::test {

void LifeSteps::requireNoErrorLeft(const char* name) {
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    failures_.push_back(std::string(name) + " leaves behind: " + cudaGetErrorString(status));
  }
}

void LifeSteps::step(const char* name, const std::function<void()>& call) {
  const std::size_t n_before = result_.size();
  try {
    {
      const failing_cuda::Watch watch;
      call();
    }
    requireNoErrorLeft(name);
    return;
  } catch (const Error& e) {
    failing_cuda::stop();
    had_error_ = true;
    if (e.code() != ErrorCode::kOutOfMemory) {
      failures_.push_back(std::string(name) + ": " + errorCodeName(e.code()) + ": " + e.what());
    }
  } catch (const std::exception& e) {
    failing_cuda::stop();
    had_error_ = true;
    failures_.push_back(std::string(name) + ": untyped " + e.what());
  }
  requireNoErrorLeft(name);
  result_.resize(n_before);
  try {
    call();
  } catch (const std::exception& e) {
    throw std::runtime_error(std::string(name) + " does not work afterwards: " + e.what());
  }
}

LifeReport liveWithFailures(const Life& life, bool and_all_later, std::uint64_t most) {
  LifeReport report;
  releaseDeviceMemory();  // what others left is not this life's to give back
  const auto liveOnce = [&](std::uint64_t k, std::vector<std::uint8_t>& result) {
    LifeSteps steps;
    const std::int64_t n_held = failing_cuda::heldCount();
    std::string failure;
    failing_cuda::failAt(k, and_all_later);
    try {
      life.live(steps);
    } catch (const std::exception& e) {
      failure = e.what();
    }
    failing_cuda::stop();
    const std::uint64_t n_left = static_cast<std::uint64_t>(failing_cuda::heldCount() - n_held);
    if (n_left != 0) {
      steps.failures().push_back(std::to_string(static_cast<std::int64_t>(n_left)) +
                                 " blocks, streams, events, pools or graphs are left");
    }
    if (!failure.empty()) {
      steps.failures().push_back(failure);
    }
    for (const std::string& text : steps.failures()) {
      report.failures.push_back(life.name + ", call " + std::to_string(k) + " (" +
                                failing_cuda::failedCall() +
                                (and_all_later ? ", for good): " : ", once): ") + text);
    }
    result = steps.result();
    return steps.hadError();
  };
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  std::vector<std::uint8_t> expected;
  liveOnce(kNever, expected);  // loads kernels, and makes what is made once per process
  liveOnce(kNever, expected);
  report.n_calls = failing_cuda::callCount();
  for (std::uint64_t k = 0; k < std::min(report.n_calls, most) && report.failures.size() < 5; ++k) {
    std::vector<std::uint8_t> result;
    const bool had_error = liveOnce(k, result);
    ++(had_error ? report.n_typed_errors : report.n_did_without);
    if (result != expected && report.failures.empty()) {
      report.failures.push_back(life.name + ", call " + std::to_string(k) + " (" +
                                failing_cuda::failedCall() + "): other bytes");
    }
  }
  return report;
}

}  // namespace fz::test
