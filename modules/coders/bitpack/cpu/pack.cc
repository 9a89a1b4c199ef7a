#include "coders/bitpack/cpu/pack.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "coders/bitpack/codec.h"
#include "fz/byte_io.h"
#include "shared/team.h"

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coders/bitpack/cpu/pack.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::bitpack::HWY_NAMESPACE {  // NOLINT

constexpr std::size_t kBlockValues = 2048;  // one byte each, on its way through the first cache

/// Integer that holds the 8 / Bits bytes which become one.
template <unsigned Bits>
using Lane = std::conditional_t<Bits == 4,
                                std::uint16_t,
                                std::conditional_t<Bits == 2, std::uint32_t, std::uint64_t>>;

/// Bytes that are below 2^Bits each -> one byte, the first in the lowest bits.
template <unsigned Bits>
HWY_INLINE std::uint8_t foldLane(Lane<Bits> lane) {
  if constexpr (Bits == 1) {
    lane |= lane >> 7;
    lane |= lane >> 14;
    lane |= lane >> 28;
  } else if constexpr (Bits == 2) {
    lane |= lane >> 6;
    lane |= lane >> 12;
  } else {
    lane = static_cast<Lane<Bits>>(lane | lane >> 4);
  }
  return static_cast<std::uint8_t>(lane);
}

template <unsigned Bits>
HWY_INLINE Lane<Bits> spreadLane(std::uint8_t packed) {
  Lane<Bits> lane = packed;
  if constexpr (Bits == 1) {
    lane = (lane | lane << 28) & 0x0000000F0000000Full;
    lane = (lane | lane << 14) & 0x0003000300030003ull;
    lane = (lane | lane << 7) & 0x0101010101010101ull;
  } else if constexpr (Bits == 2) {
    lane = (lane | lane << 12) & 0x000F000Fu;
    lane = (lane | lane << 6) & 0x03030303u;
  } else {
    lane = static_cast<Lane<Bits>>((lane | lane << 4) & 0x0F0F);
  }
  return lane;
}

template <unsigned Bits>
HWY_INLINE void fold(const std::uint8_t* bytes, std::size_t n_values, std::uint8_t* out) {
  using L = Lane<Bits>;
  const std::size_t n_whole = n_values / sizeof(L);
  for (std::size_t i = 0; i < n_whole; ++i) {
    out[i] = foldLane<Bits>(loadLe<L>(bytes + i * sizeof(L)));
  }
  if (n_whole * sizeof(L) < n_values) {
    out[n_whole] = packedByte(bytes, n_values, Bits, n_whole);
  }
}

template <unsigned Bits>
HWY_INLINE void spread(const std::uint8_t* in, std::size_t n_values, std::uint8_t* bytes) {
  using L = Lane<Bits>;
  const std::size_t n_whole = n_values / sizeof(L);
  for (std::size_t i = 0; i < n_whole; ++i) {
    storeLe<L>(bytes + i * sizeof(L), spreadLane<Bits>(in[i]));
  }
  for (std::size_t i = n_whole * sizeof(L); i < n_values; ++i) {
    bytes[i] = unpackedValue<std::uint8_t>(in, Bits, i);
  }
}

/// Keeps the low part of every value; returns the OR of the whole values.
template <class T, class U>
HWY_INLINE std::uint32_t narrow(const T* in, std::size_t n_values, U* out) {
  T any = 0;
  for (std::size_t i = 0; i < n_values; ++i) {
    any = static_cast<T>(any | in[i]);
    out[i] = static_cast<U>(in[i]);
  }
  return any;
}

template <class T>
std::uint32_t orLoop(const void* input, std::size_t n_values) {
  const T* in = static_cast<const T*>(input);
  T any = 0;
  for (std::size_t i = 0; i < n_values; ++i) {
    any = static_cast<T>(any | in[i]);
  }
  return any;
}

template <class T, unsigned Bits>
std::uint32_t pack(const void* input, std::size_t n_values, std::uint8_t* out) {
  const T* in = static_cast<const T*>(input);
  if constexpr (Bits == kWidth<T>) {
    std::memcpy(out, in, n_values * sizeof(T));
    return 0;
  } else if constexpr (Bits == 16) {
    return narrow(in, n_values, reinterpret_cast<std::uint16_t*>(out));
  } else if constexpr (Bits == 8) {
    return narrow(in, n_values, out);
  } else {
    std::uint32_t any = 0;
    for (std::size_t at = 0; at < n_values; at += kBlockValues) {
      const std::size_t n = std::min(kBlockValues, n_values - at);
      std::uint8_t* to = out + at * Bits / 8;
      if constexpr (sizeof(T) == 1) {
        any |= orLoop<T>(in + at, n);
        fold<Bits>(in + at, n, to);
      } else {
        std::uint8_t bytes[kBlockValues];
        any |= narrow(in + at, n, bytes);
        fold<Bits>(bytes, n, to);
      }
    }
    return any;
  }
}

template <class T, unsigned Bits>
void unpack(const std::uint8_t* in, std::size_t n_values, void* output) {
  T* out = static_cast<T*>(output);
  if constexpr (Bits == kWidth<T>) {
    std::memcpy(out, in, n_values * sizeof(T));
  } else if constexpr (Bits == 16) {
    std::copy_n(reinterpret_cast<const std::uint16_t*>(in), n_values, out);
  } else if constexpr (Bits == 8) {
    std::copy_n(in, n_values, out);
  } else if constexpr (sizeof(T) == 1) {
    spread<Bits>(in, n_values, out);
  } else {
    for (std::size_t at = 0; at < n_values; at += kBlockValues) {
      const std::size_t n = std::min(kBlockValues, n_values - at);
      std::uint8_t bytes[kBlockValues];
      spread<Bits>(in + at * Bits / 8, n, bytes);
      std::copy_n(bytes, n, out + at);
    }
  }
}

/// Calls f.operator()<Bits>() for the width asked for, which T must have.
template <class T, class F>
auto withBits(std::uint32_t n_bits, F f) {
  switch (n_bits) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 4:
      return f.template operator()<4>();
    case 16:
      if constexpr (sizeof(T) >= 2) {
        return f.template operator()<16>();
      }
      break;
    case 32:
      if constexpr (sizeof(T) >= 4) {
        return f.template operator()<32>();
      }
      break;
    default:
      break;
  }
  return f.template operator()<8>();
}

