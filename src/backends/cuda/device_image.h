#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "fz/span.h"
#include "mem/mempool.h"

namespace fz {

/// Bytes by which a header may become longer without new memory: configs have the plan that a stage
/// searched for, and the one for a field may be longer than that for zeros, with which memory is
/// taken ahead.
inline constexpr std::size_t kHeaderHeadroom = 256;

/// Bytes on the device that the host rarely changes: uploaded when they differ from what is there.
class DeviceImage {
 public:
  explicit DeviceImage(MemoryPool& pool) : pool_(&pool) {}
  DeviceImage(const DeviceImage&) = delete;
  DeviceImage& operator=(const DeviceImage&) = delete;
  ~DeviceImage();

  /// Makes the device's bytes equal to `bytes`; returns whether something was enqueued.
  bool update(ByteView bytes, cudaStream_t stream);
  const std::uint8_t* data() const { return device_; }

 private:
  void release();

  MemoryPool* pool_;
  std::size_t capacity_bytes_ = 0;
  std::size_t n_bytes_ = 0;
  std::uint8_t* device_ = nullptr;
  std::uint8_t* pinned_ = nullptr;
  cudaEvent_t uploaded_ = nullptr;
};

}  // namespace fz
