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

/// The part of both boxes; with an extent of 0 where they have none.
Box overlapOf(const Box& a, const Box& b);

/// f(offset, n_done, n_bytes) for every piece of `part` that stands in one in `whole`, both in the
/// order of memory: where it begins there, in bytes, and how much of the part came before.
template <class F>
void forRuns(const Box& whole, const Box& part, std::size_t value_bytes, const F& f) {
  const std::size_t n_axes = whole.extents.size();
  std::size_t n_run = value_bytes;
  std::size_t axis = 0;
  for (bool is_whole = true; axis < n_axes && is_whole; ++axis) {
    n_run *= part.extents[axis];
    is_whole = part.extents[axis] == whole.extents[axis];
  }
  const ByteSteps steps = denseSteps(whole.extents, value_bytes);
  const std::size_t n_bytes = valueCount(part.extents) * value_bytes;
  AxisValues at = part.origin;
  for (std::size_t n_done = 0; n_done < n_bytes; n_done += n_run) {
    std::uint64_t offset = 0;
    for (std::size_t k = 0; k < n_axes; ++k) {
      offset += (at[k] - whole.origin[k]) * static_cast<std::uint64_t>(steps[k]);
    }
    f(offset, n_done, n_run);
    for (std::size_t k = axis; k < n_axes; ++k) {
      if (++at[k] < part.origin[k] + part.extents[k]) {
        break;
      }
      at[k] = part.origin[k];
    }
  }
}

/// Copies an array of values between two layouts.
void copyValues(std::uint8_t* to,
                const ByteSteps& to_steps,
                const std::uint8_t* from,
                const ByteSteps& from_steps,
                const AxisValues& extents,
                std::size_t value_bytes);

}  // namespace fz
