#pragma once

#include <cstdint>

#include "fz/device_types.h"

namespace fz::adaptive_bitpack {

/// What the thread blocks of an encoder tell each other. All zero before the kernel starts; the
/// kernel leaves it so.
struct EncodeControl {
  std::uint64_t next_turn;
  std::uint32_t n_blocks_done;
};
inline constexpr std::uint32_t kControlBytes = 64;

/// Block sizes that are powers of two from 32 on, alone or as the end of a fused group.
struct alignas(16) GroupsArgs {
  StageRecord* record;
  DeviceSize in_size;  ///< of the values when encoding, of the stream when decoding
  const std::uint8_t* in;
  std::uint8_t* out;
  std::uint64_t capacity_bytes;
  std::uint32_t block_values;
  // Encoding.
  EncodeControl* control;
  std::uint64_t* sums;   ///< one per tile: its bytes of payload
  std::uint64_t* bases;  ///< one per tile: the bytes before it
  // Decoding.
  const std::uint64_t* offsets;  ///< one per 1024 values: where its payload begins
};

}  // namespace fz::adaptive_bitpack
