#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/frame_header.h"
#include "fz/device_types.h"

namespace fz {

/// A part of a frame's header that only the device knows after encoding, and that may differ from
/// frame to frame of one kind.
struct HeaderFieldOnDevice {
  enum class Kind : std::uint8_t {
    kPayloadBytes,   ///< FrameState::payload_bytes
    kSegmentBytes,   ///< FrameState::segment_bytes[index]
    kSegmentOffset,  ///< FrameState::segment_offset[index]
    kAbsoluteBound,  ///< value[slot] of stage `index`, where it is the first with a bound
    kStageValue,     ///< value[slot] of stage `index`
  };

  Kind kind;
  std::uint32_t offset;  ///< in the header
  std::uint32_t n_bytes;
  std::uint32_t index = 0;
  std::uint32_t slot = 0;
  bool is_copy = false;  ///< the value stands at an earlier offset as well
};

/// All of them, for a header with these records; fields_of_stage has one list per stage.
std::vector<HeaderFieldOnDevice> listDeviceFields(
    const FrameHeader& header, const std::vector<std::vector<DeviceField>>& fields_of_stage);

}  // namespace fz
