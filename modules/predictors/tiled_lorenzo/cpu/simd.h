// Strips of tiles whose rows have four or eight values, straight between rows and tiles, compiled
// once per vector target (hence the odd guard). Include after hwy/highway.h. Empty for the target
// without vectors.
#if defined(FZ_TILED_LORENZO_SIMD_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_TILED_LORENZO_SIMD_H
#undef FZ_TILED_LORENZO_SIMD_H
#else
#define FZ_TILED_LORENZO_SIMD_H
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <hwy/highway.h>

#include "backends/cpu/prefix_sum_inl.h"
#include "predictors/tiled_lorenzo/cpu/rows.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace fz::tiled_lorenzo::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;

// A row of a tile is a piece. A vector of a row has a piece of each of kPieces tiles, and kPieces
// such vectors below each other are a square: the same as one vector of each tile, with pieces
// traded across the diagonal.

template <class U>
using Tag = hn::ScalableTag<U>;
template <class U>
using Vec = hn::Vec<Tag<U>>;
template <class U>
inline constexpr std::size_t kLanes = hn::MaxLanes(Tag<U>());
template <std::uint32_t kEdge, class U>
inline constexpr std::size_t kPieces = kLanes<U> / kEdge;
/// Whether a vector holds a row of a tile.
template <std::uint32_t kEdge, class U>
inline constexpr bool kHoldsRow = kEdge <= kLanes<U>;
/// Whether there are squares: pieces of less than 16 bytes are not traded but stored alone.
template <std::uint32_t kEdge, class U>
inline constexpr bool kHasSquares = kHoldsRow<kEdge, U>&& kEdge * sizeof(U) >= 16;
/// Rows that are worked on together.
template <std::uint32_t kEdge, class U>
inline constexpr std::size_t kRows = kHasSquares<kEdge, U> ? kPieces<kEdge, U> : 1;

/// Whether the strip is such rows, as far as its planes lie in the grid.
template <std::uint32_t kEdge, class U>
bool isOfRows(const Grid& grid, const Strip& strip) {
  return grid.tile.x == kEdge && grid.tile.y % kRows<kEdge, U> == 0 &&
         strip.origin.y + grid.tile.y <= grid.ny;
}

template <class V>
HWY_INLINE void transpose(std::array<V, 1>& /*square*/) {
}
template <class V>
HWY_INLINE void transpose(std::array<V, 2>& square) {
  const hn::DFromV<V> d;
  const V low = hn::ConcatLowerLower(d, square[1], square[0]);
  square[1] = hn::ConcatUpperUpper(d, square[1], square[0]);
  square[0] = low;
}
#if HWY_TARGET <= HWY_AVX3
template <class V>
HWY_INLINE void transpose(std::array<V, 4>& square) {
  std::array<V, 2> top = {square[0], square[1]};
  std::array<V, 2> bottom = {square[2], square[3]};
  transpose(top);
  transpose(bottom);
  for (std::size_t i = 0; i < 2; ++i) {
    square[2 * i] = V{_mm512_shuffle_i32x4(top[i].raw, bottom[i].raw, 0x88)};
    square[2 * i + 1] = V{_mm512_shuffle_i32x4(top[i].raw, bottom[i].raw, 0xDD)};
  }
}
#endif

template <std::uint32_t kEdge, class U>
HWY_INLINE hn::Mask<Tag<U>> firstOfPieces() {
  const Tag<U> d;
  return hn::Eq(hn::And(hn::Iota(d, 0), hn::Set(d, static_cast<U>(kEdge - 1))), hn::Zero(d));
}

/// Every value one place on; what the first of a piece becomes is not said.
template <std::uint32_t kEdge, class U>
HWY_INLINE Vec<U> oneOn(Vec<U> v) {
  const Tag<U> d;
  if constexpr (kEdge * sizeof(U) <= 16) {
    return hn::ShiftLeftLanes<1>(d, v);
  } else {
    alignas(64) static constexpr auto kOneBefore = [] {
      std::array<U, kLanes<U>> from{};
      for (std::size_t i = 1; i < from.size(); ++i) {
        from[i] = static_cast<U>(i - 1);
      }
      return from;
    }();
    return hn::TableLookupLanes(v, hn::SetTableIndices(d, kOneBefore.data()));
  }
}

