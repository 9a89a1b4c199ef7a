#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "quantizers/quantizer/codec.h"
#include "shared/bits.h"
#include "shared/fp.h"
#include "shared/host_device.h"

/// ABS and NOA: from the settings (and the range of the data) to the bound in use. See SPEC.md.
namespace fz::quantizer {

/// Bit patterns mapped to integers of the same order, so NaN and the two zeros cannot make the
/// result depend on the order of the comparisons.
template <class T>
struct Ordered {
  using U = BitsOf<T>;
  using S = std::make_signed_t<U>;
  static constexpr S kMax = std::numeric_limits<S>::max();
  static constexpr S kMin = std::numeric_limits<S>::min();
  static constexpr S kExponent =
      static_cast<S>(__builtin_bit_cast(U, std::numeric_limits<T>::infinity()));

  FZ_HD static bool isFinite(S b) { return (b & kMax) < kExponent; }
  /// Its own inverse.
  FZ_HD static S map(S b) { return b < 0 ? static_cast<S>(b ^ kMax) : b; }
  FZ_HD static double value(S ordered) {
    return static_cast<double>(__builtin_bit_cast(T, map(ordered)));
  }
};

/// Difference of the smallest and the largest finite value, or 0 when there is none.
FZ_HD double rangeBetween(double low, double high) {
  constexpr double kLargest = 0x1.fffffffffffffp1023;
  const double range = low < high ? fp::sub(high, low) : 0.0;
  return range < kLargest ? range : kLargest;
}

/// The steps of policy Guarantee; every other policy knows rung 0 only.
inline constexpr unsigned kLastRung = 3;
inline constexpr unsigned kRungs = kLastRung + 1;

/// Largest power of two that is not above v. Precondition: v > 0 and finite.
FZ_HD double powerOfTwoBelow(double v) {
  const std::uint64_t u = fp::bits(v);
  if (u >> 52 != 0) {
    return fp::bitCast<double>(u & 0x7ff0000000000000ull);
  }
  return fp::bitCast<double>(std::uint64_t{1} << (bits::bitWidth(u) - 1));
}

/// What every value is checked against. `range` is 0 where it does not count.
FZ_HD double absoluteBound(double error_bound, double range, bool is_float) {
  const double largest = is_float ? maxBoundInUse<float>() : maxBoundInUse<double>();
  const double bound = range > 0.0 ? fp::mul(error_bound, range) : error_bound;
  return bound < largest ? bound : largest;
}

/// Half the step on a rung of the ladder, a number of the data's type.
FZ_HD double boundOfRung(double absolute, bool guarantee, unsigned rung, bool is_float) {
  double wanted = absolute;
  if (guarantee && absolute > 0.0) {
    wanted = rung == 0   ? fp::mul(absolute, 1.0 - 0x1p-8)
             : rung == 1 ? fp::mul(absolute, 1.0 - 0x1p-4)
             : rung == 2 ? fp::mul(absolute, 1.0 - 0x1p-2)
                         : powerOfTwoBelow(absolute);
  }
  return is_float ? static_cast<double>(roundDownToFloat(wanted)) : wanted;
}

/// For the f32 fields of the config: the nearest float, the largest one beyond the range of f32,
/// where the conversion would be undefined. Infinity stays infinity.
FZ_HD float nearestFloat(double v) {
  constexpr double kMax = 0x1.fffffep127;
  return static_cast<float>(v > kMax && fp::isFinite(v) ? kMax : v);
}

}  // namespace fz::quantizer
