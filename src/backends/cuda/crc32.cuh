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

/// A warp multiplies bits by bits (mma with .b1 operands, 256 of them per sum): 512 neighbouring
/// bytes, 16 per lane, are eight columns of 64 bytes, and a matrix takes two words of each of the
/// four lanes of a column to the column's remainder. The words are as the lanes hold the matrix:
/// [step][words 0 and 1 or 2 and 3 of a lane][remainder bits below or from 16 on][lane][register].
/// Step s of kSteps stands step_bytes * (kSteps - 1 - s) before the last one.
inline constexpr unsigned kCrcColumnBytes = 64;
inline constexpr unsigned kCrcColumns = 8;

template <unsigned kSteps>
struct alignas(16) CrcMatrices {
  std::uint32_t word[kSteps][2][2][32][4];
};
template <unsigned kSteps>
constexpr CrcMatrices<kSteps> makeCrcMatrices(std::uint64_t step_bytes) {
  CrcMatrices<kSteps> matrices{};
  for (unsigned at = 0; at < kSteps * 16; ++at) {
    const unsigned step = at / 16;
    const unsigned lane = at / 4 % 4;  // in its group of four
    const unsigned w = at % 4;         // word of the lane
    std::uint32_t image =
        crcPower(kCrcColumnBytes - 16 * lane - 4 * w + step_bytes * (kSteps - 1 - step));
    for (unsigned bit = 32; bit-- > 0;) {  // of the word; bit 31 is the polynomial 1
      for (unsigned row = 0; row < 32; ++row) {
        matrices.word[step][w / 2][row / 16][row % 8 * 4 + lane][w % 2 * 2 + row / 8 % 2] |=
            (image >> row & 1u) << bit;
      }
      image = crcShift(image);
    }
  }
  return matrices;
}

/// The sums of such products, as the lanes of a warp get them, are bits of the columns' remainders:
/// what each is at the end of the last of kWarps neighbouring warps, [warp][lane][sum].
template <unsigned kWarps>
struct alignas(16) CrcPlaces {
  std::uint32_t part[kWarps][32][8];
};
template <unsigned kWarps>
constexpr CrcPlaces<kWarps> makeCrcPlaces() {
  CrcPlaces<kWarps> places{};
  const std::uint32_t step = crcPower(kCrcColumnBytes);
  std::uint32_t power = kCrcOne;
  for (unsigned at = kWarps * kCrcColumns; at-- > 0;) {
    const unsigned column = at % kCrcColumns;
    std::uint32_t image = power;
    for (unsigned row = 32; row-- > 0;) {
      const unsigned lane = row % 8 * 4 + column / 2;
      places.part[at / kCrcColumns][lane][row / 16 * 4 + row / 8 % 2 * 2 + column % 2] = image;
      image = crcShift(image);
    }
    power = crcMultiply(power, step);
  }
  return places;
}

}  // namespace fz::cuda
