#pragma once

// Tables for warps that sum up checksums.

#include <cstdint>

#include "shared/crc_remainder.h"

namespace fz::cuda {

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
