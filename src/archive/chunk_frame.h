#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "archive/index.h"
#include "format/frame_header.h"
#include "fz/archive.h"

namespace fz {

/// The header of a frame whose array is given this shape, and this place in a larger one. The
/// payload stays as it is. Throws Error(kBadSize) where the shape does not hold its values.
std::vector<std::uint8_t> headerWith(FrameHeader& header,
                                     const AxisValues& extents,
                                     const std::optional<FramePlace>& place);

/// Whether these are the first bytes of a frame that is a part of a larger array.
bool isPart(ByteView front);
/// Length of the frame that begins so, as it says itself; the largest number there is for less than
/// a core.
std::uint64_t frameBytesOf(ByteView front);

FramePlace placeOf(const Box& box, const AxisValues& whole, std::uint64_t array_id);

/// Throws Error(kCorrupt) unless this is the header of that chunk.
void checkChunk(const FrameHeader& header, const ArchiveIndex& index, std::uint64_t chunk);

}  // namespace fz
