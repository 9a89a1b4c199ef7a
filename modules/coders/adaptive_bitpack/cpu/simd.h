// Vector kernels on groups of 32 values, compiled once per target (hence the odd guard). Include
// after hwy/highway.h; a fused kernel may use them too. They give the bytes of
// codec.h, which the tests check for every target of the machine. Empty for the
// target without vectors.
#if defined(FZ_ADAPTIVE_BITPACK_SIMD_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_ADAPTIVE_BITPACK_SIMD_H
#undef FZ_ADAPTIVE_BITPACK_SIMD_H
#else
#define FZ_ADAPTIVE_BITPACK_SIMD_H
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <hwy/highway.h>
#include <type_traits>

#include "fz/byte_io.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace fz::adaptive_bitpack::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kGroupValues = 32;
inline constexpr std::size_t kGroupPlaneBytes = kGroupValues / 8;
/// Bytes of eight planes of a group; the kernels read and write planes in such portions.
inline constexpr std::size_t kPortionBytes = 8 * kGroupPlaneBytes;

/// 32 unsigned integers in as few vectors as the target allows, in order.
template <class D>
struct Vectors {
  static constexpr std::size_t kLanes = hn::MaxLanes(D());
  static constexpr std::size_t kCount = kGroupValues / kLanes;
  hn::Vec<D> part[kCount];
};

template <class T>
using UnsignedTag = hn::CappedTag<std::make_unsigned_t<T>, kGroupValues>;
using WordTag = UnsignedTag<std::int16_t>;
using ByteTag = UnsignedTag<std::int8_t>;
using GroupWords = Vectors<WordTag>;
using GroupBytes = Vectors<ByteTag>;
inline constexpr std::size_t kWordVectors = GroupWords::kCount;
inline constexpr std::size_t kByteVectors = GroupBytes::kCount;
inline constexpr std::size_t kByteLanes = GroupBytes::kLanes;
template <class T>
inline constexpr std::size_t kLanes = Vectors<UnsignedTag<T>>::kLanes;
template <class T>
inline constexpr std::size_t kVectors = Vectors<UnsignedTag<T>>::kCount;

/// 32 magnitudes and their signs, value 0 in the lowest lane and bit.
template <class T>
struct Group {
  Vectors<UnsignedTag<T>> magnitude;
  std::uint32_t signs;
};

/// Bit j of byte i of every 64-bit lane trades places with bit i of byte j.
template <class V>
HWY_INLINE V transposeBits(V bytes) {
  const hn::Repartition<std::uint64_t, hn::DFromV<V>> d64;
  auto x = hn::BitCast(d64, bytes);
  auto t = hn::And(hn::Xor(x, hn::ShiftRight<7>(x)), hn::Set(d64, 0x00AA00AA00AA00AAull));
  x = hn::Xor(x, hn::Xor(t, hn::ShiftLeft<7>(t)));
  t = hn::And(hn::Xor(x, hn::ShiftRight<14>(x)), hn::Set(d64, 0x0000CCCC0000CCCCull));
  x = hn::Xor(x, hn::Xor(t, hn::ShiftLeft<14>(t)));
  t = hn::And(hn::Xor(x, hn::ShiftRight<28>(x)), hn::Set(d64, 0x00000000F0F0F0F0ull));
  x = hn::Xor(x, hn::Xor(t, hn::ShiftLeft<28>(t)));
  return hn::BitCast(hn::DFromV<V>(), x);
}

/// Byte j of 32-bit lane i of every 16 bytes trades places with byte i of lane j.
template <class V>
HWY_INLINE V transposeBytes(V bytes) {
  const hn::DFromV<V> d;
#if defined(HWY_SSE2) && HWY_TARGET == HWY_SSE2  // has no byte shuffle
  const V half = hn::InterleaveLower(d, bytes, hn::ShiftRightBytes<8>(d, bytes));
  return hn::InterleaveLower(d, half, hn::ShiftRightBytes<8>(d, half));
#else
  alignas(16) static constexpr std::uint8_t kOrder[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                          2, 6, 10, 14, 3, 7, 11, 15};
  return hn::TableLookupBytes(bytes, hn::LoadDup128(d, kOrder));
#endif
}

