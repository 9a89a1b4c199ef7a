#pragma once

#include <cstdint>
#include <type_traits>

#include "shared/bits.h"
#include "shared/fp.h"
#include "shared/host_device.h"

/// ABS and NOA: uniform bins of width `step`, code q, decoded value q * step in the data's type.
/// A bin is taken only when the decoder's own product keeps the bound; see SPEC.md.
namespace fz::quantizer {

/// How a bin number becomes a code, and what happens to a value without one.
enum class CodeForm : std::uint8_t {
  kTwosComplement,  ///< q; others go to the outlier lists, with code 0
  kZigzag,          ///< zigzag(q); others as above
  kInplace,         ///< zigzag(q); others are their own bits
  kLinear,          ///< q over the whole range of the code; there is no place for others
};

/// Everything that decides the bin of one value. Made by makeBinRule.
///
/// For f32 the first try is in f32. Its check is exact: with b = step / 2 and b <= bound < 2b,
/// |x - back| could only be rounded where |x| < |back| / 2 (else Sterbenz applies); then either
/// |back| >= 4b and the difference exceeds 2b > bound, rounded or not, or |back| = 2b and |x| < b,
/// for which fl(x * inv_step) <= 1/2 and the bin is 0, not 1. And since the difference is an f32
/// number, comparing with the bound rounded down to f32 is comparing with the bound itself.
/// A refused value gets a second try in f64, where the product x * inv_step keeps more bits.
template <class T>
struct BinRule {
  T inv_step;
  T step;
  T bound;  ///< f32: the bound rounded down; f64: the bound
  T reach;  ///< |x * inv_step| must be below, so that rounding to an integer is exact
  T lower;  ///< bins must lie strictly between lower and upper
  T upper;
  T threshold;  ///< |x| must be below
  double wide_inv_step;
  double wide_bound;
  double wide_reach;
  double wide_lower;
  double wide_upper;
};

/// Largest bound in use: its double and the reciprocal of that are still normal numbers.
template <class T>
FZ_HD constexpr double maxBoundInUse() {
  return std::is_same_v<T, float> ? 0x1p125 : 0x1p1021;
}

/// Largest float that is not above v. Precondition: v finite and >= 0.
FZ_HD float roundDownToFloat(double v) {
  constexpr double kMax = 0x1.fffffep127;
  const float nearest = static_cast<float>(v < kMax ? v : kMax);
  const bool above = static_cast<double>(nearest) > v;
  return fp::bitCast<float>(fp::bits(nearest) - (above ? 1u : 0u));
}

/// Smallest float that is not below v; infinity above the largest. Precondition: v >= 0.
FZ_HD float roundUpToFloat(double v) {
  constexpr double kMax = 0x1.fffffep127;
  if (v > kMax) {
    return fp::bitCast<float>(0x7f800000u);
  }
  const float nearest = static_cast<float>(v);
  const bool below = static_cast<double>(nearest) < v;
  return fp::bitCast<float>(fp::bits(nearest) + (below ? 1u : 0u));
}

template <class T>
FZ_HD T roundDownTo(double v) {
  if constexpr (std::is_same_v<T, float>) {
    return roundDownToFloat(v);
  } else {
    return v;
  }
}

/// 1 / step, or the largest number of the type where that would be infinite: zeros then still have
/// bin 0 and everything else is out of reach.
FZ_HD float reciprocal(float step) {
  constexpr float kMax = 0x1.fffffep127f;
  const float r = step > 0.0f ? fp::div(1.0f, step) : kMax;
  return r < kMax ? r : kMax;
}
FZ_HD double reciprocal(double step) {
  constexpr double kMax = 0x1.fffffffffffffp1023;
  const double r = step > 0.0 ? fp::div(1.0, step) : kMax;
  return r < kMax ? r : kMax;
}

struct BinSettings {
  double bound_in_use;  ///< half the step; a number of the data's type
  double bound;         ///< what the check keeps
  double threshold;
  std::uint32_t radius;
  CodeForm form;
  std::uint32_t code_bits;
};

template <class T>
FZ_HD BinRule<T> makeBinRule(const BinSettings& s) {
  const bool linear = s.form == CodeForm::kLinear;
  const double radius = linear ? static_cast<double>(std::uint64_t{1} << (s.code_bits - 1))
                               : static_cast<double>(s.radius);
  BinRule<T> rule{};
  const T half = static_cast<T>(s.bound_in_use);
  rule.step = fp::mul(T{2}, half);
  rule.inv_step = reciprocal(rule.step);
  rule.bound = roundDownTo<T>(s.bound);
  rule.wide_inv_step = reciprocal(fp::mul(2.0, s.bound_in_use));
  rule.wide_bound = s.bound;
  rule.wide_reach = radius + 1.0;
  rule.wide_lower = linear ? -radius - 1.0 : -radius;
  rule.wide_upper = radius;
  constexpr double kExact = std::is_same_v<T, float> ? 0x1p22 : 0x1p51;  // fp::roundEven's range
  rule.reach = static_cast<T>(rule.wide_reach < kExact ? rule.wide_reach : kExact);
  rule.lower = static_cast<T>(rule.wide_lower);
  rule.upper = static_cast<T>(rule.wide_upper);
  if constexpr (std::is_same_v<T, float>) {
    rule.threshold = roundUpToFloat(s.threshold);
  } else {
    rule.threshold = s.threshold;
  }
  return rule;
}

FZ_HD bool keepsBound(float x, float back, float bound) {
  return fp::abs(fp::sub(x, back)) <= bound;
}
FZ_HD bool keepsBound(double x, double back, double bound) {
  return fp::withinBound(x, back, bound);
}

/// Bin of x in the data's own arithmetic; true when it may be used. No branches.
template <class T>
FZ_HD bool tryBin(T x, const BinRule<T>& rule, std::int32_t& bin) {
  const T scaled = fp::mul(x, rule.inv_step);
  const bool near = fp::abs(scaled) < rule.reach;  // NaN and infinities fail
  const T q = fp::roundEven(near ? scaled : T{0});
  const bool kept = keepsBound(x, fp::mul(q, rule.step), rule.bound);
  const bool small = fp::abs(x) < rule.threshold;
  const bool ok = near & kept & small & (q > rule.lower) & (q < rule.upper);
  bin = static_cast<std::int32_t>(ok ? q : T{0});
  return ok;
}

/// What fastBin must look at besides the bound.
enum class FastCheck : std::uint8_t {
  kReach,  ///< linear codes of 32 bits for f32: every bin within reach is a code
  kRange,  ///< other linear codes: every bin between the limits is within reach
  kAll,    ///< everything, the threshold too
  kLimit,  ///< rule.reach is fastLimit(), which covers all
  kBound,  ///< nothing: the caller looks at the reach
};

/// A reach for kLimit: bins of values within it are between the limits, and the values below the
/// threshold (the factor covers the rounding of both products). Not for linear codes.
template <class T>
FZ_HD T fastLimit(const BinRule<T>& rule) {
  const T inside = fp::sub(rule.upper, T(0.5));
  const T below = fp::mul(fp::mul(rule.threshold, rule.inv_step), T(0.9999));
  const T nearer = inside < rule.reach ? inside : rule.reach;
  return below < nearer ? below : nearer;
}

/// tryBin with fewer instructions: true only where tryBin is true, with the same bin; false also
/// where it is not sure (f64: a difference that equals the bound after rounding). Rounding by the
/// shift leaves the bin in the low bits of the shifted number.
template <FastCheck kCheck, class T>
FZ_HD bool fastBin(T x, const BinRule<T>& rule, std::int32_t& bin) {
  constexpr bool kIsFloat = std::is_same_v<T, float>;
  constexpr T kShift = static_cast<T>(kIsFloat ? 0x1.8p23 : 0x1.8p52);
  const T scaled = fp::mul(x, rule.inv_step);
  const T shifted = fp::add(scaled, kShift);
  const T q = fp::sub(shifted, kShift);
  const T error = fp::abs(fp::sub(x, fp::mul(q, rule.step)));
  bin = static_cast<std::int32_t>(static_cast<std::uint32_t>(fp::bits(shifted)) -
                                  static_cast<std::uint32_t>(fp::bits(kShift)));
  bool ok = kIsFloat ? error <= rule.bound : error < rule.bound;  // NaN and infinities fail
  if constexpr (kCheck == FastCheck::kLimit) {
    return ok & (fp::abs(scaled) < rule.reach);
  }
  if constexpr (kCheck == FastCheck::kBound) {
    return ok;
  }
  if constexpr (kCheck != FastCheck::kRange) {
    ok = ok & (fp::abs(scaled) < rule.reach);
  }
  if constexpr (kCheck != FastCheck::kReach) {
    ok = ok & (q > rule.lower) & (q < rule.upper);
  }
  if constexpr (kCheck == FastCheck::kAll) {
    ok = ok & (fp::abs(x) < rule.threshold);
  }
  return ok;
}

/// Second try for f32. The f64 difference of two f32 numbers is exact unless their exponents are
/// more than 29 apart, and then it is far above or far below any bound that a bin could meet.
FZ_HD bool tryBinWide(float x, const BinRule<float>& rule, std::int32_t& bin) {
  const double value = static_cast<double>(x);
  const double scaled = fp::mul(value, rule.wide_inv_step);
  const bool near = fp::abs(scaled) < rule.wide_reach;
  const double q = fp::roundEven(near ? scaled : 0.0);
  const double back = static_cast<double>(fp::mul(static_cast<float>(q), rule.step));
  const bool kept = fp::abs(fp::sub(value, back)) <= rule.wide_bound;
  const bool small = fp::abs(x) < rule.threshold;
  const bool ok = near & kept & small & (q > rule.wide_lower) & (q < rule.wide_upper);
  bin = static_cast<std::int32_t>(ok ? q : 0.0);
  return ok;
}

/// The bin of x: false when it has none.
template <class T>
FZ_HD bool findBin(T x, const BinRule<T>& rule, std::int32_t& bin) {
  bool ok = tryBin(x, rule, bin);
  if constexpr (std::is_same_v<T, float>) {
    if (!ok) {
      ok = tryBinWide(x, rule, bin);
    }
  }
  return ok;
}

template <class C>
FZ_HD C codeOf(std::int32_t bin, bool zigzag) {
  using S = std::make_signed_t<C>;
  return zigzag ? static_cast<C>(bits::zigzag(static_cast<S>(bin))) : static_cast<C>(bin);
}

template <class C>
FZ_HD std::int32_t binOf(C code, bool zigzag) {
  return zigzag ? static_cast<std::int32_t>(bits::unzigzag(code))
                : static_cast<std::int32_t>(static_cast<std::make_signed_t<C>>(code));
}

template <class T>
FZ_HD T decodeBin(std::int32_t bin, T step) {
  return fp::mul(static_cast<T>(bin), step);
}

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// In place, a code whose upper part reaches the radius is the value's own bits.
template <class C>
FZ_HD bool isRawBits(C code, std::uint32_t radius) {
  return static_cast<std::uint32_t>(code >> 1) >= radius;
}

/// Linear, policy Wrap: the low bits of the nearest integer where that is below 2^62, else 0.
template <class T, class C>
FZ_HD C wrappedCode(T x, const BinRule<T>& rule) {
  const double scaled = fp::mul(static_cast<double>(x), rule.wide_inv_step);
  const double size = fp::abs(scaled);
  if (!(size < 0x1p62)) {
    return 0;
  }
  const double q = size < 0x1p52 ? fp::sub(fp::add(size, 0x1p52), 0x1p52) : size;
  const auto magnitude = static_cast<std::uint64_t>(q);
  return static_cast<C>(scaled < 0.0 ? std::uint64_t{0} - magnitude : magnitude);
}

/// One tile: codes, and for each value whether it was refused (and so is an outlier or, in place
/// and linear, left to the binding). C is the unsigned type of the code's width.
template <class Team, class T, class C>
FZ_HD void encodeTile(Team team,
                      const T* in,
                      std::uint32_t n,
                      const BinRule<T>& rule,
                      CodeForm form,
                      C* codes,
                      std::uint8_t* refused) {
  const bool zigzag = form == CodeForm::kZigzag || form == CodeForm::kInplace;
  team.each(n, [=](std::uint32_t i) {
    std::int32_t bin = 0;
    const bool ok = findBin(in[i], rule, bin);
    codes[i] = codeOf<C>(bin, zigzag);
    refused[i] = ok ? 0 : 1;
  });
}

template <class Team, class T, class C>
FZ_HD void decodeTile(Team team, const C* codes, std::uint32_t n, T step, bool zigzag, T* out) {
  team.each(n, [=](std::uint32_t i) { out[i] = decodeBin<T>(binOf(codes[i], zigzag), step); });
}

}  // namespace fz::quantizer
