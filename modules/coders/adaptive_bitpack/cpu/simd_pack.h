// Values to bit planes and back in 512-bit vectors, for processors that move any byte of two of
// them anywhere (VBMI) and multiply matrices of bits (GFNI). Compiled once per target (hence the
// odd guard), and empty for all but that one. Include after hwy/highway.h.
#if defined(FZ_ADAPTIVE_BITPACK_SIMD_PACK_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_ADAPTIVE_BITPACK_SIMD_PACK_H
#undef FZ_ADAPTIVE_BITPACK_SIMD_PACK_H
#else
#define FZ_ADAPTIVE_BITPACK_SIMD_PACK_H
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>
#include <type_traits>

#include "coders/adaptive_bitpack/codec.h"
#include "fz/byte_io.h"
#include "fz/span.h"

#if HWY_TARGET <= HWY_AVX3_DL  // or better
// The target does not include GFNI, though no processor has it without: fits() asks. It has LZCNT,
// but does not tell the compiler.
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",gfni,lzcnt")
namespace fz::adaptive_bitpack::HWY_NAMESPACE::galois {  // NOLINT

// A quad is 64 bits: one byte of each of eight values, or eight planes of eight values. Turning
// makes the one from the other. 16 bits of 32 values (a half) are eight quads, one vector:
// quad 4 * k + j has byte k of values 8 * j to 8 * j + 7, or planes 8 * k to 8 * k + 7 of them.

using Order = std::array<std::uint8_t, 64>;

template <class F>
constexpr Order makeOrder(F source_of) {
  Order order{};
  for (std::uint32_t to = 0; to < order.size(); ++to) {
    order[to] = static_cast<std::uint8_t>(source_of(to));
  }
  return order;
}

/// Where the bytes of half kHalf lie among 32 values; in a quad to be turned the first comes last.
template <class T, std::uint32_t kHalf>
inline constexpr Order kValuesToQuads = makeOrder([](std::uint32_t to) {
  const std::uint32_t value = to / 8 % 4 * 8 + (7 - to % 8);
  return sizeof(T) * value + 2 * kHalf + to / 32;
});

/// Where the bytes of 64 / sizeof(T) values from kFirst on lie in both halves' turned quads.
template <class T, std::uint32_t kFirst>
inline constexpr Order kQuadsToValues = makeOrder([](std::uint32_t to) {
  const std::uint32_t value = kFirst + to / sizeof(T);
  const std::uint32_t byte = to % sizeof(T);
  return byte / 2 * 64 + (byte % 2 * 4 + value / 8) * 8 + value % 8;
});

/// Where 16 rows of four bytes lie in the quads of a half.
inline constexpr Order kQuadsToRows =
    makeOrder([](std::uint32_t to) { return (to / 32 * 4 + to % 4) * 8 + to / 4 % 8; });
inline constexpr Order kRowsToQuads = makeOrder([](std::uint32_t to) {
  const std::uint32_t plane = to / 32 * 8 + (7 - to % 8);
  return plane * 4 + to / 8 % 4;
});

/// Where rows 8 * kByte to 8 * kByte + 7 of eight bytes lie in the same half of two groups.
template <std::uint32_t kByte>
inline constexpr Order kQuadsToLongRows = makeOrder([](std::uint32_t to) {
  return to % 8 / 4 * 64 + (kByte * 4 + to % 4) * 8 + to / 8;
});
/// Where the quads of group kGroup lie in twice eight rows of eight bytes.
template <std::uint32_t kGroup>
inline constexpr Order kLongRowsToQuads = makeOrder([](std::uint32_t to) {
  return to / 32 * 64 + (7 - to % 8) * 8 + 4 * kGroup + to / 8 % 4;
});

template <const Order& kOrder>
HWY_INLINE __m512i order() {
  return _mm512_loadu_si512(kOrder.data());
}

/// Bit i of byte m of the result is bit m of byte 7 - i.
HWY_INLINE __m512i turn(__m512i quads) {
  return _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64(0x8040201008040201), quads, 0);
}

inline constexpr std::uint32_t kGroupSize = 32;

template <class T>
inline constexpr std::uint32_t kHalves = sizeof(T) / 2;

/// 32 magnitudes and their signs.
template <class T>
struct Magnitudes {
  __m512i part[kHalves<T>];
  std::uint32_t signs;
};

HWY_INLINE Magnitudes<std::int16_t> load(const std::int16_t* values) {
  const __m512i v = _mm512_loadu_si512(values);
  return {{_mm512_abs_epi16(v)}, _mm512_movepi16_mask(v)};
}
HWY_INLINE Magnitudes<std::int32_t> load(const std::int32_t* values) {
  const __m512i a = _mm512_loadu_si512(values);
  const __m512i b = _mm512_loadu_si512(values + 16);
  const __mmask32 signs = _mm512_kunpackw(_mm512_movepi32_mask(b), _mm512_movepi32_mask(a));
  return {{_mm512_abs_epi32(a), _mm512_abs_epi32(b)}, signs};
}

