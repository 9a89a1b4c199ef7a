#include "backends/cuda/device_image.h"

#include <cstring>

#include "core/require.h"
#include "cuda_check.h"

namespace fz {

DeviceImage::~DeviceImage() {
  release();
  if (uploaded_ != nullptr) {
    FZ_CUDA_CHECK_WARN(cudaEventDestroy(uploaded_));
  }
}

void DeviceImage::release() {
  pool_->freePersistentDevice(device_);
  pool_->freePersistentPinned(pinned_);
  device_ = nullptr;
  pinned_ = nullptr;
  capacity_bytes_ = 0;
  n_bytes_ = 0;
}

bool DeviceImage::update(ByteView bytes, cudaStream_t stream) {
  if (bytes.size() == n_bytes_ && device_ != nullptr &&
      std::memcmp(pinned_, bytes.data(), n_bytes_) == 0) {
    return false;
  }
  if (uploaded_ != nullptr) {
    FZ_CUDA_CHECK(cudaEventSynchronize(uploaded_));  // the last upload still reads the pinned copy
  }
  n_bytes_ = 0;  // until all of this is done
  if (uploaded_ == nullptr) {
    FZ_CUDA_CHECK(cudaEventCreateWithFlags(&uploaded_, cudaEventDisableTiming));
  }
  if (bytes.size() > capacity_bytes_) {
    release();
    const std::size_t n_room = bytes.size() + kHeaderHeadroom;
    device_ = static_cast<std::uint8_t*>(pool_->allocatePersistentDevice(n_room, "header"));
    pinned_ = static_cast<std::uint8_t*>(pool_->allocatePersistentPinned(n_room, "header"));
    FZ_REQUIRE(device_ != nullptr && pinned_ != nullptr, ErrorCode::kOutOfMemory,
               "Pipeline: cannot allocate {} bytes for the header", n_room);
    capacity_bytes_ = n_room;
  }
  std::memcpy(pinned_, bytes.data(), bytes.size());
  FZ_CUDA_CHECK(cudaMemcpyAsync(device_, pinned_, bytes.size(), cudaMemcpyHostToDevice, stream));
  FZ_CUDA_CHECK(cudaEventRecord(uploaded_, stream));
  n_bytes_ = bytes.size();
  return true;
}

}  // namespace fz
