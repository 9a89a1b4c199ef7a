#include "gpu/device_stage.h"

#include <algorithm>

#include <cuda_runtime_api.h>

#include "backends/cpu/exec_context.h"
#include "cuda_check.h"
#include "support/stage_run.h"

namespace fz::test {

namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::uint8_t kGuard = 0xA5;
const ExecContext kOnDevice{Backend::CUDA, nullptr};

/// Device memory with a guard behind it, so that a kernel that writes too far is caught.
class GuardedDevice {
 public:
  GuardedDevice(std::size_t n_bytes, std::uint8_t poison) : n_bytes_(n_bytes) {
    FZ_CUDA_CHECK(cudaMalloc(&memory_, n_bytes + kGuardBytes));
    FZ_CUDA_CHECK(cudaMemset(memory_, poison, n_bytes));
    FZ_CUDA_CHECK(cudaMemset(static_cast<std::uint8_t*>(memory_) + n_bytes, kGuard, kGuardBytes));
  }
  explicit GuardedDevice(ByteView bytes) : GuardedDevice(bytes.size(), 0) {
    FZ_CUDA_CHECK(cudaMemcpy(memory_, bytes.data(), bytes.size(), cudaMemcpyDefault));
  }
  GuardedDevice(GuardedDevice&& other) noexcept
      : n_bytes_(other.n_bytes_), memory_(std::exchange(other.memory_, nullptr)) {}
  ~GuardedDevice() { cudaFree(memory_); }
  void* data() const { return n_bytes_ == 0 ? nullptr : memory_; }
  Bytes take(std::size_t n_used) const {
    Bytes bytes(n_used);
    FZ_CUDA_CHECK(cudaMemcpy(bytes.data(), memory_, n_used, cudaMemcpyDefault));
    return bytes;
  }
  bool isIntact() const {
    Bytes guard(kGuardBytes);
    FZ_CUDA_CHECK(cudaMemcpy(guard.data(), static_cast<std::uint8_t*>(memory_) + n_bytes_,
                             kGuardBytes, cudaMemcpyDefault));
    return std::all_of(guard.begin(), guard.end(), [](std::uint8_t b) { return b == kGuard; });
  }

 private:
  std::size_t n_bytes_;
  void* memory_ = nullptr;
};

}  // namespace

MemoryPool& devicePool() {
  static MemoryPool* pool = [] {
    MemoryPoolConfig config;
    config.backend = Backend::CUDA;
    return new MemoryPool(config);  // never deleted: the driver goes first at exit
  }();
  return *pool;
}

Encoded encodeOnDevice(Stage& stage, ByteView input, std::uint8_t poison) {
  const GuardedDevice on_device(input);
  return runEncoder<GuardedDevice>(
      stage, {{on_device.data()}, {input.size()}, &kOnDevice, &devicePool()}, poison);
}

Bytes decodeOnDevice(std::uint16_t stage_id, const Encoded& encoded) {
  const std::unique_ptr<Stage> stage =
      makeStage(stage_id, encoded.config.data(), encoded.config.size(), encoded.version);
  StageInputs inputs{{}, {}, &kOnDevice, &devicePool()};
  std::vector<GuardedDevice> streams;
  for (const Bytes& stream : encoded.streams) {
    streams.emplace_back(ByteView(stream));
    inputs.data.push_back(streams.back().data());
    inputs.n_bytes.push_back(stream.size());
  }
  return runDecoder<GuardedDevice>(*stage, inputs);
}

}  // namespace fz::test
