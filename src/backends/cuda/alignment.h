#pragma once

#include <cstddef>
#include <cstdint>

namespace fz::cuda {

/// What every kernel may rely on for the pointers it gets.
inline constexpr std::size_t kPointerAlignment = 16;

inline bool isAligned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % kPointerAlignment == 0;
}

}  // namespace fz::cuda
