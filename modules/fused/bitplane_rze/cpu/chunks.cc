#include "fused/bitplane_rze/cpu/chunks.h"

#include <bit>
#include <cstring>

#include "fused/bitplane_rze/codec.h"
#include "fz/byte_io.h"

// Compiled once per vector target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/bitplane_rze/cpu/chunks.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::bitplane_rze::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kPlaneBytes = 4 * kPlaneWords;
constexpr std::size_t kGroupBytes = 4 * kGroupWords;
constexpr std::size_t kGroupsPerPlane = kGroups / kPlanes;

/// The planes of a chunk that are not zero throughout, by the byte of the word they lie in. Byte p
/// of the flags belongs to plane p; most planes of real codes are empty and cost nothing.
struct ActivePlanes {
  std::uint8_t plane[kPlanes];
  std::uint8_t first[5];  // plane[first[k]] .. plane[first[k + 1] - 1] lie in byte k

  explicit ActivePlanes(const std::uint8_t* flags) {
    std::uint8_t n = 0;
    for (std::uint8_t p = 0; p < kPlanes; ++p) {
      if (p % 8 == 0) {
        first[p / 8] = n;
      }
      plane[n] = p;
      n = static_cast<std::uint8_t>(n + (flags[p] != 0 ? 1 : 0));
    }
    first[4] = n;
  }
};

void flags(const std::uint8_t* chunk, std::uint8_t* out) {
  // Group 8 p + q is plane p of 128 consecutive words, so their OR tells its flag for all p.
  constexpr std::size_t kWords = kChunkWords / kGroupsPerPlane;
  std::uint32_t gathered[kPlanes] = {};
  for (std::size_t q = 0; q < kGroupsPerPlane; ++q) {
    const std::uint8_t* from = chunk + q * kWords * 4;
    std::uint32_t any = 0;
    for (std::size_t i = 0; i < kWords; ++i) {
      any |= loadLe<std::uint32_t>(from + 4 * i);
    }
    for (std::uint32_t p = 0; p < kPlanes; ++p) {
      gathered[p] |= (any >> p & 1u) << q;
    }
  }
  for (std::uint32_t p = 0; p < kPlanes; ++p) {
    out[p] = static_cast<std::uint8_t>(gathered[p]);
  }
}

#if HWY_TARGET == HWY_SCALAR

// Highway has no vectors for the baseline here, so eight words at a time in plain integers.

/// Bit j of byte i <-> bit i of byte j.
HWY_INLINE std::uint64_t transpose8x8(std::uint64_t x) {
  const auto exchange = [&x](std::uint64_t mask, unsigned shift) {
    const std::uint64_t differ = (x ^ x >> shift) & mask;
    x ^= differ ^ differ << shift;
  };
  exchange(0x00AA00AA00AA00AAull, 7);
  exchange(0x0000CCCC0000CCCCull, 14);
  exchange(0x00000000F0F0F0F0ull, 28);
  return x;
}

HWY_INLINE void gatherPlanes(const std::uint8_t* chunk,
                             const ActivePlanes& active,
                             std::uint8_t* planes) {
  for (std::size_t at = 0; at < kChunkBytes; at += 32) {
    for (std::size_t byte = 0; byte < 4; ++byte) {
      std::uint64_t bytes = 0;
      for (std::size_t i = 0; i < 8; ++i) {
        bytes |= static_cast<std::uint64_t>(chunk[at + 4 * i + byte]) << 8 * i;
      }
      const std::uint64_t bits_of_planes = transpose8x8(bytes);
      for (std::size_t i = active.first[byte]; i < active.first[byte + 1]; ++i) {
        const std::size_t p = active.plane[i];
        planes[p * kPlaneBytes + at / kPlanes] =
            static_cast<std::uint8_t>(bits_of_planes >> 8 * (p % 8));
      }
    }
  }
}

HWY_INLINE void scatterPlanes(const std::uint8_t* planes,
                              const ActivePlanes& active,
                              std::uint8_t* chunk) {
  for (std::size_t at = 0; at < kChunkBytes; at += 32) {
    for (std::size_t byte = 0; byte < 4; ++byte) {
      std::uint64_t bits_of_planes = 0;
      for (std::size_t i = active.first[byte]; i < active.first[byte + 1]; ++i) {
        const std::size_t p = active.plane[i];
        bits_of_planes |= static_cast<std::uint64_t>(planes[p * kPlaneBytes + at / kPlanes])
                          << 8 * (p % 8);
      }
      const std::uint64_t bytes = transpose8x8(bits_of_planes);
      for (std::size_t i = 0; i < 8; ++i) {
        chunk[at + 4 * i + byte] = static_cast<std::uint8_t>(bytes >> 8 * i);
      }
    }
  }
}

#else

using Bytes = hn::CappedTag<std::uint8_t, 64>;
static_assert(hn::MaxLanes(Bytes()) >= 8, "a mask must be whole bytes");

/// One byte of each of N words -> N bits of each active plane of that byte.
template <class V>
HWY_INLINE void gatherByte(V bytes,
                           const ActivePlanes& active,
                           std::size_t byte,
                           std::uint8_t* planes) {
  const Bytes d;
  for (std::size_t i = active.first[byte]; i < active.first[byte + 1]; ++i) {
    const std::size_t p = active.plane[i];
    const auto bit = hn::Set(d, static_cast<std::uint8_t>(1u << p % 8));
    std::uint8_t mask[8];  // StoreMaskBits may write eight bytes whatever the vector length
    hn::StoreMaskBits(d, hn::TestBit(bytes, bit), mask);
    std::memcpy(planes + p * kPlaneBytes, mask, hn::Lanes(d) / 8);
  }
}

