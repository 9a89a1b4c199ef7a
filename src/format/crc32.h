#pragma once

#include <cstdint>

#include "fz/span.h"

namespace fz {

class CpuExecutor;

/// CRC-32 with the zlib polynomial; `crc` continues an earlier call.
std::uint32_t crc32(ByteView bytes, std::uint32_t crc = 0);
/// The same over all threads, for what is long.
std::uint32_t crc32(ByteView bytes, const CpuExecutor& executor);

}  // namespace fz
