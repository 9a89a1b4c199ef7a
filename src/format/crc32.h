#pragma once

#include <cstdint>

#include "fz/span.h"

namespace fz {

/// CRC-32 with the zlib polynomial; `crc` continues an earlier call.
std::uint32_t crc32(ByteView bytes, std::uint32_t crc = 0);

}  // namespace fz
