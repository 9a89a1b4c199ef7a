// Vector kernels on blocks of 64 values for targets whose vectors hold eight planes of them,
// compiled once per target (hence the odd guard). Include after simd.h.
#if defined(FZ_ADAPTIVE_BITPACK_SIMD_ROWS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_ADAPTIVE_BITPACK_SIMD_ROWS_H
#undef FZ_ADAPTIVE_BITPACK_SIMD_ROWS_H
#else
#define FZ_ADAPTIVE_BITPACK_SIMD_ROWS_H
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include "coders/adaptive_bitpack/cpu/simd.h"

#if HWY_TARGET != HWY_SCALAR && HWY_MAX_BYTES >= 64
HWY_BEFORE_NAMESPACE();
namespace fz::adaptive_bitpack::HWY_NAMESPACE {  // NOLINT

inline constexpr std::size_t kWideValues = 2 * kGroupValues;
inline constexpr std::size_t kWideRowBytes = kWideValues / 8;

using WideTag = hn::FixedTag<std::uint8_t, kWideValues>;
using WideBytes = hn::Vec<WideTag>;
using WideWordTag = hn::Repartition<std::uint32_t, WideTag>;

/// Eight rows of eight bytes are four squares of four by four. Where in the rows the words of the
/// squares come from (a square is 16 bytes, a word one of its rows), and where in the squares those
/// of the rows.
inline constexpr std::array<std::uint32_t, 16> kRowsToSquares = [] {
  std::array<std::uint32_t, 16> from{};
  for (std::uint32_t i = 0; i < from.size(); ++i) {
    const std::uint32_t square = i / 4;
    from[i] = (square / 2 * 4 + i % 4) * 2 + square % 2;
  }
  return from;
}();
/// Squares that have been transposed trade places across the diagonal.
inline constexpr std::array<std::uint32_t, 16> kSquaresToRows = [] {
  std::array<std::uint32_t, 16> from{};
  for (std::uint32_t i = 0; i < from.size(); ++i) {
    const std::uint32_t row = i / 2;
    from[i] = (i % 2 * 2 + row / 4) * 4 + row % 4;
  }
  return from;
}();

/// Byte j of every 64-bit lane i trades places with byte i of lane j.
HWY_INLINE WideBytes transposeWideBytes(WideBytes bytes) {
  const WideTag d;
  const WideWordTag d32;
  const auto squares = hn::TableLookupLanes(hn::BitCast(d32, bytes),
                                            hn::SetTableIndices(d32, kRowsToSquares.data()));
  const auto turned = transposeBytes(hn::BitCast(d, squares));
  return hn::BitCast(d, hn::TableLookupLanes(hn::BitCast(d32, turned),
                                             hn::SetTableIndices(d32, kSquaresToRows.data())));
}

/// One byte of each of 64 values -> eight planes of eight bytes, the plane of bit 0 first.
HWY_INLINE WideBytes planesOfBytes(WideBytes bytes) {
  return transposeWideBytes(transposeBits(bytes));
}
/// The inverse of planesOfBytes.
HWY_INLINE WideBytes bytesOfPlanes(WideBytes planes) {
  return transposeBits(transposeWideBytes(planes));
}

/// Planes 8 * kByte to 8 * kByte + 7 of 64 values.
template <class T, int kByte>
HWY_INLINE WideBytes widePlanes(const Group<T>& low, const Group<T>& high) {
  return planesOfBytes(
      hn::Combine(WideTag(), bytesOf<T, kByte>(high).part[0], bytesOf<T, kByte>(low).part[0]));
}

/// Writes `rate` planes of 64 values, rounded up to portions of eight.
template <class T>
HWY_INLINE void storeWidePlanes(const Group<T>& low,
                                const Group<T>& high,
                                std::uint32_t rate,
                                std::uint8_t* rows) {
  const WideTag d;
  if (rate > 0) {
    hn::StoreU(widePlanes<T, 0>(low, high), d, rows);
  }
  if (rate > 8) {
    hn::StoreU(widePlanes<T, 1>(low, high), d, rows + kWideValues);
  }
  if constexpr (sizeof(T) == 4) {
    if (rate > 16) {
      hn::StoreU(widePlanes<T, 2>(low, high), d, rows + 2 * kWideValues);
    }
    if (rate > 24) {
      hn::StoreU(widePlanes<T, 3>(low, high), d, rows + 3 * kWideValues);
    }
  }
}

/// Reads 64 values of `rate` planes, and no byte behind those.
template <class T>
HWY_INLINE void loadWidePlanes(const std::uint8_t* rows,
                               std::uint32_t rate,
                               std::uint64_t signs,
                               T* values) {
  const WideTag d;
  const hn::Repartition<std::uint64_t, WideTag> d64;
  alignas(64) std::uint8_t bytes[sizeof(T) * kWideValues];
  std::uint32_t plane = 0;
  do {  // once for no planes too: all magnitudes are 0 then
    const auto planes =
        hn::MaskedLoad(hn::FirstN(d64, rate - plane), d64,
                       reinterpret_cast<const std::uint64_t*>(rows + plane * kWideRowBytes));
    hn::StoreU(bytesOfPlanes(hn::BitCast(d, planes)), d, bytes + plane * kWideRowBytes);
    plane += 8;
  } while (plane < rate);
  const auto store = [&]<std::size_t kBytes>(std::integral_constant<std::size_t, kBytes>) HWY_ATTR {
    storeValues<T, kBytes, kWideValues>(bytes, static_cast<std::uint32_t>(signs), values);
    storeValues<T, kBytes, kWideValues>(
        bytes + kGroupValues, static_cast<std::uint32_t>(signs >> 32), values + kGroupValues);
  };
  if (rate <= 8) {
    return store(std::integral_constant<std::size_t, 1>());
  }
  if constexpr (sizeof(T) == 2) {
    return store(std::integral_constant<std::size_t, 2>());
  } else {
    if (rate <= 16) {
      return store(std::integral_constant<std::size_t, 2>());
    }
    return rate <= 24 ? store(std::integral_constant<std::size_t, 3>())
                      : store(std::integral_constant<std::size_t, 4>());
  }
}

}  // namespace fz::adaptive_bitpack::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
