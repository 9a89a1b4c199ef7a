#pragma once

#include <cstdint>

#include "fz/device_types.h"

namespace fz::cuda {
struct Call;
}

namespace fz::bitshuffle {

/// Bytes that a warp has in a fused group: 64 per thread.
inline constexpr std::uint32_t kWarpBytes = 32 * 64;

/// Args of BitshuffleOp.
struct BitshuffleArgs {
  std::uint32_t block_bytes;  ///< divides the coder's chunk
};

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
void launchEncode(const DeviceJob& job, const cuda::Call& call);
void launchDecode(const DeviceJob& job, const cuda::Call& call);

}  // namespace fz::bitshuffle
