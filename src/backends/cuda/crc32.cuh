#pragma once

// CRC-32 (zlib's polynomial, reflected) as arithmetic on remainders: the register after a message
// is a linear function of its bits, so parts are summed up anywhere and moved to their place by
// multiplying with a power of x.

#include <cstdint>

#include "shared/host_device.h"

namespace fz::cuda {

inline constexpr std::uint32_t kCrcPolynomial = 0xEDB88320u;
inline constexpr std::uint32_t kCrcOne = 0x80000000u;  // the polynomial 1, reflected

/// Product of two remainders.
FZ_HD constexpr std::uint32_t crcMultiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (int i = 0; i < 32; ++i) {
    product ^= (a & 0x80000000u) != 0 ? b : 0u;
    a <<= 1;
    b = (b >> 1) ^ ((b & 1u) != 0 ? kCrcPolynomial : 0u);
  }
  return product;
}

/// power[k] = x^(8 * 2^k): moves a remainder 2^k bytes further.
struct CrcPowers {
  std::uint32_t power[48];
};
constexpr CrcPowers makeCrcPowers() {
  CrcPowers powers{};
  std::uint32_t p = kCrcOne >> 8;  // x^8
  for (std::uint32_t& entry : powers.power) {
    entry = p;
    p = crcMultiply(p, p);
  }
  return powers;
}

/// table[j][b]: the remainder of byte b, followed by n_bytes - 1 - j other bytes of a word group.
struct CrcTables {
  std::uint32_t table[4][256];
};
/// For words that are followed by the next word of the same thread `stride_bytes` later: with
/// w = register ^ word, the sum of table[j][byte j of w] is w moved on by stride_bytes.
constexpr CrcTables makeCrcTables(std::uint64_t stride_bytes) {
  std::uint32_t move = kCrcOne;
  std::uint32_t p = kCrcOne >> 8;
  for (std::uint64_t n = stride_bytes; n != 0; n >>= 1) {
    if ((n & 1) != 0) {
      move = crcMultiply(move, p);
    }
    p = crcMultiply(p, p);
  }
  CrcTables tables{};
  for (std::uint32_t j = 0; j < 4; ++j) {
    // The map is linear: fill powers of two, then sums.
    for (std::uint32_t bit = 0; bit < 8; ++bit) {
      const std::uint32_t image = crcMultiply(1u << (8 * j + bit), move);
      for (std::uint32_t low = 0; low < (1u << bit); ++low) {
        tables.table[j][(1u << bit) | low] = image ^ tables.table[j][low];
      }
    }
  }
  return tables;
}

}  // namespace fz::cuda
