#pragma once

#include "fz/cuda_run.h"

namespace fz::group {

/// The field of a group: read when it encodes, written when it decodes.
struct alignas(16) FieldArgs {
  const std::uint8_t* in;
  std::uint8_t* out;
  DeviceSize size;  ///< bytes of the field; exact when decoding
};

}  // namespace fz::group
