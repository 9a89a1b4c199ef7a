#pragma once

#include <cstdint>

#include "shared/host_device.h"

/// CRC-32 (zlib's polynomial, reflected) as arithmetic on remainders: the register after a message
/// is a linear function of its bits, so parts are summed up anywhere and moved to their place by
/// multiplying with a power of x.
namespace fz {

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

/// The checksum of two messages one behind the other, from theirs and crcPower(bytes of the
/// second).
constexpr std::uint32_t crcJoin(std::uint32_t first, std::uint32_t second, std::uint32_t power) {
  return crcMultiply(first, power) ^ second;
}

}  // namespace fz