template <class T>
std::uint32_t packAs(const void* in, std::size_t n_values, Widths widths, std::uint8_t* out) {
  return withBits<T>(widths.n_bits,
                     [&]<unsigned Bits>() { return pack<T, Bits>(in, n_values, out); });
}

template <class T>
void unpackAs(const std::uint8_t* in, std::size_t n_values, Widths widths, void* out) {
  withBits<T>(widths.n_bits, [&]<unsigned Bits>() { unpack<T, Bits>(in, n_values, out); });
}

std::uint32_t orAll(const void* in, std::size_t n_values, std::size_t value_bytes) {
  switch (value_bytes) {
    case 1:
      return orLoop<std::uint8_t>(in, n_values);
    case 2:
      return orLoop<std::uint16_t>(in, n_values);
    default:
      return orLoop<std::uint32_t>(in, n_values);
  }
}

std::uint32_t packAll(const void* in, std::size_t n_values, Widths widths, std::uint8_t* out) {
  switch (widths.value_bytes) {
    case 1:
      return packAs<std::uint8_t>(in, n_values, widths, out);
    case 2:
      return packAs<std::uint16_t>(in, n_values, widths, out);
    default:
      return packAs<std::uint32_t>(in, n_values, widths, out);
  }
}

void unpackAll(const std::uint8_t* in, std::size_t n_values, Widths widths, void* out) {
  switch (widths.value_bytes) {
    case 1:
      return unpackAs<std::uint8_t>(in, n_values, widths, out);
    case 2:
      return unpackAs<std::uint16_t>(in, n_values, widths, out);
    default:
      return unpackAs<std::uint32_t>(in, n_values, widths, out);
  }
}

}  // namespace fz::bitpack::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::bitpack {

HWY_EXPORT(orAll);
HWY_EXPORT(packAll);
HWY_EXPORT(unpackAll);

std::uint32_t orOf(const void* in, std::size_t n_values, std::size_t value_bytes) {
  return HWY_DYNAMIC_DISPATCH(orAll)(in, n_values, value_bytes);
}
std::uint32_t packValues(const void* in, std::size_t n_values, Widths widths, std::uint8_t* out) {
  return HWY_DYNAMIC_DISPATCH(packAll)(in, n_values, widths, out);
}
void unpackValues(const std::uint8_t* in, std::size_t n_values, Widths widths, void* out) {
  HWY_DYNAMIC_DISPATCH(unpackAll)(in, n_values, widths, out);
}

}  // namespace fz::bitpack
#endif
