#pragma once

#include <cstdint>

#include "fused/interp/codec.h"
#include "fz/bound.h"
#include "fz/data_type.h"

/// From bound and range to fixed point, by the same arithmetic on every backend.
namespace fz::interp {

/// What a scan finds of a field.
struct ValueRange {
  double min = 0.0;  ///< of the finite values
  double max = 0.0;
  bool has_finite = false;
  bool has_others = false;
};

/// The scale for a bound. The bound is proved where the scale says so: the distance of every value
/// that has a fixed point from what it comes back as. Elsewhere each value must be tested.
struct Fixing {
  Scale scale;
  bool is_proved = false;
  bool is_complete = false;  ///< every finite value has a fixed point
};

/// NOA: bound times the range; where that is 0, the bound itself.
FZ_HD double resolveBound(double error_bound, ErrorBoundMode mode, double value_base) {
  constexpr double kLargestBound = 0x1p1000;  // so that no step overflows
  const bool is_relative = mode == ErrorBoundMode::NOA && value_base > 0.0;
  const double bound = is_relative ? fp::mul(error_bound, value_base) : error_bound;
  return kLargestBound < bound ? kLargestBound : bound;
}

namespace fixing {

/// What the proof of a bound needs of a type. SPEC: the bound.
struct Resolution {
  double rounding;        ///< error of a value that comes back, relative to its size
  double smallest_bound;  ///< below it, subnormal numbers are in the way
  double largest_value;
};
FZ_HD Resolution resolutionOf(DataType type) {
  if (type == DataType::FLOAT32) {
    return {0x1.00001p-24, 0x1p-120, 0x1p127};
  }
  return {0x1p-49, 0x1p-960, 0x1p1023};
}

/// The next number of at most 29 significant bits, so that products with floats are exact.
FZ_HD double shortened(double x) {
  constexpr std::uint64_t kLowBits = (std::uint64_t{1} << 24) - 1;
  const std::uint64_t bits = fp::bits(x);
  return fp::bitCast<double>((bits & kLowBits) == 0 ? bits : (bits | kLowBits) + 1);
}

FZ_HD bool isInRange(const ValueRange& range, const Scale& scale) {
  return !range.has_finite ||
         (isCodable(scaled(range.min, scale)) && isCodable(scaled(range.max, scale)));
}

FZ_HD double larger(double a, double b) {
  return a < b ? b : a;
}

}  // namespace fixing

/// With some sub-bin bits, and origin 0.
FZ_HD Fixing scaleOf(double bound, const ValueRange& range, DataType type, std::uint32_t sub_bits) {
  const fixing::Resolution resolution = fixing::resolutionOf(type);
  const double largest = fixing::larger(fp::abs(range.min), fp::abs(range.max));
  const double eb = fixing::larger(bound, resolution.smallest_bound);
  // Where rounding would take more than a share of the bound, a bin keeps the rest of it, and what
  // misses the bound is found by tests.
  constexpr double kLargestShare = 0x1p-7;
  const double lost = fp::mul(resolution.rounding, fp::add(largest, eb));
  const double most = fp::mul(kLargestShare, eb);
  const double half = sub_bits == 0 ? 0.0 : fp::mul(0.5, static_cast<double>(1u << sub_bits));
  constexpr double kSlack = 1.0 - 0x1p-20;
  const double unit =
      fp::div(fp::mul(fp::sub(eb, most < lost ? most : lost), kSlack), fp::add(half, 0.5));
  Fixing made;
  made.scale.sub_bits = sub_bits;
  made.scale.units_per_value = fixing::shortened(fp::div(1.0, unit));
  made.scale.value_per_unit = fp::div(1.0, made.scale.units_per_value);
  made.is_proved =
      lost <= most && bound == eb && fp::add(largest, fp::mul(2.0, eb)) < resolution.largest_value;
  made.is_complete = fixing::isInRange(range, made.scale);
  return made;
}

/// The most sub-bin bits with which the range fits; none of it may: then `sub_bits` at least of
/// them, and origin 0.
FZ_HD Fixing makeScale(double bound, const ValueRange& range, DataType type) {
  const double middle = fp::add(fp::mul(0.5, range.min), fp::mul(0.5, range.max));
  const double centre =
      type == DataType::FLOAT32 ? static_cast<double>(static_cast<float>(middle)) : middle;
  for (std::uint32_t sub_bits = kMaxSubBits + 1; sub_bits-- > 0;) {
    Fixing made = scaleOf(bound, range, type, sub_bits);
    if (!made.is_complete) {
      made.scale.origin = centre;
      made.is_complete = fixing::isInRange(range, made.scale);
    }
    if (made.is_complete) {
      return made;
    }
  }
  return scaleOf(bound, range, type, kMaxSubBits);
}

/// The sub-bin bits where not all values can have a fixed point, from how many have with each: an
/// exact value costs more than a few sub-bin bits bring.
FZ_HD std::uint32_t bestSubBits(const std::uint64_t* counts) {
  std::uint32_t best = kMaxSubBits;
  while (best > 0 && counts[best] < counts[0] - counts[0] / 64) {
    --best;
  }
  return best;
}

}  // namespace fz::interp
