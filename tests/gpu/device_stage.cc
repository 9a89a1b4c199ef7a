#include "gpu/device_stage.h"

#include <algorithm>
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include "backends/cpu/exec_context.h"
#include "cuda_check.h"
#include "fzm_format.h"
#include "stage/stage_factory.h"

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

std::vector<GuardedDevice> makeBuffers(const std::vector<std::size_t>& sizes, std::uint8_t poison) {
  std::vector<GuardedDevice> buffers;
  for (const std::size_t n : sizes) {
    buffers.emplace_back(n, poison);
  }
  return buffers;
}

std::vector<void*> pointers(const std::vector<GuardedDevice>& buffers) {
  std::vector<void*> all;
  for (const GuardedDevice& b : buffers) {
    all.push_back(b.data());
  }
  return all;
}

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
  stage.setExecContext(&kOnDevice);
  stage.setInverse(false);
  stage.beginRun();
  const GuardedDevice on_device(input);
  const std::vector<std::size_t> limits = stage.maxOutputSizes({input.size()});
  std::vector<std::size_t> sizes = stage.estimateOutputSizes({input.size()});
  for (int attempt = 0;; ++attempt) {
    const std::vector<GuardedDevice> buffers = makeBuffers(sizes, poison);
    stage.setOutputCapacities(sizes);
    stage.execute(nullptr, &devicePool(), {on_device.data()}, pointers(buffers), {input.size()});
    for (const GuardedDevice& b : buffers) {
      EXPECT_TRUE(b.isIntact()) << stage.getName() << " wrote past the end of an output";
    }
    const std::vector<std::size_t> needed = stage.neededOutputSizes();
    if (!needed.empty() && attempt < 8) {
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        sizes[i] = std::max(sizes[i], needed[i]);
      }
      continue;
    }
    if (stage.wantsRerun() && attempt < 8) {
      continue;
    }
    stage.postStreamSync(nullptr);
    stage.checkResult();
    Encoded encoded;
    encoded.version = stage.getStageVersion();
    encoded.config.resize(FZM_STAGE_CONFIG_SIZE);
    encoded.config.resize(stage.serializeHeader(0, encoded.config.data(), encoded.config.size()));
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::size_t n_used = stage.getActualOutputSize(static_cast<int>(i));
      EXPECT_LE(n_used, sizes[i]) << stage.getName() << " port " << i;
      EXPECT_LE(n_used, limits[i]) << stage.getName() << " port " << i << " exceeds its limit";
      encoded.streams.push_back(buffers[i].take(std::min(n_used, sizes[i])));
    }
    return encoded;
  }
}

Bytes decodeOnDevice(std::uint16_t stage_id, const Encoded& encoded) {
  const std::unique_ptr<Stage> stage =
      makeStage(stage_id, encoded.config.data(), encoded.config.size(), encoded.version);
  stage->setExecContext(&kOnDevice);
  stage->setInverse(true);
  std::vector<std::size_t> input_sizes;
  std::vector<GuardedDevice> streams;
  for (const Bytes& stream : encoded.streams) {
    streams.emplace_back(ByteView(stream));
    input_sizes.push_back(stream.size());
  }
  std::vector<std::size_t> sizes = stage->estimateOutputSizes(input_sizes);
  for (int attempt = 0;; ++attempt) {
    const std::vector<GuardedDevice> buffers = makeBuffers(sizes, 0xEE);
    stage->setOutputCapacities(sizes);
    try {
      stage->execute(nullptr, &devicePool(), pointers(streams), pointers(buffers), input_sizes);
    } catch (...) {
      EXPECT_TRUE(buffers[0].isIntact())
          << stage->getName() << " wrote past its output, then threw";
      throw;
    }
    EXPECT_TRUE(buffers[0].isIntact()) << stage->getName() << " decoder wrote past its output";
    const std::vector<std::size_t> needed = stage->neededOutputSizes();
    if (!needed.empty() && attempt < 8) {
      sizes[0] = std::max(sizes[0], needed[0]);
      continue;
    }
    stage->checkResult();
    const std::size_t n_used = stage->getActualOutputSize(0);
    EXPECT_LE(n_used, sizes[0]);
    return buffers[0].take(std::min(n_used, sizes[0]));
  }
}

}  // namespace fz::test