HWY_INLINE void gatherPlanes(const std::uint8_t* chunk,
                             const ActivePlanes& active,
                             std::uint8_t* planes) {
  const Bytes d;
  const std::size_t step = 4 * hn::Lanes(d);
  for (std::size_t at = 0; at < kChunkBytes; at += step) {
    auto byte0 = hn::Zero(d);
    auto byte1 = byte0;
    auto byte2 = byte0;
    auto byte3 = byte0;
    hn::LoadInterleaved4(d, chunk + at, byte0, byte1, byte2, byte3);
    std::uint8_t* to = planes + at / kPlanes;  // 4 bytes of a word are one bit of a plane
    gatherByte(byte0, active, 0, to);
    gatherByte(byte1, active, 1, to);
    gatherByte(byte2, active, 2, to);
    gatherByte(byte3, active, 3, to);
  }
}

/// The byte of N words that the active planes of that byte make up.
HWY_INLINE hn::VFromD<Bytes> scatterByte(const std::uint8_t* planes,
                                         const ActivePlanes& active,
                                         std::size_t byte) {
  const Bytes d;
  auto bytes = hn::Zero(d);
  for (std::size_t i = active.first[byte]; i < active.first[byte + 1]; ++i) {
    const std::size_t p = active.plane[i];
    const auto bit = hn::Set(d, static_cast<std::uint8_t>(1u << p % 8));
    const auto mask = hn::LoadMaskBits(d, planes + p * kPlaneBytes);
    bytes = hn::Or(bytes, hn::IfThenElseZero(mask, bit));
  }
  return bytes;
}

HWY_INLINE void scatterPlanes(const std::uint8_t* planes,
                              const ActivePlanes& active,
                              std::uint8_t* chunk) {
  const Bytes d;
  const std::size_t step = 4 * hn::Lanes(d);
  for (std::size_t at = 0; at < kChunkBytes; at += step) {
    const std::uint8_t* from = planes + at / kPlanes;
    hn::StoreInterleaved4(scatterByte(from, active, 0), scatterByte(from, active, 1),
                          scatterByte(from, active, 2), scatterByte(from, active, 3), d,
                          chunk + at);
  }
}

#endif

void encode(const std::uint8_t* chunk, const std::uint8_t* chunk_flags, std::uint8_t* stream) {
  const ActivePlanes active(chunk_flags);
  HWY_ALIGN std::uint8_t planes[kChunkBytes];
  gatherPlanes(chunk, active, planes);
  for (std::size_t i = 0; i < active.first[4]; ++i) {
    const std::size_t p = active.plane[i];
    const std::uint8_t* from = planes + p * kPlaneBytes;
    if (chunk_flags[p] == 0xFF) {
      std::memcpy(stream, from, kPlaneBytes);
      stream += kPlaneBytes;
      continue;
    }
    for (std::uint32_t left = chunk_flags[p]; left != 0; left &= left - 1) {
      const auto q = static_cast<std::size_t>(std::countr_zero(left));
      std::memcpy(stream, from + q * kGroupBytes, kGroupBytes);
      stream += kGroupBytes;
    }
  }
}

void decode(const std::uint8_t* chunk_flags, const std::uint8_t* stream, std::uint8_t* chunk) {
  const ActivePlanes active(chunk_flags);
  if (active.first[4] == 0) {
    std::memset(chunk, 0, kChunkBytes);
    return;
  }
  // Eight bytes of slack: some targets read mask bits a whole word at a time.
  HWY_ALIGN std::uint8_t planes[kChunkBytes + 8];
  for (std::size_t i = 0; i < active.first[4]; ++i) {
    const std::size_t p = active.plane[i];
    std::uint8_t* to = planes + p * kPlaneBytes;
    if (chunk_flags[p] == 0xFF) {
      std::memcpy(to, stream, kPlaneBytes);
      stream += kPlaneBytes;
      continue;
    }
    std::memset(to, 0, kPlaneBytes);
    for (std::uint32_t left = chunk_flags[p]; left != 0; left &= left - 1) {
      const auto q = static_cast<std::size_t>(std::countr_zero(left));
      std::memcpy(to + q * kGroupBytes, stream, kGroupBytes);
      stream += kGroupBytes;
    }
  }
  scatterPlanes(planes, active, chunk);
}

}  // namespace fz::bitplane_rze::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::bitplane_rze {

HWY_EXPORT(flags);
HWY_EXPORT(encode);
HWY_EXPORT(decode);

void flagChunk(const std::uint8_t* chunk, std::uint8_t* flags) {
  HWY_DYNAMIC_DISPATCH(flags)(chunk, flags);
}
void encodeChunk(const std::uint8_t* chunk, const std::uint8_t* flags, std::uint8_t* stream) {
  HWY_DYNAMIC_DISPATCH(encode)(chunk, flags, stream);
}
void decodeChunk(const std::uint8_t* flags, const std::uint8_t* stream, std::uint8_t* chunk) {
  HWY_DYNAMIC_DISPATCH(decode)(flags, stream, chunk);
}

}  // namespace fz::bitplane_rze
#endif
