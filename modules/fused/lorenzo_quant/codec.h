#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "shared/bits.h"
#include "shared/fp.h"
#include "shared/fp_fused.h"
#include "shared/host_device.h"

/// The arithmetic of LorenzoQuant, shared by all backends; SPEC.md has the layout.
namespace fz::lorenzo_quant {

inline constexpr std::uint64_t kMaxValues = 0xffffffffu;  // u32 in the config

inline constexpr std::uint16_t kVersionWithExactValues = 2;
inline constexpr std::uint16_t kVersionWithAxes = 3;  // the config says which are left out
/// Streams say by their version what older readers do not know.
FZ_HD std::uint16_t versionFor(std::uint64_t n_exact, std::uint32_t left_out = 0) {
  return left_out != 0  ? kVersionWithAxes
         : n_exact != 0 ? kVersionWithExactValues
                        : std::uint16_t{1};
}

/// Integers and constants that go with an input type.
template <class T>
struct Number;
template <>
struct Number<float> {
  using Int = std::int32_t;
  using Word = std::uint32_t;
  static constexpr int kExactBits = 24;
  static constexpr float kUnitShift = 8388608.0f;  // 2^23: above it a float has no fraction
};
template <>
struct Number<double> {
  using Int = std::int64_t;
  using Word = std::uint64_t;
  static constexpr int kExactBits = 53;
  static constexpr double kUnitShift = 4503599627370496.0;  // 2^52
};
template <class T>
using IntOf = typename Number<T>::Int;

/// What quantisation and reconstruction need; made once on the host.
template <class T>
struct Step {
  T bound;     ///< always a number that float can hold, because the config stores a float
  T step;      ///< 2 * bound
  T inv_step;  ///< 1 / step; may be infinite, then no value is usable
  T limit;     ///< bins below this have deltas that T holds exactly
  T slack;     ///< see NearBins; not a number where 1 / step is none
};

template <class T>
FZ_HD Step<T> makeStep(float bound, int ndim) {
  const T b = static_cast<T>(bound);
  const T step = fp::mul(T{2}, b);
  const T limit = static_cast<T>(std::int64_t{1} << (Number<T>::kExactBits - ndim));
  const T inv_step = fp::div(T{1}, step);
  constexpr T kHalfUnit = T(0.5) / Number<T>::kUnitShift;
  const T error = fp::add(fp::abs(fp::mulAdd(inv_step, step, T{-1})), kHalfUnit);
  // So large a step that a bin times it could be infinite: never near.
  const T slack = step < T(0x1p100) ? fp::mul(error, T(1.001)) : T{1};
  return {b, step, inv_step, limit, slack};
}

inline constexpr double kLargestFloat = std::numeric_limits<float>::max();
/// Twice this is still a finite float.
inline constexpr double kLargestBound = kLargestFloat / 2;

/// Largest float that is not above x and whose double is finite; x >= 0.
FZ_HD float floatNotAbove(double x) {
  const auto nearest = static_cast<float>(x < kLargestBound ? x : kLargestBound);
  const bool above = static_cast<double>(nearest) > x;
  return above ? fp::bitCast<float>(fp::bits(nearest) - 1) : nearest;
}

/// Nearest float; the largest one for anything beyond.
FZ_HD float toFloatSaturated(double x) {
  return static_cast<float>(x < kLargestFloat ? x : kLargestFloat);
}

/// The bound in use and the base, as the config stores them.
struct ResolvedBound {
  float bound;
  float base;
};

/// NOA and REL: the bound is a multiple of the base; without one it is the multiple itself.
FZ_HD ResolvedBound resolveBound(double error_bound, double base) {
  return {floatNotAbove(base > 0.0 ? fp::mul(error_bound, base) : error_bound),
          toFloatSaturated(base)};
}

/// 1 where |x - y| <= bound on the real numbers, else 0: the two-sum of fp::withinBound in T. No
/// branches and no conditions on floats but comparisons, so that loops over it become vector code.
template <class T>
FZ_HD typename Number<T>::Word isWithin(T x, T y, T bound) {
  using Word = typename Number<T>::Word;
  constexpr Word kSign = Word{1} << (8 * sizeof(T) - 1);
  const T diff = fp::sub(x, y);
  const T y_part = fp::sub(x, diff);
  const T x_part = fp::add(diff, y_part);
  const T rest = fp::add(fp::sub(x, x_part), fp::sub(y_part, y));
  const T magnitude = fp::abs(diff);
  const T signed_rest = fp::bitCast<T>(fp::bits(rest) ^ (fp::bits(diff) & kSign));
  return Word{magnitude < bound} | (Word{magnitude == bound} & Word{signed_rest <= T{0}});
}

/// A value on the grid of the step. Not usable: no bin reproduces it within the bound; it counts
/// as bin 0 in the prediction and is stored as it is.
template <class T>
struct Bin {
  IntOf<T> value;
  typename Number<T>::Word usable;  ///< 1 or 0
};

/// Nearest bin, halves away from zero. Never traps, for any bit pattern.
template <class T>
FZ_HD Bin<T> quantize(T x, const Step<T>& s) {
  using Word = typename Number<T>::Word;
  constexpr T kShift = Number<T>::kUnitShift;
  // On |x|, which rounds as x does; the sign comes last.
  const T ax = fp::abs(x);
  const T scaled = fp::mul(ax, s.inv_step);
  const T even = fp::sub(fp::add(scaled, kShift), kShift);  // nearest, halves to even
  const Word is_half_down{fp::sub(scaled, even) >= T(0.5)};
  const T rounded = fp::add(even, fp::bitCast<T>(fp::bits(T{1}) & (Word{0} - is_half_down)));
  const T back = fp::mul(rounded, s.step);
  const Word usable =
      Word{scaled < s.limit} & Word{rounded < s.limit} & isWithin(ax, back, s.bound);
  // Adding 2^(p-1) puts an integer below it into the low bits of the significand.
  const Word magnitude = fp::bits(fp::add(rounded, kShift)) - fp::bits(kShift);
  const Word sign = Word{0} - (fp::bits(x) >> (8 * sizeof(T) - 1));
  const Word value = ((magnitude ^ sign) - sign) & (Word{0} - usable);
  return {static_cast<IntOf<T>>(value), usable};
}

/// True iff the delta has a code; otherwise it is a range outlier.
template <class Int>
FZ_HD bool hasCode(Int delta, Int radius) {
  return static_cast<bool>(static_cast<int>(delta < radius) & static_cast<int>(delta > -radius));
}

template <class TCode, class Int>
FZ_HD TCode toCode(Int delta, bool zigzag) {
  const auto narrow = static_cast<std::make_signed_t<TCode>>(delta);
  return zigzag ? bits::zigzag(narrow) : static_cast<TCode>(narrow);
}

template <class Int, class TCode>
FZ_HD Int fromCode(TCode code, bool zigzag) {
  return static_cast<Int>(zigzag ? bits::unzigzag(code)
                                 : static_cast<std::make_signed_t<TCode>>(code));
}

/// Extents; one dimension has x only.
struct Grid {
  std::uint64_t nx = 0;
  std::uint64_t ny = 1;
  std::uint64_t nz = 1;
  int ndim = 1;
};

/// Tile edges by dimensionality; part of the format.
FZ_HD std::uint32_t tileEdge(int ndim) {
  return ndim == 1 ? 1024u : (ndim == 2 ? 32u : 8u);
}
inline constexpr std::uint32_t kMaxTileValues = 1024;

/// A tile, clipped at the end of the grid. Values inside are numbered x fastest.
struct Tile {
  std::uint64_t x, y, z;
  std::uint32_t wx, wy, wz;
  FZ_HD std::uint32_t size() const { return wx * wy * wz; }
};

FZ_HD std::uint64_t tileCount(const Grid& grid) {
  const std::uint64_t edge = tileEdge(grid.ndim);
  return bits::ceilDiv(grid.nx, edge) * (grid.ndim > 1 ? bits::ceilDiv(grid.ny, edge) : 1) *
         (grid.ndim > 2 ? bits::ceilDiv(grid.nz, edge) : 1);
}

FZ_HD Tile tileAt(const Grid& grid, std::uint64_t index) {
  const std::uint64_t edge = tileEdge(grid.ndim);
  const std::uint64_t tiles_x = bits::ceilDiv(grid.nx, edge);
  const std::uint64_t tiles_y = grid.ndim > 1 ? bits::ceilDiv(grid.ny, edge) : 1;
  const std::uint64_t x = index % tiles_x * edge;
  const std::uint64_t y = index / tiles_x % tiles_y * edge;
  const std::uint64_t z = index / tiles_x / tiles_y * edge;
  const auto clip = [edge](std::uint64_t at, std::uint64_t extent) {
    return static_cast<std::uint32_t>(extent - at < edge ? extent - at : edge);
  };
  return {x, y, z, clip(x, grid.nx), clip(y, grid.ny), clip(z, grid.nz)};
}

/// Linear index in the grid of value i of a tile.
FZ_HD std::uint64_t linearIndex(const Grid& grid, const Tile& tile, std::uint32_t i) {
  const std::uint64_t x = tile.x + i % tile.wx;
  const std::uint64_t y = tile.y + i / tile.wx % tile.wy;
  const std::uint64_t z = tile.z + i / tile.wx / tile.wy;
  return (z * grid.ny + y) * grid.nx + x;
}

/// Bins of a tile; `in` is the whole field, `bins` holds tile.size() values.
template <class T, class Team>
FZ_HD void binTile(Team team,
                   const Grid& grid,
                   const Tile& tile,
                   const T* in,
                   const Step<T>& step,
                   IntOf<T>* bins) {
  team.each(tile.size(), [&](std::uint32_t i) {
    bins[i] = quantize(in[linearIndex(grid, tile, i)], step).value;
  });
  team.sync();
}

/// Delta of value i against its neighbours; those outside the tile count as 0. Axes whose bits are
/// set in left_out (x, y and z from bit 0 on) are not looked along.
template <class Int>
FZ_HD Int deltaAt(const Tile& tile, const Int* bins, std::uint32_t i, std::uint32_t left_out = 0) {
  const std::uint32_t x = i % tile.wx;
  const std::uint32_t y = i / tile.wx % tile.wy;
  const std::uint32_t z = i / tile.wx / tile.wy;
  Int delta = 0;
  for (std::uint32_t corner = 0; corner < 8; ++corner) {
    const std::uint32_t dx = corner & 1u;
    const std::uint32_t dy = corner >> 1 & 1u;
    const std::uint32_t dz = corner >> 2;
    if (dx <= x && dy <= y && dz <= z && (corner & left_out) == 0) {
      const Int bin = bins[i - dx - (dy + dz * tile.wy) * tile.wx];
      delta = (dx + dy + dz) % 2 == 0 ? bits::wrapAdd(delta, bin) : bits::wrapSub(delta, bin);
    }
  }
  return delta;
}

/// Turns the deltas of a tile into bins, in place: running sums along x, y and z, modulo 2^W, but
/// for the axes that are left out.
template <class Int, class Team>
FZ_HD void sumTile(Team team, const Tile& tile, Int* values, std::uint32_t left_out = 0) {
  const auto sums = [values](std::uint32_t first, std::uint32_t stride, std::uint32_t n) {
    for (std::uint32_t i = 1; i < n; ++i) {
      values[first + i * stride] =
          bits::wrapAdd(values[first + i * stride], values[first + (i - 1) * stride]);
    }
  };
  const std::uint32_t plane = tile.wx * tile.wy;
  if ((left_out & 1u) == 0) {
    team.each(tile.wy * tile.wz, [&](std::uint32_t i) { sums(i * tile.wx, 1, tile.wx); });
    team.sync();
  }
  if ((left_out & 2u) == 0) {
    team.each(tile.wx * tile.wz,
              [&](std::uint32_t i) { sums(i / tile.wx * plane + i % tile.wx, tile.wx, tile.wy); });
    team.sync();
  }
  if ((left_out & 4u) == 0) {
    team.each(plane, [&](std::uint32_t i) { sums(i, plane, tile.wz); });
    team.sync();
  }
}

template <class T>
FZ_HD T reconstruct(IntOf<T> bin, T step) {
  return fp::mul(static_cast<T>(bin), step);
}

/// The same for sums in double. What is not a number gets one bit pattern, since machines differ.
template <class T>
FZ_HD T reconstructWide(double sum, T step) {
  using Word = typename Number<T>::Word;
  constexpr auto kQuietNan = static_cast<Word>(sizeof(T) == 4 ? 0x7fc00000u : 0x7ff8000000000000u);
  const T value = fp::mul(static_cast<T>(sum), step);
  return value == value ? value : fp::bitCast<T>(kQuietNan);
}

}  // namespace fz::lorenzo_quant
