#pragma once

#include <cstddef>
#include <cstdint>

#include "core/require.h"
#include "fz/byte_io.h"

// Numbers as long as they need to be: seven bits a byte, the lowest first; the top bit says that
// more follow.
namespace fz {

inline constexpr unsigned kVarintBits = 7;
inline constexpr std::uint8_t kVarintMore = 0x80;

inline std::size_t varintBytes(std::uint64_t value) {
  std::size_t n = 1;
  while ((value >>= kVarintBits) != 0) {
    ++n;
  }
  return n;
}

inline void putVarint(ByteWriter& out, std::uint64_t value) {
  while (value >= kVarintMore) {
    out.u8(static_cast<std::uint8_t>(value | kVarintMore));
    value >>= kVarintBits;
  }
  out.u8(static_cast<std::uint8_t>(value));
}

/// One number has one form: longer ones than needed are refused, so that equal contents have equal
/// bytes. Throws Error(kCorrupt).
inline std::uint64_t getVarint(ByteReader& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += kVarintBits) {
    const std::uint8_t byte = in.u8();
    const auto bits = static_cast<std::uint64_t>(byte & (kVarintMore - 1u));
    FZ_REQUIRE(shift < 63 || bits <= 1, ErrorCode::kCorrupt, "frame: a number exceeds 64 bits");
    value |= bits << shift;
    if ((byte & kVarintMore) == 0) {
      FZ_REQUIRE(byte != 0 || shift == 0, ErrorCode::kCorrupt,
                 "frame: a number has more bytes than it needs");
      return value;
    }
  }
  throw Error(ErrorCode::kCorrupt, "frame: a number exceeds 64 bits");
}

}  // namespace fz
