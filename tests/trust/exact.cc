#include <array>
#include <cmath>

#include "trust/exact_f64.h"

namespace fz::trust {

namespace {

/// A number that is not negative, as a whole multiple of 2^-2200; holds every product of two
/// doubles.
class Fixed {
 public:
  /// mantissa * 2^exponent.
  Fixed(unsigned __int128 mantissa, int exponent) {
    const int first_bit = exponent + kPoint;
    const auto place = static_cast<std::size_t>(first_bit);
    for (std::size_t bit = 0; bit < 128; ++bit) {
      if ((mantissa >> bit & 1) != 0) {
        limbs_[(place + bit) / 64] |= std::uint64_t{1} << ((place + bit) % 64);
      }
    }
  }

  bool operator<=(const Fixed& other) const {
    for (std::size_t i = limbs_.size(); i-- > 0;) {
      if (limbs_[i] != other.limbs_[i]) {
        return limbs_[i] < other.limbs_[i];
      }
    }
    return true;
  }

  Fixed plus(const Fixed& other) const {
    Fixed sum = *this;
    unsigned __int128 carry = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
      carry += static_cast<unsigned __int128>(limbs_[i]) + other.limbs_[i];
      sum.limbs_[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    return sum;
  }

  /// |this - other|.
  Fixed distance(const Fixed& other) const {
    if (!(other <= *this)) {
      return other.distance(*this);
    }
    Fixed difference = *this;
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
      const std::uint64_t taken = limbs_[i] - other.limbs_[i];
      difference.limbs_[i] = taken - borrow;
      borrow = (limbs_[i] < other.limbs_[i] || taken < borrow) ? 1 : 0;
    }
    return difference;
  }

 private:
  static constexpr int kPoint = 2200;
  std::array<std::uint64_t, 72> limbs_ = {};
};

struct Parts {
  std::uint64_t mantissa;
  int exponent;
};

Parts partsOf(double x) {
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent);
  return {static_cast<std::uint64_t>(std::ldexp(fraction, 53)), exponent - 53};
}

Fixed magnitude(double x) {
  Parts p = partsOf(x);
  // frexp gives denormals an exponent below that of their last bit.
  while (p.exponent < -1074) {
    p.mantissa >>= 1;
    ++p.exponent;
  }
  return Fixed(p.mantissa, p.exponent);
}

}  // namespace

bool keepsByIntegers(double x, double y, double bound, bool relative) {
  if (fp::bits(x) == fp::bits(y)) {
    return true;
  }
  if (!fp::isFinite(x) || !fp::isFinite(y)) {
    return false;
  }
  const bool same_sign = std::signbit(x) == std::signbit(y);
  const Fixed error =
      same_sign ? magnitude(x).distance(magnitude(y)) : magnitude(x).plus(magnitude(y));
  if (!relative) {
    return error <= magnitude(bound);
  }
  const Parts a = partsOf(bound);
  const Parts b = partsOf(x);
  return error <=
         Fixed(static_cast<unsigned __int128>(a.mantissa) * b.mantissa, a.exponent + b.exponent);
}

}  // namespace fz::trust