/// The planes of a half, as quads.
template <std::uint32_t kHalf>
HWY_INLINE __m512i planeQuads(const Magnitudes<std::int16_t>& group) {
  return turn(_mm512_permutexvar_epi8(order<kValuesToQuads<std::int16_t, kHalf>>(), group.part[0]));
}
template <std::uint32_t kHalf>
HWY_INLINE __m512i planeQuads(const Magnitudes<std::int32_t>& group) {
  return turn(_mm512_permutex2var_epi8(group.part[0], order<kValuesToQuads<std::int32_t, kHalf>>(),
                                       group.part[1]));
}

/// 16 planes of kGroups groups: rows of 4 * kGroups bytes.
template <std::uint32_t kGroups>
struct Rows {
  __m512i part[kGroups];
};

HWY_INLINE Rows<1> rowsOf(const __m512i (&quads)[1]) {
  return {{_mm512_permutexvar_epi8(order<kQuadsToRows>(), quads[0])}};
}
HWY_INLINE Rows<2> rowsOf(const __m512i (&quads)[2]) {
  return {{_mm512_permutex2var_epi8(quads[0], order<kQuadsToLongRows<0>>(), quads[1]),
           _mm512_permutex2var_epi8(quads[0], order<kQuadsToLongRows<1>>(), quads[1])}};
}

/// Four groups are two pairs: their rows of eight bytes alternate.
HWY_INLINE Rows<4> rowsOf(const __m512i (&quads)[4]) {
  const __m512i first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512i last = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  const Rows<2> a = rowsOf({quads[0], quads[1]});
  const Rows<2> b = rowsOf({quads[2], quads[3]});
  return {{_mm512_permutex2var_epi64(a.part[0], first, b.part[0]),
           _mm512_permutex2var_epi64(a.part[0], last, b.part[0]),
           _mm512_permutex2var_epi64(a.part[1], first, b.part[1]),
           _mm512_permutex2var_epi64(a.part[1], last, b.part[1])}};
}

/// What rows of 16 bytes have besides value 0.
HWY_INLINE __m512i restOfLongRows() {
  return _mm512_setr_epi64(-2, -1, -2, -1, -2, -1, -2, -1);
}

/// Bit p is set when row p has a bit of a value; value 0 counts with kWithFirst only.
template <bool kWithFirst>
HWY_INLINE std::uint32_t usedRows(const Rows<1>& rows) {
  return _mm512_test_epi32_mask(rows.part[0], _mm512_set1_epi32(kWithFirst ? -1 : -2));
}
template <bool kWithFirst>
HWY_INLINE std::uint32_t usedRows(const Rows<2>& rows) {
  const __m512i counts = _mm512_set1_epi64(kWithFirst ? -1 : -2);
  return _mm512_kunpackb(_mm512_test_epi64_mask(rows.part[1], counts),
                         _mm512_test_epi64_mask(rows.part[0], counts));
}
template <bool kWithFirst>
HWY_INLINE std::uint32_t usedRows(const Rows<4>& rows) {
  const __m512i counts = kWithFirst ? _mm512_set1_epi64(-1) : restOfLongRows();
  std::uint32_t used = 0;  // two bits each
  for (std::uint32_t i = 0; i < 4; ++i) {
    used |= std::uint32_t{_mm512_test_epi64_mask(rows.part[i], counts)} << (8 * i);
  }
  return _pext_u32(used | used >> 1, 0x55555555);
}

/// Takes value 0 out of rows where `drops`.
HWY_INLINE void dropFirst(Rows<1>& rows, bool drops) {
  rows.part[0] = _mm512_and_si512(rows.part[0], _mm512_set1_epi32(drops ? -2 : -1));
}
HWY_INLINE void dropFirst(Rows<2>& rows, bool drops) {
  const __m512i keep = _mm512_set1_epi64(drops ? -2 : -1);
  rows.part[0] = _mm512_and_si512(rows.part[0], keep);
  rows.part[1] = _mm512_and_si512(rows.part[1], keep);
}
HWY_INLINE void dropFirst(Rows<4>& rows, bool drops) {
  const __m512i keep = drops ? restOfLongRows() : _mm512_set1_epi64(-1);
  for (__m512i& part : rows.part) {
    part = _mm512_and_si512(part, keep);
  }
}

template <std::uint32_t kGroups>
HWY_INLINE void store(const Rows<kGroups>& rows, std::uint8_t* out) {
  for (std::uint32_t i = 0; i < kGroups; ++i) {
    _mm512_storeu_si512(out + 64 * i, rows.part[i]);
  }
}

template <std::uint32_t kHalf, class T, std::uint32_t kGroups>
HWY_INLINE Rows<kGroups> rowsOfHalf(const Magnitudes<T> (&groups)[kGroups]) {
  __m512i quads[kGroups];
  for (std::uint32_t g = 0; g < kGroups; ++g) {
    quads[g] = planeQuads<kHalf>(groups[g]);
  }
  return rowsOf(quads);
}

