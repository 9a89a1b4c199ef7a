#include <cstring>

#include <cuda_runtime_api.h>

#include "backends/cuda/host_flag.h"
#include "backends/cuda/record.h"
#include "backends/cuda/run_state.h"
#include "core/require.h"
#include "cuda_check.h"
#include "mem/mempool.h"

namespace fz::cuda {

DeviceRunState::~DeviceRunState() {
  pool_->freePersistentDevice(device_);
  pool_->freePersistentPinned(initial_);
  pool_->freePersistentPinned(result_);
}

std::size_t DeviceRunState::blockBytes() const {
  return n_records_ * sizeof(StageRecord) + sizeof(FrameState);
}

void DeviceRunState::reserve(std::size_t n_records) {
  if (result_ != nullptr && n_records == n_records_) {  // the last of the three to be taken
    return;
  }
  pool_->freePersistentDevice(device_);
  pool_->freePersistentPinned(initial_);
  pool_->freePersistentPinned(result_);
  n_records_ = n_records;
  const auto take = [&](void* memory) {
    FZ_REQUIRE(memory != nullptr, ErrorCode::kOutOfMemory,
               "cannot allocate {} bytes for the records of a run", blockBytes());
    return static_cast<std::uint8_t*>(memory);
  };
  device_ = initial_ = result_ = nullptr;
  device_ = take(pool_->allocatePersistentDevice(2 * blockBytes(), "records"));
  initial_ = take(pool_->allocatePersistentPinned(2 * blockBytes(), "records"));
  result_ = take(pool_->allocatePersistentPinned(blockBytes() + sizeof(std::uint32_t), "records"));
  std::memset(initial_, 0, 2 * blockBytes());
  std::memset(result_, 0, blockBytes() + sizeof(std::uint32_t));
  contents_ = Contents::kUnknown;
  for (std::size_t i = 0; i < n_records; ++i) {
    initRecord(initial(i));
  }
}

StageRecord* DeviceRunState::initialRecords() {
  return reinterpret_cast<StageRecord*>(initial_);
}
StageRecord* DeviceRunState::onDevice(std::size_t i) const {
  return reinterpret_cast<StageRecord*>(device_) + i;
}
FrameState* DeviceRunState::frameOnDevice() const {
  return reinterpret_cast<FrameState*>(device_ + n_records_ * sizeof(StageRecord));
}
const StageRecord& DeviceRunState::result(std::size_t i) const {
  return reinterpret_cast<const StageRecord*>(result_)[i];
}
const FrameState& DeviceRunState::frameResult() const {
  return *reinterpret_cast<const FrameState*>(result_ + n_records_ * sizeof(StageRecord));
}

std::uint32_t* DeviceRunState::doneWord() const {
  return reinterpret_cast<std::uint32_t*>(result_ + blockBytes());
}

void DeviceRunState::enqueueInit(cudaStream_t stream) {
  std::memcpy(initial_ + blockBytes(), initial_, blockBytes());
  FZ_CUDA_CHECK(
      cudaMemcpyAsync(device_, initial_, 2 * blockBytes(), cudaMemcpyHostToDevice, stream));
  contents_ = Contents::kInRun;
}
void DeviceRunState::enqueueInitIfNeeded(cudaStream_t stream) {
  if (contents_ != Contents::kAtStart ||
      std::memcmp(initial_ + blockBytes(), initial_, blockBytes()) != 0) {
    enqueueInit(stream);
  }
  contents_ = Contents::kRunEnds;
}
void DeviceRunState::enqueueCopyToHost(cudaStream_t stream) {
  FZ_CUDA_CHECK(cudaMemcpyAsync(result_, device_, blockBytes(), cudaMemcpyDeviceToHost, stream));
}

HostReadback DeviceRunState::hostReadback() const {
  static_assert(sizeof(FrameState) % sizeof(std::uint64_t) == 0);
  const auto words = [](std::size_t n_bytes) {
    return static_cast<std::uint32_t>(n_bytes / sizeof(std::uint32_t));
  };
  return {reinterpret_cast<std::uint32_t*>(device_),
          reinterpret_cast<const std::uint32_t*>(device_ + blockBytes()),
          reinterpret_cast<std::uint32_t*>(result_),
          words(blockBytes()),
          words(n_records_ * sizeof(StageRecord)),
          doneWord()};
}
void DeviceRunState::recordReadback() {
  if (contents_ == Contents::kRunEnds) {
    contents_ = Contents::kAtStart;
  }
  lowerFlag(doneWord());
}
void DeviceRunState::waitForReadback(cudaStream_t stream) const {
  waitForFlag(doneWord(), stream);
}

}  // namespace fz::cuda
