#pragma once

#include <cstdint>

#include "fz/device_types.h"

namespace fz::bitshuffle {

/// One run on a device: whole blocks are shuffled, what is left over is copied.
struct DeviceJob {
  const std::uint8_t* in;
  DeviceSize size;
  std::uint8_t* out;
  std::uint64_t capacity_bytes;
  std::uint32_t block_bytes;
  std::uint32_t element_bytes;
  bool publishes;  ///< the record does not hold the output's size yet
  StageRecord* record;
};

/// Enqueue only. Throw Error(kCuda) when the launch is refused.
void launchEncode(const DeviceJob& job, cudaStream_t stream);
void launchDecode(const DeviceJob& job, cudaStream_t stream);

}  // namespace fz::bitshuffle
