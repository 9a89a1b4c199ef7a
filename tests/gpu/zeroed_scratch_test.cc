// Memory that runs find at zero: what must clear it, and what need not.
#include "backends/cuda/zeroed_scratch.h"

#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cuda/run_context.h"
#include "fz/error.h"
#include "gpu/device_fixture.h"
#include "gpu/device_pipeline.h"
#include "mem/mempool.h"

namespace fz::test {
namespace {

class DeviceZeroedScratch : public OnDevice<> {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped()) {
      MemoryPoolConfig config;
      config.backend = Backend::CUDA;
      pool_.emplace(config);
      stream_.emplace();
    }
  }

  cuda::Call run() { return {{}, {}, nullptr, *stream_, &*pool_, context_}; }

  /// A run that finds zeros and leaves 0x5A where it was.
  void expectZerosAndUse(std::size_t n_bytes) {
    const std::uint8_t* memory = scratch_.get(run(), n_bytes);
    std::vector<std::uint8_t> found(n_bytes, 1);
    ASSERT_EQ(cudaMemcpyAsync(found.data(), memory, n_bytes, cudaMemcpyDefault, *stream_),
              cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(scratch_.data(), 0x5A, n_bytes, *stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(*stream_), cudaSuccess);
    EXPECT_EQ(found, std::vector<std::uint8_t>(n_bytes, 0));
  }

  std::optional<MemoryPool> pool_;
  std::optional<DeviceStream> stream_;
  cuda::RunContext* context_ = nullptr;
  ZeroedScratch scratch_;
};

TEST_F(DeviceZeroedScratch, IsZeroHoweverTheRunBeforeEnded) {
  for (const std::size_t n_bytes : {1000u, 100u, 5000u, 1000u, 5000u}) {
    expectZerosAndUse(n_bytes);
    ASSERT_FALSE(HasFatalFailure());
    if (n_bytes == 1000) {
      scratch_.clear(run());  // else: it broke off, which nobody has to say
    }
  }
}

TEST_F(DeviceZeroedScratch, IsZeroWhenItIsNeededAgainBeforeTheEndOfTheRunThatClearsIt) {
  cuda::RunContext context({*stream_});
  context_ = &context;
  for (int i = 0; i < 3; ++i) {
    expectZerosAndUse(4096);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_EQ(context.clears().size(), 0u);
    scratch_.clear(run());
    EXPECT_EQ(context.clears().size(), 1u);
  }
}

TEST_F(DeviceZeroedScratch, IsZeroAfterARunThatBrokeOffBeforeAKernelClearedIt) {
  for (int i = 0; i < 3; ++i) {
    cuda::RunContext context({*stream_});
    context_ = &context;
    expectZerosAndUse(4096);
    ASSERT_FALSE(HasFatalFailure());
    scratch_.clear(run());
  }
}

TEST_F(DeviceZeroedScratch, IsZeroAfterClearingThatFailed) {
  {
    cuda::RunContext context({*stream_});
    context_ = &context;
    expectZerosAndUse(4096);
    ASSERT_FALSE(HasFatalFailure());
    scratch_.clear(run());
    // From here to the end of the capture the stream takes nothing.
    ASSERT_EQ(cudaStreamBeginCapture(*stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
    ASSERT_NE(cudaStreamSynchronize(*stream_), cudaSuccess);
  }
  context_ = nullptr;
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(*stream_, &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  expectZerosAndUse(4096);
}

TEST_F(DeviceZeroedScratch, IsZeroAfterMoreMemoryCouldNotBeHad) {
  expectZerosAndUse(100'000);
  scratch_.clear(run());
  pool_->setScratchAllowance(0);
  EXPECT_THROW(scratch_.get(run(), 10'000'000), Error);
  pool_->setScratchAllowance(std::numeric_limits<std::size_t>::max());
  // Somebody else uses the memory that was given up.
  void* other = pool_->allocatePersistentDevice(100'000, "other");
  ASSERT_EQ(cudaMemsetAsync(other, 0x33, 100'000, *stream_), cudaSuccess);
  pool_->freePersistentDevice(other);
  expectZerosAndUse(50'000);
}

TEST_F(DeviceZeroedScratch, IsClearedOnlyWhereItMustBe) {
  expectZerosAndUse(1000);
  scratch_.clear(run());
  // No clearing is enqueued any more: what somebody wrote behind our back is still there.
  ASSERT_EQ(cudaMemsetAsync(scratch_.data(), 0x11, 1000, *stream_), cudaSuccess);
  const std::uint8_t* memory = scratch_.get(run(), 800);
  std::vector<std::uint8_t> found(800);
  ASSERT_EQ(cudaMemcpyAsync(found.data(), memory, found.size(), cudaMemcpyDefault, *stream_),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(*stream_), cudaSuccess);
  EXPECT_EQ(found, std::vector<std::uint8_t>(800, 0x11));
}

}  // namespace
}  // namespace fz::test
