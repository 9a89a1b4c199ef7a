#pragma once

#include "trust/exact.h"

/// The exact check for doubles, and the one by integers; for the host alone.
namespace fz::trust {

inline bool keepsAbsolute(double x, double y, double bound) {
  if (fp::bits(x) == fp::bits(y)) {
    return true;
  }
  if (!fp::isFinite(x) || !fp::isFinite(y)) {
    return false;
  }
  const detail::Difference<__float128> d(x, y);
  return d.hi < bound || (d.hi == bound && d.lo <= 0);
}

inline bool keepsRelative(double x, double y, double bound) {
  if (fp::bits(x) == fp::bits(y)) {
    return true;
  }
  if (!fp::isFinite(x) || !fp::isFinite(y)) {
    return false;
  }
  const detail::Difference<__float128> d(x, y);
  const __float128 allowed = static_cast<__float128>(bound) * fp::abs(x);  // 106 of 113 bits
  return d.hi < allowed || (d.hi == allowed && d.lo <= 0);
}

/// The same by integers of 4,608 bits: slow, and beyond doubt. The bound is bound * |x| with
/// `relative`.
bool keepsByIntegers(double x, double y, double bound, bool relative);

}  // namespace fz::trust
