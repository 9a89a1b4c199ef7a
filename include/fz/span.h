#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fz {

/// Bytes in host memory, read-only and writable.
using ByteView = std::span<const std::uint8_t>;
using MutableByteView = std::span<std::uint8_t>;

}  // namespace fz
