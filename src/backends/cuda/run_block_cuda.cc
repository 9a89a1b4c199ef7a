#include <cstring>

#include <cuda_runtime_api.h>

#include "backends/cuda/record.h"
#include "backends/cuda/run_block.h"
#include "core/require.h"
#include "cuda_check.h"
#include "mem/mempool.h"

namespace fz::cuda {

RunBlock::~RunBlock() {
  pool_->freePersistentDevice(device_);
  pool_->freePersistentPinned(initial_);
  pool_->freePersistentPinned(result_);
}

std::size_t RunBlock::blockBytes() const {
  return n_records_ * sizeof(StageRecord) + sizeof(FrameState);
}

void RunBlock::reserve(std::size_t n_records) {
  if (device_ != nullptr && n_records == n_records_) {
    return;
  }
  pool_->freePersistentDevice(device_);
  pool_->freePersistentPinned(initial_);
  pool_->freePersistentPinned(result_);
  n_records_ = n_records;
  const auto take = [&](void* memory) {
    FZ_REQUIRE(memory != nullptr, ErrorCode::kOutOfMemory, "{} bytes for the records of a run",
               blockBytes());
    return static_cast<std::uint8_t*>(memory);
  };
  device_ = initial_ = result_ = nullptr;
  device_ = take(pool_->allocatePersistentDevice(blockBytes(), "records"));
  initial_ = take(pool_->allocatePersistentPinned(blockBytes(), "records"));
  result_ = take(pool_->allocatePersistentPinned(blockBytes(), "records"));
  std::memset(initial_, 0, blockBytes());
  std::memset(result_, 0, blockBytes());
  for (std::size_t i = 0; i < n_records; ++i) {
    initRecord(initial(i));
  }
}

StageRecord* RunBlock::initialRecords() {
  return reinterpret_cast<StageRecord*>(initial_);
}
FrameState& RunBlock::initialFrame() {
  return *reinterpret_cast<FrameState*>(initial_ + n_records_ * sizeof(StageRecord));
}
StageRecord* RunBlock::onDevice(std::size_t i) const {
  return reinterpret_cast<StageRecord*>(device_) + i;
}
FrameState* RunBlock::frameOnDevice() const {
  return reinterpret_cast<FrameState*>(device_ + n_records_ * sizeof(StageRecord));
}
const StageRecord& RunBlock::result(std::size_t i) const {
  return reinterpret_cast<const StageRecord*>(result_)[i];
}
const FrameState& RunBlock::frameResult() const {
  return *reinterpret_cast<const FrameState*>(result_ + n_records_ * sizeof(StageRecord));
}

const std::uint32_t* RunBlock::deviceWords() const {
  return reinterpret_cast<const std::uint32_t*>(device_);
}
std::uint32_t* RunBlock::hostWords() const {
  return reinterpret_cast<std::uint32_t*>(result_);
}
std::uint32_t RunBlock::wordCount() const {
  static_assert(sizeof(FrameState) % sizeof(std::uint32_t) == 0);
  return static_cast<std::uint32_t>(blockBytes() / sizeof(std::uint32_t));
}

void RunBlock::enqueueInit(cudaStream_t stream) {
  FZ_CUDA_CHECK(cudaMemcpyAsync(device_, initial_, blockBytes(), cudaMemcpyHostToDevice, stream));
}
void RunBlock::enqueueReadback(cudaStream_t stream) {
  FZ_CUDA_CHECK(cudaMemcpyAsync(result_, device_, blockBytes(), cudaMemcpyDeviceToHost, stream));
}

}  // namespace fz::cuda
