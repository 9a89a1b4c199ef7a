#include "fused/bitplane_rze/bitplane_rze_cpu.h"

#include <bit>
#include <cstring>

#include "fused/bitplane_rze/bitplane_rze_codec.h"
#include "shared/byte_io.h"

// Compiled once per vector target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/bitplane_rze/bitplane_rze_cpu.cc"  // NOLINT
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

using Bytes = hn::CappedTag<std::uint8_t, 64>;

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

/// One byte of each of N words -> N bits of each active plane of that byte.
template <class V>
HWY_INLINE void gatherPlanes(V bytes,
                             const ActivePlanes& active,
                             std::size_t byte,
                             std::uint8_t* planes) {
  const Bytes d;
  for (std::size_t i = active.first[byte]; i < active.first[byte + 1]; ++i) {
    const std::size_t p = active.plane[i];
    const auto bit = hn::Set(d, static_cast<std::uint8_t>(1u << p % 8));
    hn::StoreMaskBits(d, hn::TestBit(bytes, bit), planes + p * kPlaneBytes);
  }
}

void encode(const std::uint8_t* chunk, const std::uint8_t* chunk_flags, std::uint8_t* stream) {
  const Bytes d;
  const ActivePlanes active(chunk_flags);
  HWY_ALIGN std::uint8_t planes[kChunkBytes];
  const std::size_t step = 4 * hn::Lanes(d);
  for (std::size_t at = 0; at < kChunkBytes; at += step) {
    auto byte0 = hn::Undefined(d);
    auto byte1 = byte0;
    auto byte2 = byte0;
    auto byte3 = byte0;
    hn::LoadInterleaved4(d, chunk + at, byte0, byte1, byte2, byte3);
    std::uint8_t* to = planes + at / kPlanes;  // 4 bytes of a word are one bit of a plane
    gatherPlanes(byte0, active, 0, to);
    gatherPlanes(byte1, active, 1, to);
    gatherPlanes(byte2, active, 2, to);
    gatherPlanes(byte3, active, 3, to);
  }
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

/// The byte of N words that the active planes of that byte make up.
HWY_INLINE hn::VFromD<Bytes> scatterPlanes(const std::uint8_t* planes,
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

void decode(const std::uint8_t* chunk_flags, const std::uint8_t* stream, std::uint8_t* chunk) {
  const Bytes d;
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
  const std::size_t step = 4 * hn::Lanes(d);
  for (std::size_t at = 0; at < kChunkBytes; at += step) {
    const std::uint8_t* from = planes + at / kPlanes;
    hn::StoreInterleaved4(scatterPlanes(from, active, 0), scatterPlanes(from, active, 1),
                          scatterPlanes(from, active, 2), scatterPlanes(from, active, 3), d,
                          chunk + at);
  }
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
