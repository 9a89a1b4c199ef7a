#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fz/archive.h"

namespace fz {

/// Bytes between neighbours along each axis of an array.
using ByteSteps = std::vector<std::ptrdiff_t>;

/// Of an array whose values stand next to each other, x fastest.
ByteSteps denseSteps(const AxisValues& extents, std::size_t value_bytes);

/// Copies an array of values between two layouts.
void copyValues(std::uint8_t* to,
                const ByteSteps& to_steps,
                const std::uint8_t* from,
                const ByteSteps& from_steps,
                const AxisValues& extents,
                std::size_t value_bytes);

}  // namespace fz
