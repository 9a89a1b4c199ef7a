#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fz {
class CpuExecutor;
}

/// Differences of floats; those of integers are in backends/cpu/delta_cpu.h.
namespace fz::diff {

/// Values that the decoder would not restore to the bit.
struct Losses {
  std::uint64_t n_values = 0;
  std::uint64_t first_index = 0;  ///< meaningful when n_values > 0
};

/// Encodes in chunks of `chunk` values, a power of two; 0 means one chunk. T is float or double.
template <class T>
Losses encodeFloats(const CpuExecutor& executor, std::span<const T> in, std::size_t chunk, T* out);

/// Sums every chunk from left to right.
template <class T>
void decodeFloats(const CpuExecutor& executor, std::span<const T> in, std::size_t chunk, T* out);

}  // namespace fz::diff
