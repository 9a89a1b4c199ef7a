#pragma once

#include "fz/device_types.h"

namespace fz::group {

/// The field of a group: read when it encodes, written when it decodes.
struct alignas(16) FieldArgs {
  const std::uint8_t* in;
  std::uint8_t* out;
  /// Bytes of the field. When decoding they are exact, and the word on the device, where there is
  /// one, is 0 when nothing may be written.
  DeviceSize size;
};

}  // namespace fz::group
