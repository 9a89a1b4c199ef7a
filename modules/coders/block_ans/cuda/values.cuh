#pragma once

// Values and numbers u on a device, choice of a kernel by type and map. Device code only.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/device.cuh"
#include "coders/block_ans/cuda/kernels.h"

namespace fz::block_ans {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

/// A value that is the same in all lanes: the compiler sees that it is. Branches on others make it
/// look for lanes that went another way before each vote behind them.
__device__ __forceinline__ std::uint32_t uniform(std::uint32_t value) {
  return __reduce_max_sync(kAllLanes, value);
}

/// mapped() and unmapped() of codec.h for unsigned T, in registers of 32 bits.
template <Map kMap, class T>
__device__ __forceinline__ std::uint32_t numberOf(T value) {
  if constexpr (kMap == Map::kNone) {
    return value;
  } else {
    const auto wide = static_cast<std::int32_t>(static_cast<std::make_signed_t<T>>(value));
    return static_cast<std::uint32_t>(wide) << 1 ^ static_cast<std::uint32_t>(wide >> 31);
  }
}
template <Map kMap>
__device__ __forceinline__ std::uint32_t valueOf(std::uint32_t u) {
  return kMap == Map::kNone ? u : u >> 1 ^ (0u - (u & 1u));
}

/// symbolOf() of codec.h for u >= 16, by the exponent of a number rounded towards zero.
__device__ __forceinline__ std::uint32_t largeSymbol(std::uint32_t u) {
  constexpr std::uint32_t kBias = 4 * 127;
  return (__float_as_uint(__uint2float_rz(u)) >> 21) - kBias;
}

template <class T>
struct Pair;
template <>
struct Pair<std::uint16_t> {
  using Type = ushort2;
};
template <>
struct Pair<std::uint32_t> {
  using Type = uint2;
};

/// f.operator()<T, kMap>() for values of so many bytes.
template <class F>
void withTypeAndMap(std::size_t value_bytes, Map map, F f) {
  const auto with_type = [&]<class T>(T /*type*/) {
    if (map == Map::kNone) {
      f.template operator()<T, Map::kNone>();
    } else {
      f.template operator()<T, Map::kZigzag>();
    }
  };
  if (value_bytes == 2) {
    with_type(std::uint16_t{});
  } else {
    with_type(std::uint32_t{});
  }
}

/// Groups of n values.
__device__ __forceinline__ std::uint64_t groupsOf(std::uint64_t n_values) {
  return n_values / kGroupValues + (n_values % kGroupValues != 0 ? 1 : 0);
}

__device__ __forceinline__ void recordReason(StageRecord* record,
                                             DeviceError error,
                                             Reason reason,
                                             std::uint64_t index) {
  cuda::recordError(record, error, index);
  atomicMax(reinterpret_cast<unsigned long long*>(&record->value[kReasonSlot]),
            static_cast<unsigned long long>(reason));
}

/// f(i) of n words to `out` by a team of threads, several loads of a thread at once.
template <class F>
__device__ __forceinline__ void storeWords(
    std::uint64_t index, std::uint64_t n_threads, std::uint64_t n, std::uint32_t* out, F f) {
  constexpr unsigned kAtOnce = 8;
  std::uint64_t i = index;
  for (; i + (kAtOnce - 1) * n_threads < n; i += kAtOnce * n_threads) {
    std::uint32_t word[kAtOnce];
#pragma unroll
    for (unsigned k = 0; k < kAtOnce; ++k) {
      word[k] = f(i + k * n_threads);
    }
#pragma unroll
    for (unsigned k = 0; k < kAtOnce; ++k) {
      out[i + k * n_threads] = word[k];
    }
  }
  std::uint32_t word[kAtOnce];
#pragma unroll
  for (unsigned k = 0; k < kAtOnce; ++k) {
    word[k] = i + k * n_threads < n ? f(i + k * n_threads) : 0;
  }
#pragma unroll
  for (unsigned k = 0; k < kAtOnce; ++k) {
    if (i + k * n_threads < n) {
      out[i + k * n_threads] = word[k];
    }
  }
}

/// Bytes from any address to a multiple of 4. Reads nothing behind them, and before them only what
/// is in the same aligned word.
__device__ __forceinline__ void copyBytes(std::uint64_t index,
                                          std::uint64_t n_threads,
                                          const std::uint8_t* from,
                                          std::uint64_t n_bytes,
                                          std::uint8_t* to) {
  const auto skew = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(from) & 3u);
  const auto* words = reinterpret_cast<const std::uint32_t*>(from - skew);
  auto* out = reinterpret_cast<std::uint32_t*>(to);
  std::uint64_t n_words = (n_bytes + skew) / 4;
  if (skew == 0) {
    storeWords(index, n_threads, n_words, out, [&](std::uint64_t i) { return words[i]; });
  } else {
    n_words = n_words == 0 ? 0 : n_words - 1;
    storeWords(index, n_threads, n_words, out,
               [&](std::uint64_t i) { return __funnelshift_r(words[i], words[i + 1], 8 * skew); });
  }
  for (std::uint64_t i = 4 * n_words + index; i < n_bytes; i += n_threads) {
    to[i] = from[i];
  }
}

}  // namespace fz::block_ans
