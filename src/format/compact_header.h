#pragma once

#include <cstddef>

#include "format/frame_header.h"
#include "fz/byte_io.h"

// The compact form of a header, version 3.3: docs/format.md. The core has lengths and checksums
// where the other form has them; what follows is as long as what it says.
namespace fz {

/// Whether a frame takes the compact form: it has a stage that the original system does not know, a
/// shape that three extents cannot say, or is a part of a larger array.
bool isCompactForm(const FrameHeader& header);

/// Bytes of the part between core and stages.
std::size_t compactShapeBytes(const FrameDescription& description);
/// Bytes of the compact form, a multiple of 16.
std::size_t compactHeaderBytes(const FrameHeader& header);
/// Writes core.header_size bytes; checksums are what the core says.
void putCompact(const FrameHeader& header, ByteWriter& out);

/// Reads everything into `header`, from a front of exactly its stated length whose checksum is
/// right. Throws Error(kCorrupt, kUnsupported); segments and shape are the caller's to check.
void getCompact(ByteView front, FrameHeader& header);

}  // namespace fz