/// Running sums inside pieces of 32-bit values.
template <std::uint32_t kEdge>
HWY_INLINE Vec<std::uint32_t> sumsOfPieces(Vec<std::uint32_t> v) {
  const Tag<std::uint32_t> d;
#ifdef FZ_HAVE_WIDE_SUMS
  if constexpr (kEdge == 8) {
    return fz::HWY_NAMESPACE::sumsInEights(d, v);
  }
#endif
  v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
  return hn::Add(v, hn::ShiftLeftLanes<2>(d, v));
}

/// Pieces of kEdge values to places `stride` values apart.
template <std::uint32_t kEdge, class D, class U>
HWY_INLINE void storePieces(D d, hn::Vec<D> v, std::size_t stride, U* to) {
  constexpr std::size_t kCount = hn::MaxLanes(D()) / kEdge;
  if constexpr (kCount <= 1) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    storePieces<kEdge>(half, hn::LowerHalf(half, v), stride, to);
    storePieces<kEdge>(half, hn::UpperHalf(half, v), stride, to + kCount / 2 * stride);
  }
}

/// Rows y to y + kRows - 1 of plane z, which lie in the grid, as far as there are whole vectors;
/// returns how many values of each row that are.
template <std::uint32_t kEdge, class U>
HWY_INLINE std::size_t encodeRows(const Grid& grid,
                                  const Strip& strip,
                                  const StripRows& rows,
                                  std::uint32_t y,
                                  std::uint32_t z,
                                  U* tiles) {
  const Tag<U> d;
  const auto is_first = firstOfPieces<kEdge, U>();
  const std::size_t tile_values = grid.tile.values();
  const std::size_t row_step = rows.row_step;  // a store might change what is not our own
  const std::size_t n_values = strip.n_values;
  const Row<U> top = rowAt<U>(grid, strip, rows, y, z);
  U* to = tiles + (z * grid.tile.y + y) * kEdge;
  std::size_t i = 0;
  for (; i + kLanes<U> <= n_values; i += kLanes<U>, to += kPieces<kEdge, U> * tile_values) {
    std::array<Vec<U>, kRows<kEdge, U>> square;
    auto above = top.above == nullptr ? hn::Zero(d) : hn::LoadU(d, top.above + i);
    for (std::size_t k = 0; k < square.size(); ++k) {
      const auto v = hn::LoadU(d, top.row + k * row_step + i);
      square[k] = hn::Sub(v, hn::IfThenElse(is_first, above, oneOn<kEdge, U>(v)));
      above = v;
    }
    if constexpr (kHasSquares<kEdge, U>) {
      transpose(square);
      for (std::size_t k = 0; k < square.size(); ++k) {
        hn::StoreU(square[k], d, to + k * tile_values);
      }
    } else {
      storePieces<kEdge>(d, square[0], tile_values, to);
    }
  }
  return i;
}

/// The way back; squares only.
template <std::uint32_t kEdge>
HWY_INLINE std::size_t decodeRows(const Grid& grid,
                                  const Strip& strip,
                                  const std::uint32_t* tiles,
                                  std::uint32_t y,
                                  std::uint32_t z,
                                  const StripRows& rows) {
  using U = std::uint32_t;
  static_assert(kHasSquares<kEdge, U>);
  const Tag<U> d;
  const auto is_first = firstOfPieces<kEdge, U>();
  const std::size_t tile_values = grid.tile.values();
  const std::size_t row_step = rows.row_step;  // a store might change what is not our own
  const std::size_t n_values = strip.n_values;
  const Row<U> top = rowAt<U>(grid, strip, rows, y, z);
  const U* from = tiles + (z * grid.tile.y + y) * kEdge;
  std::size_t i = 0;
  for (; i + kLanes<U> <= n_values; i += kLanes<U>, from += kPieces<kEdge, U> * tile_values) {
    std::array<Vec<U>, kRows<kEdge, U>> square;
    for (std::size_t k = 0; k < square.size(); ++k) {
      square[k] = hn::LoadU(d, from + k * tile_values);
    }
    transpose(square);
    auto above = top.above == nullptr ? hn::Zero(d) : hn::LoadU(d, top.above + i);
    for (std::size_t k = 0; k < square.size(); ++k) {
      above = hn::Add(square[k], hn::IfThenElseZero(is_first, above));
      hn::StoreU(sumsOfPieces<kEdge>(above), d, top.row + k * row_step + i);
    }
  }
  return i;
}

}  // namespace fz::tiled_lorenzo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
