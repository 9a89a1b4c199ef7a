#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "shared/bits.h"
#include "shared/fp.h"

/// The arithmetic of Interp: fixed point, predictions, bins. Everything between the two conversions
/// is integer arithmetic modulo 2^32, so no order of work can change a bit. SPEC.md has the format.
namespace fz::interp {

/// Values of fixed point are below this; what is not is stored exactly.
inline constexpr double kValueLimit = 0x1p29;
/// A bin has 2^kMaxSubBits units, or fewer where the range would not fit otherwise.
inline constexpr std::uint32_t kMaxSubBits = 8;
/// In a lattice: a place that has no value (missing, or not within kValueLimit).
inline constexpr std::int32_t kNoValue = std::numeric_limits<std::int32_t>::min();
/// Codes stand in blocks.
inline constexpr std::uint32_t kBlockCodes = 64;

FZ_HD std::int32_t wrapMul(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
}

// ---- fixed point

/// How values become fixed point and come back. SPEC: config.
struct Scale {
  double units_per_value = 1.0;
  double value_per_unit = 1.0;
  double origin = 0.0;
  std::uint32_t sub_bits = kMaxSubBits;
};

/// (x - origin) in units, not yet rounded; any bits come of it where x is not finite.
template <class T>
FZ_HD double scaled(T x, const Scale& scale) {
  return fp::mul(fp::sub(static_cast<double>(x), scale.origin), scale.units_per_value);
}
/// Whether a scaled value has a fixed point; false for NaN.
FZ_HD bool isCodable(double scaled_value) {
  return fp::abs(scaled_value) < kValueLimit;
}
/// The nearest integer, ties to even; garbage, but no trap, where it is not codable.
FZ_HD std::int32_t toFixed(double scaled_value) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: the low word is the integer
  return static_cast<std::int32_t>(
      static_cast<std::uint32_t>(fp::bits(fp::add(scaled_value, kShift))));
}
template <class T>
FZ_HD T fromFixed(std::int32_t r, const Scale& scale) {
  return static_cast<T>(
      fp::add(scale.origin, fp::mul(static_cast<double>(r), scale.value_per_unit)));
}

// ---- predictions

enum class Kernel : std::uint8_t { kLinear = 0, kCubic = 1, kNatural = 2 };
inline constexpr std::uint32_t kKernels = 3;

/// Between b and c, which have a and d on their far sides. This form does not overflow where the
/// values are below 2^29; the usual one, 9 (b + c) - a - d, does from 2^26.7 on.
template <Kernel kKernel>
FZ_HD std::int32_t between(std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
  using bits::wrapAdd;
  using bits::wrapSub;
  const std::int32_t t = wrapAdd(wrapAdd(b, c), 1);
  if constexpr (kKernel == Kernel::kLinear) {
    return t >> 1;
  } else {
    const std::int32_t bend = wrapSub(wrapSub(t, a), d);
    const std::int32_t part = kKernel == Kernel::kCubic ? bend >> 3 : wrapMul(bend, 5) >> 5;
    return wrapAdd(t, part) >> 1;
  }
}
FZ_HD std::int32_t between(
    Kernel kernel, std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
  return kernel == Kernel::kLinear  ? between<Kernel::kLinear>(a, b, c, d)
         : kernel == Kernel::kCubic ? between<Kernel::kCubic>(a, b, c, d)
                                    : between<Kernel::kNatural>(a, b, c, d);
}

/// Sets the places -1, n and n + 1 of a line of n values, `step` apart, whose fine lattice has
/// n_fine points: quadratic where an odd point lies inside, linear past the last one.
FZ_HD void setGhosts(std::int32_t* line, std::ptrdiff_t step, std::uint32_t n, bool is_fine_odd) {
  using bits::wrapAdd;
  using bits::wrapSub;
  const auto at = [=](std::ptrdiff_t i) -> std::int32_t& { return line[i * step]; };
  const auto linear = [](std::int32_t near, std::int32_t far) {
    return wrapSub(wrapMul(near, 2), far);
  };
  const auto quadratic = [](std::int32_t near, std::int32_t next, std::int32_t far) {
    return wrapAdd(wrapMul(wrapSub(near, next), 3), far);
  };
  const auto end = static_cast<std::ptrdiff_t>(n);
  if (n == 1) {
    at(-1) = at(1) = at(2) = at(0);
    return;
  }
  at(-1) = n == 2 ? linear(at(0), at(1)) : quadratic(at(0), at(1), at(2));
  at(end) = n == 2 || !is_fine_odd ? linear(at(end - 1), at(end - 2))
                                   : quadratic(at(end - 1), at(end - 2), at(end - 3));
  at(end + 1) = linear(at(end), at(end - 1));
}