/// Whether a magnitude has more than 16 bits.
template <class T, std::uint32_t kGroups>
HWY_INLINE bool isWide(const Magnitudes<T> (&groups)[kGroups]) {
  if constexpr (sizeof(T) == 2) {
    return false;
  } else {
    __m512i all = _mm512_or_si512(groups[0].part[0], groups[0].part[1]);
    for (std::uint32_t g = 1; g < kGroups; ++g) {
      all = _mm512_or_si512(all, _mm512_or_si512(groups[g].part[0], groups[g].part[1]));
    }
    return _mm512_test_epi32_mask(all, _mm512_set1_epi32(-65536)) != 0;
  }
}

/// The quads of a half by its 16 rows, of which those are there that `present` has a bit for. No
/// byte of another row is read.
HWY_INLINE void loadQuads(const std::uint8_t* rows, std::uint32_t present, __m512i (&quads)[1]) {
  const __m512i planes = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(present), rows);
  quads[0] = turn(_mm512_permutexvar_epi8(order<kRowsToQuads>(), planes));
}
/// Quads of two groups by their planes 0 to 7 and 8 to 15.
HWY_INLINE void quadsOfPair(__m512i low, __m512i high, __m512i* quads) {
  quads[0] = turn(_mm512_permutex2var_epi8(low, order<kLongRowsToQuads<0>>(), high));
  quads[1] = turn(_mm512_permutex2var_epi8(low, order<kLongRowsToQuads<1>>(), high));
}
HWY_INLINE void loadQuads(const std::uint8_t* rows, std::uint32_t present, __m512i (&quads)[2]) {
  quadsOfPair(_mm512_maskz_loadu_epi64(static_cast<__mmask8>(present), rows),
              _mm512_maskz_loadu_epi64(static_cast<__mmask8>(present >> 8), rows + 64), quads);
}
HWY_INLINE void loadQuads(const std::uint8_t* rows, std::uint32_t present, __m512i (&quads)[4]) {
  const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
  const std::uint32_t mask = 3 * _pdep_u32(present, 0x55555555);  // a row is two lanes
  __m512i part[4];
  for (std::uint32_t i = 0; i < 4; ++i) {
    part[i] = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask >> (8 * i)), rows + 64 * i);
  }
  quadsOfPair(_mm512_permutex2var_epi64(part[0], even, part[1]),
              _mm512_permutex2var_epi64(part[2], even, part[3]), quads);
  quadsOfPair(_mm512_permutex2var_epi64(part[0], odd, part[1]),
              _mm512_permutex2var_epi64(part[2], odd, part[3]), quads + 2);
}

/// 32 magnitudes by the bytes of their low halves.
HWY_INLINE void magnitudesOf(__m512i quads, __m512i (&parts)[1]) {
  parts[0] = _mm512_permutexvar_epi8(order<kQuadsToValues<std::int16_t, 0>>(), quads);
}
HWY_INLINE void magnitudesOf(__m512i quads, __m512i (&parts)[2]) {
  constexpr __mmask64 kLowBytes = 0x3333333333333333;
  parts[0] =
      _mm512_maskz_permutexvar_epi8(kLowBytes, order<kQuadsToValues<std::int32_t, 0>>(), quads);
  parts[1] =
      _mm512_maskz_permutexvar_epi8(kLowBytes, order<kQuadsToValues<std::int32_t, 16>>(), quads);
}
/// And by those of both halves.
HWY_INLINE void magnitudesOf(__m512i low, __m512i high, __m512i (&parts)[2]) {
  parts[0] = _mm512_permutex2var_epi8(low, order<kQuadsToValues<std::int32_t, 0>>(), high);
  parts[1] = _mm512_permutex2var_epi8(low, order<kQuadsToValues<std::int32_t, 16>>(), high);
}

HWY_INLINE void storeSigned(const __m512i (&parts)[1], std::uint32_t signs, std::int16_t* values) {
  const __m512i zero = _mm512_setzero_si512();
  _mm512_storeu_si512(values, _mm512_mask_sub_epi16(parts[0], signs, zero, parts[0]));
}
HWY_INLINE void storeSigned(const __m512i (&parts)[2], std::uint32_t signs, std::int32_t* values) {
  const __m512i zero = _mm512_setzero_si512();
  const auto low = static_cast<__mmask16>(signs);
  const auto high = static_cast<__mmask16>(signs >> 16);
  _mm512_storeu_si512(values, _mm512_mask_sub_epi32(parts[0], low, zero, parts[0]));
  _mm512_storeu_si512(values + 16, _mm512_mask_sub_epi32(parts[1], high, zero, parts[1]));
}

}  // namespace fz::adaptive_bitpack::HWY_NAMESPACE::galois
HWY_POP_ATTRIBUTES
#endif

#endif