/// One byte of each of 32 values -> eight planes of four bytes, the plane of bit 0 first.
HWY_INLINE GroupBytes planesOfBytes(GroupBytes bytes) {
  const hn::Repartition<std::uint32_t, ByteTag> d32;
  const ByteTag d;
#if HWY_MAX_BYTES >= 32
  alignas(32) static constexpr std::uint32_t kEvenFirst[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  const auto x = hn::BitCast(d32, transposeBits(bytes.part[0]));
  const auto halves = hn::TableLookupLanes(x, hn::SetTableIndices(d32, kEvenFirst));
  return {{transposeBytes(hn::BitCast(d, halves))}};
#else
  const auto x = hn::BitCast(d32, transposeBits(bytes.part[0]));
  const auto y = hn::BitCast(d32, transposeBits(bytes.part[1]));
  return {{transposeBytes(hn::BitCast(d, hn::ConcatEven(d32, y, x))),
           transposeBytes(hn::BitCast(d, hn::ConcatOdd(d32, y, x)))}};
#endif
}

/// The inverse of planesOfBytes.
HWY_INLINE GroupBytes bytesOfPlanes(GroupBytes planes) {
  const hn::Repartition<std::uint32_t, ByteTag> d32;
  const ByteTag d;
#if HWY_MAX_BYTES >= 32
  alignas(32) static constexpr std::uint32_t kAlternate[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  const auto x = hn::BitCast(d32, transposeBytes(planes.part[0]));
  const auto pairs = hn::TableLookupLanes(x, hn::SetTableIndices(d32, kAlternate));
  return {{transposeBits(hn::BitCast(d, pairs))}};
#else
  const auto x = hn::BitCast(d32, transposeBytes(planes.part[0]));
  const auto y = hn::BitCast(d32, transposeBytes(planes.part[1]));
  return {{transposeBits(hn::BitCast(d, hn::InterleaveLower(d32, x, y))),
           transposeBits(hn::BitCast(d, hn::InterleaveUpper(d32, x, y)))}};
#endif
}

HWY_INLINE void storeBytes(GroupBytes bytes, std::uint8_t* out) {
  for (std::size_t i = 0; i < kByteVectors; ++i) {
    hn::StoreU(bytes.part[i], ByteTag(), out + i * kByteLanes);
  }
}

/// Low (kWord 0) or high 16 bits of the 32 magnitudes, in order.
template <class T, int kWord>
HWY_INLINE GroupWords wordsOf(const Group<T>& group) {
  if constexpr (sizeof(T) == 2) {
    static_assert(kWord == 0);
    return group.magnitude;
  } else {
    const WordTag d;
    GroupWords words;
    for (std::size_t i = 0; i < kWordVectors; ++i) {
      const auto lo = hn::BitCast(d, group.magnitude.part[2 * i]);
      const auto hi = hn::BitCast(d, group.magnitude.part[2 * i + 1]);
      words.part[i] = kWord == 0 ? hn::ConcatEven(d, hi, lo) : hn::ConcatOdd(d, hi, lo);
    }
    return words;
  }
}

/// Byte kByte of the 32 magnitudes, in order.
template <class T, int kByte>
HWY_INLINE GroupBytes bytesOf(const Group<T>& group) {
  const ByteTag d;
  const GroupWords words = wordsOf<T, kByte / 2>(group);
  GroupBytes bytes;
#if HWY_MAX_BYTES >= 64
  bytes.part[0] = hn::TruncateTo(d, hn::ShiftRight<8 * (kByte % 2)>(words.part[0]));
#else
  for (std::size_t i = 0; i < kByteVectors; ++i) {
    const auto lo = hn::BitCast(d, words.part[2 * i]);
    const auto hi = hn::BitCast(d, words.part[2 * i + 1]);
    bytes.part[i] = kByte % 2 == 0 ? hn::ConcatEven(d, hi, lo) : hn::ConcatOdd(d, hi, lo);
  }
#endif
  return bytes;
}

/// The bits of a mask. Exactly the bytes that were stored are loaded: more would have to wait until
/// they have reached the cache.
template <class D, class M>
HWY_INLINE std::uint32_t bitsOf(D d, M mask) {
  constexpr std::size_t kMaskLanes = hn::MaxLanes(D());
  std::uint8_t bits[8];
  hn::StoreMaskBits(d, mask, bits);
  if constexpr (kMaskLanes == 32) {
    return loadLe<std::uint32_t>(bits);
  } else if constexpr (kMaskLanes == 16) {
    return loadLe<std::uint16_t>(bits);
  } else {
    return bits[0];
  }
}

/// Loads 32 values.
template <class T>
HWY_INLINE Group<T> loadGroup(const T* values) {
  const UnsignedTag<T> d;
  const hn::RebindToSigned<UnsignedTag<T>> di;
  Group<T> group;
  group.signs = 0;
  for (std::size_t i = 0; i < kVectors<T>; ++i) {
    const auto v = hn::LoadU(di, values + i * kLanes<T>);
    group.signs |= bitsOf(di, hn::Lt(v, hn::Zero(di))) << (i * kLanes<T> % 32);
    group.magnitude.part[i] = hn::BitCast(d, hn::Abs(v));
  }
  return group;
}

/// Takes the values from n on out: they count as 0.
template <class T>
HWY_INLINE void keepFirst(Group<T>& group, std::size_t n) {
  const UnsignedTag<T> d;
  for (std::size_t i = 0; i < kVectors<T>; ++i) {
    const std::size_t n_before = i * kLanes<T>;
    const auto keep = hn::FirstN(d, n > n_before ? n - n_before : 0);
    group.magnitude.part[i] = hn::IfThenElseZero(keep, group.magnitude.part[i]);
  }
  group.signs &= n < kGroupValues ? (1u << n) - 1 : ~0u;
}

/// Takes value 0 out: its magnitude counts as 0. Its sign stays.
template <class T>
HWY_INLINE void dropFirst(Group<T>& group) {
  const UnsignedTag<T> d;
  group.magnitude.part[0] = hn::IfThenZeroElse(hn::FirstN(d, 1), group.magnitude.part[0]);
}

template <class V>
HWY_INLINE std::uint64_t orOfLanes(V v) {
  using D = hn::DFromV<V>;
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromV<V>) > 16) {
    const hn::Half<D> half;
    return orOfLanes(hn::Or(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    const hn::Repartition<std::uint64_t, D> d64;
    const auto x = hn::BitCast(d64, v);
    return hn::GetLane(x) | hn::GetLane(hn::UpperHalf(hn::Half<decltype(d64)>(), x));
  }
}

/// All magnitudes or-ed together: as wide as the largest.
template <class T>
HWY_INLINE std::uint32_t orOfMagnitudes(const Group<T>& group) {
  auto all = group.magnitude.part[0];
  for (std::size_t i = 1; i < kVectors<T>; ++i) {
    all = hn::Or(all, group.magnitude.part[i]);
  }
  std::uint64_t folded = orOfLanes(all);
  folded |= folded >> 32;
  if constexpr (sizeof(T) == 2) {
    folded = (folded | folded >> 16) & 0xFFFFu;
  }
  return static_cast<std::uint32_t>(folded);
}

/// Writes `rate` planes of a group in portions of eight, calling store(portion, planes).
template <class T, class Store>
HWY_INLINE void planesOf(const Group<T>& group, std::uint32_t rate, Store store) {
  if (rate == 0) {
    return;
  }
  store(0u, planesOfBytes(bytesOf<T, 0>(group)));
  if (rate > 8) {
    store(1u, planesOfBytes(bytesOf<T, 1>(group)));
  }
  if constexpr (sizeof(T) == 4) {
    if (rate > 16) {
      store(2u, planesOfBytes(bytesOf<T, 2>(group)));
    }
    if (rate > 24) {
      store(3u, planesOfBytes(bytesOf<T, 3>(group)));
    }
  }
}

/// Eight planes at `in`, those from n_planes on taken as 0. Reads 32 bytes.
HWY_INLINE GroupBytes loadPlanes(const std::uint8_t* in, std::uint32_t n_planes) {
  alignas(64) static constexpr std::uint8_t kKeep[64] = {
      255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
      255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
  const std::uint8_t* keep =
      kKeep + kPortionBytes - kGroupPlaneBytes * (n_planes < 8 ? n_planes : 8);
  GroupBytes planes;
  for (std::size_t i = 0; i < kByteVectors; ++i) {
    planes.part[i] = hn::And(hn::LoadU(ByteTag(), in + i * kByteLanes),
                             hn::LoadU(ByteTag(), keep + i * kByteLanes));
  }
  return planes;
}

/// Eight planes whose rows lie row_bytes apart, those from n_planes on taken as 0. Reads 4 bytes
/// per row. Rows meet in registers: stores followed by a wider load would wait for the cache.
HWY_INLINE GroupBytes gatherPlanes(const std::uint8_t* rows,
                                   std::uint32_t row_bytes,
                                   std::uint32_t n_planes) {
  alignas(8) static constexpr std::uint8_t kZeros[8] = {};
  const hn::FixedTag<std::uint32_t, 4> d32;
  const hn::FixedTag<std::uint64_t, 2> d64;
  const auto pairOfRows = [&](std::uint32_t p) HWY_ATTR {
    const std::uint8_t* a = p < n_planes ? rows + p * row_bytes : kZeros;
    const std::uint8_t* b = p + 1 < n_planes ? rows + (p + 1) * row_bytes : kZeros;
    const auto row_a = hn::Set(d32, loadLe<std::uint32_t>(a));
    const auto row_b = hn::Set(d32, loadLe<std::uint32_t>(b));
    return hn::BitCast(d64, hn::InterleaveLower(d32, row_a, row_b));
  };
  const auto low = hn::InterleaveLower(d64, pairOfRows(0), pairOfRows(2));
  const auto high = hn::InterleaveLower(d64, pairOfRows(4), pairOfRows(6));
  const hn::FixedTag<std::uint8_t, 16> d8;
#if HWY_MAX_BYTES >= 32
  return {{hn::Combine(ByteTag(), hn::BitCast(d8, high), hn::BitCast(d8, low))}};
#else
  return {{hn::BitCast(d8, low), hn::BitCast(d8, high)}};
#endif
}

/// Writes 32 values: kBytes bytes of each magnitude, byte b of value i at bytes[kStride * b + i].
template <class T, std::size_t kBytes, std::size_t kStride = kGroupValues>
HWY_INLINE void storeValues(const std::uint8_t* bytes, std::uint32_t signs, T* values) {
  const UnsignedTag<T> d;
  const hn::RebindToSigned<UnsignedTag<T>> di;
  const hn::Rebind<std::uint8_t, UnsignedTag<T>> d8;
  for (std::size_t i = 0; i < kVectors<T>; ++i) {
    const std::uint8_t* from = bytes + i * kLanes<T>;
    auto magnitude = hn::PromoteTo(d, hn::LoadU(d8, from));
    if constexpr (kBytes > 1) {
      magnitude =
          hn::Or(magnitude, hn::ShiftLeft<8>(hn::PromoteTo(d, hn::LoadU(d8, from + kStride))));
    }
    if constexpr (kBytes > 2) {
      magnitude =
          hn::Or(magnitude, hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(d8, from + 2 * kStride))));
    }
    if constexpr (kBytes > 3) {
      magnitude =
          hn::Or(magnitude, hn::ShiftLeft<24>(hn::PromoteTo(d, hn::LoadU(d8, from + 3 * kStride))));
    }
    std::uint8_t bits[8];
    storeLe<std::uint64_t>(bits, signs >> (i * kLanes<T> % 32));
    const auto v = hn::BitCast(di, magnitude);
    const auto is_negative = hn::LoadMaskBits(di, bits);
    hn::StoreU(hn::IfThenElse(is_negative, hn::Neg(v), v), di, values + i * kLanes<T>);
  }
}

/// Reads 32 values of `rate` planes; load(portion) gives eight planes at a time.
template <class T, class Load>
HWY_INLINE void valuesOf(Load load, std::uint32_t rate, std::uint32_t signs, T* values) {
  alignas(64) std::uint8_t bytes[sizeof(T) * kGroupValues];
  storeBytes(bytesOfPlanes(load(0u)), bytes);
  if (rate <= 8) {
    return storeValues<T, 1>(bytes, signs, values);
  }
  storeBytes(bytesOfPlanes(load(1u)), bytes + 32);
  if constexpr (sizeof(T) == 2) {
    return storeValues<T, 2>(bytes, signs, values);
  } else {
    if (rate <= 16) {
      return storeValues<T, 2>(bytes, signs, values);
    }
    storeBytes(bytesOfPlanes(load(2u)), bytes + 64);
    if (rate <= 24) {
      return storeValues<T, 3>(bytes, signs, values);
    }
    storeBytes(bytesOfPlanes(load(3u)), bytes + 96);
    return storeValues<T, 4>(bytes, signs, values);
  }
}

}  // namespace fz::adaptive_bitpack::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_SCALAR

#endif
