#pragma once

// What missing values are, and how many values an input has. Device code only.

#include <cstdint>
#include <type_traits>

#include "backends/cuda/device.cuh"
#include "shared/bits.h"
#include "transforms/mask/cuda/kernels.h"

namespace fz::mask {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
constexpr BitsOf<T> kExponentBits = static_cast<BitsOf<T>>(sizeof(T) == 4 ? 0x7f800000ull
                                                                          : 0x7ff0000000000000ull);
template <class T>
constexpr BitsOf<T> kQuietNanBits = static_cast<BitsOf<T>>(sizeof(T) == 4 ? 0x7fc00000ull
                                                                          : 0x7ff8000000000000ull);

template <class T>
__device__ __forceinline__ T valueOf(BitsOf<T> bits) {
  if constexpr (sizeof(T) == 4) {
    return __uint_as_float(bits);
  } else {
    return __longlong_as_double(static_cast<long long>(bits));
  }
}

template <class T>
__device__ __forceinline__ bool isFiniteBits(BitsOf<T> bits) {
  return (bits & kExponentBits<T>) != kExponentBits<T>;
}

template <class T>
__device__ __forceinline__ bool isMissing(BitsOf<T> bits, const Fills<T>& fills) {
  bool missing = !isFiniteBits<T>(bits);
#pragma unroll
  for (std::uint32_t k = 0; k < kMaxFills; ++k) {
    missing = missing || valueOf<T>(bits) == fills.value[k];
  }
  return missing;
}

/// The values of an input.
struct Field {
  std::uint64_t extents[3];
  std::uint64_t n_values;
  bool is_good;  ///< bytes and dims go together
};

__device__ __forceinline__ Field fieldOf(const FieldShape& shape, std::uint32_t value_bytes) {
  const std::uint64_t n_bytes = cuda::load(shape.size);
  Field field{{shape.extents[0], shape.extents[1], shape.extents[2]}, n_bytes / value_bytes, true};
  const std::uint64_t n_rows = field.extents[1] * field.extents[2];
  if (field.extents[0] == 0) {
    field.extents[0] = field.n_values / n_rows;
  }
  field.is_good = n_bytes % value_bytes == 0 && field.extents[0] * n_rows == field.n_values;
  return field;
}

__device__ __forceinline__ void addTo(std::uint64_t* sum, std::uint64_t n) {
  auto* const to = reinterpret_cast<unsigned long long*>(sum);
  atomicAdd(to, static_cast<unsigned long long>(n));  // order-free: only a sum
}

}  // namespace fz::mask
