#pragma once

// CRC-32 (zlib's polynomial, reflected) as arithmetic on remainders: the register after a message
// is a linear function of its bits, so parts are summed up anywhere and moved to their place by
// multiplying with a power of x.

#include <cstdint>

#include "shared/host_device.h"

namespace fz::cuda {

inline constexpr std::uint32_t kCrcPolynomial = 0xEDB88320u;
inline constexpr std::uint32_t kCrcOne = 0x80000000u;  // the polynomial 1, reflected

/// The remainder one bit further: times x.
FZ_HD constexpr std::uint32_t crcShift(std::uint32_t r) {
  return (r >> 1) ^ ((r & 1u) != 0 ? kCrcPolynomial : 0u);
}

/// Product of two remainders.
FZ_HD constexpr std::uint32_t crcMultiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (int i = 0; i < 32; ++i) {
    product ^= (a & 0x80000000u) != 0 ? b : 0u;
    a <<= 1;
    b = crcShift(b);
  }
  return product;
}

/// x^(8 * n_bytes): moves a remainder n_bytes further.
constexpr std::uint32_t crcPower(std::uint64_t n_bytes) {
  std::uint32_t power = kCrcOne;
  std::uint32_t p = kCrcOne >> 8;
  for (; n_bytes != 0; n_bytes >>= 1) {
    if ((n_bytes & 1) != 0) {
      power = crcMultiply(power, p);
    }
    p = crcMultiply(p, p);
  }
  return power;
}

/// Moves by any distance, hexadecimal digit by digit, for a warp that has one bit of the remainder
/// per lane: image[k][d][i] is what x^i becomes d * 16^k bytes further.
struct CrcMoves {
  static constexpr unsigned kDigits = 12;
  std::uint32_t image[kDigits][16][32];
};
constexpr CrcMoves makeCrcMoves() {
  CrcMoves moves{};
  std::uint32_t step = kCrcOne >> 8;  // 16^k bytes
  for (auto& digit : moves.image) {
    std::uint32_t first = kCrcOne;
    for (auto& images : digit) {
      std::uint32_t image = first;
      for (std::uint32_t& entry : images) {
        entry = image;
        image = crcShift(image);
      }
      first = crcMultiply(first, step);
    }
    step = first;
  }
  return moves;
}

/// part[t][q] = x^(8 * n_bytes * (n - 1 - t) + 8 * q): moves what thread t has of n neighbours,
/// n_bytes each, to the end of the last one; eight bits of it at a time.
template <unsigned kThreads>
struct alignas(16) CrcPlaces {
  std::uint32_t part[kThreads][4];
};
template <unsigned kThreads>
constexpr CrcPlaces<kThreads> makeCrcPlaces(std::uint64_t n_bytes) {
  CrcPlaces<kThreads> places{};
  const std::uint32_t step = crcPower(n_bytes);
  std::uint32_t power = kCrcOne;
  for (unsigned t = kThreads; t-- > 0;) {
    std::uint32_t shifted = power;
    for (std::uint32_t& entry : places.part[t]) {
      entry = shifted;
      for (unsigned bit = 0; bit < 8; ++bit) {
        shifted = crcShift(shifted);
      }
    }
    power = crcMultiply(power, step);
  }
  return places;
}

/// table[j][b]: the remainder of byte b, followed by n_bytes - 1 - j other bytes of a word group.
struct CrcTables {
  std::uint32_t table[4][256];
};
/// For words that are followed by the next word of the same thread `stride_bytes` later: with
/// w = register ^ word, the sum of table[j][byte j of w] is w moved on by stride_bytes.
constexpr CrcTables makeCrcTables(std::uint64_t stride_bytes) {
  const std::uint32_t move = crcPower(stride_bytes);
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
