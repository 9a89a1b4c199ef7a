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

__device__ __forceinline__ bool hasMissing(const Findings& found) {
  return found.n_keys != 0 || found.has_too_many != 0;
}

/// Adds a pattern to the set. 257 of them are too many, whoever comes first.
__device__ __forceinline__ void addKey(Findings& found, std::uint64_t key) {
  if (*static_cast<volatile std::uint64_t*>(&found.has_too_many) != 0) {
    return;
  }
  std::uint32_t slot = static_cast<std::uint32_t>((key * 0x9E3779B97F4A7C15ull) >> 54);
  for (std::uint32_t i = 0; i < kKeySlots; ++i, slot = (slot + 1) % kKeySlots) {
    std::uint64_t known = *static_cast<volatile std::uint64_t*>(&found.keys[slot]);
    if (known == 0) {
      known = atomicCAS(reinterpret_cast<unsigned long long*>(&found.keys[slot]), 0ull,
                        static_cast<unsigned long long>(key));
      if (known == 0) {
        auto* n_keys = reinterpret_cast<unsigned long long*>(&found.n_keys);
        if (atomicAdd(n_keys, 1ull) >= kMaxKeys) {  // order-free: the set is all that is read
          *static_cast<volatile std::uint64_t*>(&found.has_too_many) = 1;
        }
        return;
      }
    }
    if (known == key) {
      return;
    }
  }
  *static_cast<volatile std::uint64_t*>(&found.has_too_many) = 1;
}

}  // namespace fz::mask