/// Weights of the correction by residuals, in eighths. SPEC: weight sets.
inline constexpr std::array<std::array<std::int32_t, 2>, 7> kPairSets = {
    {{8, 8}, {6, 6}, {4, 4}, {2, 2}, {0, 0}, {8, 0}, {0, 8}}};
inline constexpr std::array<std::array<std::int32_t, 6>, 13> kCubeSets = {{
    {8, 8, 8, 8, 8, 8},
    {6, 6, 6, 6, 6, 6},
    {4, 4, 4, 4, 4, 4},
    {0, 0, 0, 0, 0, 0},
    {6, 6, 6, 4, 4, 4},
    {3, 3, 3, 1, 1, 1},
    {4, 4, 4, 0, 0, 0},
    {8, 0, 0, 0, 6, 6},
    {0, 8, 0, 6, 0, 6},
    {0, 0, 8, 6, 6, 0},
    {5, 5, 0, 2, 2, 4},
    {5, 0, 5, 2, 4, 2},
    {0, 5, 5, 4, 2, 2},
}};

/// The correction of a prediction from weighted sums of codes: pairs count twice, fours once.
FZ_HD std::int32_t correction(std::int32_t weighted_sum, std::int32_t bin_units) {
  return wrapMul(weighted_sum, bin_units) >> 5;
}

// ---- bins

/// A bin of some units, and how to divide by it.
struct Bin {
  std::int32_t units = 1;
  std::uint32_t shift = 0;
  std::uint32_t factor = 0;  ///< 0: units are 2^shift
};

/// units: 1 to 256.
FZ_HD Bin makeBin(std::int32_t units) {
  const auto u = static_cast<std::uint32_t>(units);
  const std::uint32_t width = bits::bitWidth(u);
  if ((u & (u - 1)) == 0) {
    return {units, width - 1, 0};
  }
  // The factor is too large by less than units / 2^shift, which is too little for what is below
  // 2^31 to reach the next integer.
  const std::uint32_t shift = 31 + width;
  return {units, shift, static_cast<std::uint32_t>((std::uint64_t{1} << shift) / u + 1)};
}

/// floor((distance + units / 2) / units): the code whose bin is nearest.
template <bool kIsPowerOfTwo>
FZ_HD std::int32_t codeOf(std::int32_t distance, const Bin& bin) {
  const std::int32_t moved = bits::wrapAdd(distance, bin.units >> 1);
  if constexpr (kIsPowerOfTwo) {
    return moved >> bin.shift;
  } else {
    const std::int32_t sign = moved >> 31;
    const auto positive = static_cast<std::uint32_t>(moved ^ sign);
    const std::uint64_t product = std::uint64_t{positive} * bin.factor;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(product >> bin.shift)) ^ sign;
  }
}
FZ_HD std::int32_t codeOf(std::int32_t distance, const Bin& bin) {
  return bin.factor == 0 ? codeOf<true>(distance, bin) : codeOf<false>(distance, bin);
}

/// The nearest code that TCode can hold.
template <class TCode>
FZ_HD std::int32_t clampCode(std::int32_t code) {
  if constexpr (sizeof(TCode) < sizeof(std::int32_t)) {
    constexpr std::int32_t kHigh = (1 << (8 * sizeof(TCode) - 1)) - 1;
    constexpr std::int32_t kLow = -kHigh - 1;
    return code < kLow ? kLow : code > kHigh ? kHigh : code;
  } else {
    return code;
  }
}

/// Units of a bin on a lattice of which `halvings` axes were halved, one by one, of n_axes that
/// have more than one value: all of 2^sub_bits, or with alpha 2^sub_bits / min(1.25^(h / n), 2).
FZ_HD std::int32_t binUnits(std::uint32_t halvings,
                            std::uint32_t n_axes,
                            std::uint32_t sub_bits,
                            bool has_alpha) {
  // floor(256 / 1.25^(k / 6)); 128 from k = 19 on.
  constexpr std::uint8_t kSixths[20] = {0,   246, 237, 228, 220, 212, 204, 197, 190, 183,
                                        176, 170, 163, 157, 152, 146, 141, 136, 131, 128};
  if (!has_alpha || halvings == 0) {
    return std::int32_t{1} << sub_bits;
  }
  const std::uint32_t sixths = halvings * (6 / (n_axes == 0 ? 1 : n_axes));
  const std::int32_t units = kSixths[sixths < 19 ? sixths : 19] >> (kMaxSubBits - sub_bits);
  return units < 1 ? 1 : units;
}

}  // namespace fz::interp
