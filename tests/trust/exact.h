#pragma once

#include <cmath>
#include <cstdint>

#include "shared/fp.h"
#include "shared/host_device.h"

/// Whether a decoded value keeps its bound, decided on the real numbers. Written apart from the
/// library's own check, and compared with plain integers by the goal R5.
///
/// Rounding is monotone: if the rounded difference is below the bound, so is the true one, and
/// if it is above, so is the true one. Only where both round to the same number do the exact
/// rests decide. Compile with contraction off.
namespace fz::trust {

namespace detail {

/// hi + lo, exactly |x - y|; R must hold x and y.
template <class R>
struct Difference {
  R hi;
  R lo;

  FZ_HD Difference(R x, R y) {
    const R diff = x - y;
    const R y_part = x - diff;
    const R x_part = diff + y_part;
    const R rest = (x - x_part) + (y_part - y);
    hi = diff < R{0} ? -diff : diff;
    lo = diff < R{0} ? -rest : rest;
  }
};

}  // namespace detail

/// |x - y| <= bound, or x and y have the same bits.
FZ_HD bool keepsAbsolute(float x, float y, double bound) {
  if (fp::bits(x) == fp::bits(y)) {
    return true;
  }
  if (!fp::isFinite(x) || !fp::isFinite(y)) {
    return false;
  }
  const detail::Difference<double> d(static_cast<double>(x), static_cast<double>(y));
  return d.hi < bound || (d.hi == bound && d.lo <= 0.0);
}

/// |x - y| <= bound * |x|, or x and y have the same bits.
FZ_HD bool keepsRelative(float x, float y, double bound) {
  if (fp::bits(x) == fp::bits(y)) {
    return true;
  }
  if (!fp::isFinite(x) || !fp::isFinite(y)) {
    return false;
  }
  const detail::Difference<double> d(static_cast<double>(x), static_cast<double>(y));
  const double size = fp::abs(static_cast<double>(x));
  const double allowed = bound * size;
  const double rest = fma(bound, size, -allowed);  // exact: bound has at most 53 bits
  return d.hi < allowed || (d.hi == allowed && d.lo <= rest);
}

/// The same for doubles with doubles alone, for devices; the host has a wider type (exact_f64.h).
/// A difference that overflows is above every bound.
FZ_HD bool keepsAbsolute64(double x, double y, double bound) {
  if (fp::bits(x) == fp::bits(y)) {
    return true;
  }
  if (!fp::isFinite(x) || !fp::isFinite(y)) {
    return false;
  }
  const detail::Difference<double> d(x, y);
  return d.hi < bound || (d.hi == bound && d.lo <= 0.0);
}

/// For bounds from 2^-400 to 1: there the product neither overflows nor, after scaling, loses its
/// rest.
FZ_HD bool keepsRelative64(double x, double y, double bound) {
  if (fp::bits(x) == fp::bits(y)) {
    return true;
  }
  if (!fp::isFinite(x) || !fp::isFinite(y)) {
    return false;
  }
  const double scale = fp::abs(x) < 0x1p-500 ? 0x1p500 : 1.0;
  const detail::Difference<double> d(x * scale, y * scale);
  const double size = fp::abs(x * scale);
  const double allowed = bound * size;
  const double rest = fma(bound, size, -allowed);
  return d.hi < allowed || (d.hi == allowed && d.lo <= rest);
}

}  // namespace fz::trust
