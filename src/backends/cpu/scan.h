#pragma once

#include <cstdint>
#include <span>

namespace fz {

/// Replaces every entry by the sum of those before it; returns the total. Serial: callers scan
/// per-tile counts, which are few.
inline std::uint64_t exclusiveScan(std::span<std::uint64_t> values) {
  std::uint64_t sum = 0;
  for (std::uint64_t& v : values) {
    const std::uint64_t count = v;
    v = sum;
    sum += count;
  }
  return sum;
}

}  // namespace fz
