#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/bits.h"
#include "shared/host_device.h"

/// The bytes of Bitpack; SPEC.md says the same in words.
namespace fz::bitpack {

// Work per task; not part of the format. A multiple of 8, so that tiles begin at whole bytes.
constexpr std::uint32_t kTileValues = 16384;

template <class T>
inline constexpr std::uint32_t kWidth = 8 * sizeof(T);

/// n_bits is one of 1, 2, 4, ... up to the width.
FZ_HD constexpr bool isPowerOfTwoUpTo(std::uint64_t n_bits, std::uint32_t width) {
  return n_bits != 0 && n_bits <= width && (n_bits & (n_bits - 1)) == 0;
}

/// Bytes of n_values values. Overflows only where the result itself does.
FZ_HD constexpr std::uint64_t packedBytes(std::uint64_t n_values, std::uint32_t n_bits) {
  return n_values / 8 * n_bits + (n_values % 8 * n_bits + 7) / 8;
}

/// Most values that a packed form of n_bytes can hold.
FZ_HD constexpr std::uint64_t packedValues(std::uint64_t n_bytes, std::uint32_t n_bits) {
  return n_bits <= 8 ? n_bytes * (8 / n_bits) : n_bytes / (n_bits / 8);
}

/// True when the value (or the OR of several) can be kept in n_bits bits.
FZ_HD bool fits(std::uint32_t value, std::uint32_t n_bits) {
  return n_bits >= 32 || value >> n_bits == 0;
}

/// Smallest allowed number of bits for values whose OR is `any`.
FZ_HD std::uint32_t bitsFor(std::uint32_t any, std::uint32_t width) {
  std::uint32_t n_bits = 1;
  while (n_bits < width && !fits(any, n_bits)) {
    n_bits *= 2;
  }
  return n_bits;
}

/// Byte `byte` of the packed form of n_values values.
template <class T>
FZ_HD std::uint8_t packedByte(const T* in,
                              std::uint64_t n_values,
                              std::uint32_t n_bits,
                              std::uint64_t byte) {
  if (n_bits >= 8) {
    const std::uint64_t value_bytes = n_bits / 8;
    return static_cast<std::uint8_t>(in[byte / value_bytes] >> 8 * (byte % value_bytes));
  }
  const std::uint32_t per_byte = 8 / n_bits;
  std::uint32_t packed = 0;
  for (std::uint32_t j = 0; j < per_byte && byte * per_byte + j < n_values; ++j) {
    const std::uint32_t low = in[byte * per_byte + j] & ((1u << n_bits) - 1u);
    packed |= low << j * n_bits;
  }
  return static_cast<std::uint8_t>(packed);
}

/// Value i of a packed form that holds it.
template <class T>
FZ_HD T unpackedValue(const std::uint8_t* in, std::uint32_t n_bits, std::uint64_t i) {
  if (n_bits >= 8) {
    const std::uint64_t value_bytes = n_bits / 8;
    std::uint32_t value = 0;
    for (std::uint64_t b = 0; b < value_bytes; ++b) {
      value |= static_cast<std::uint32_t>(in[i * value_bytes + b]) << 8 * b;
    }
    return static_cast<T>(value);
  }
  const std::uint32_t per_byte = 8 / n_bits;
  const auto shift = static_cast<std::uint32_t>(i % per_byte) * n_bits;
  return static_cast<T>(in[i / per_byte] >> shift & ((1u << n_bits) - 1u));
}

/// Packs a tile: byte-driven, so no two items write one byte.
template <class Team, class T>
FZ_HD void packTile(
    Team team, const T* in, std::uint32_t n_values, std::uint32_t n_bits, std::uint8_t* out) {
  team.each(static_cast<std::uint32_t>(packedBytes(n_values, n_bits)),
            [&](std::uint32_t byte) { out[byte] = packedByte(in, n_values, n_bits, byte); });
  team.sync();
}

template <class Team, class T>
FZ_HD void unpackTile(
    Team team, const std::uint8_t* in, std::uint32_t n_values, std::uint32_t n_bits, T* out) {
  team.each(n_values, [&](std::uint32_t i) { out[i] = unpackedValue<T>(in, n_bits, i); });
  team.sync();
}

}  // namespace fz::bitpack
