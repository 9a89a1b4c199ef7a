#pragma once

#include "quantizers/quantizer/quantizer_rel_codec.h"

/// A shortcut to relMagnitude<float>: the same number for less work, or the answer that it cannot
/// tell. A table of 2^(i/32) and four terms of a series stay within 2^-39 of 2^e, relative, and
/// relMagnitude within 2^-42; so both round to the same float unless the shortcut's result lies
/// within 2^-37 of the middle between two floats. quantizer_rel_value_test.cc compares them.
namespace fz::quantizer {

inline constexpr std::uint32_t kRelRoots = 32;

/// Entry i of the table, i < kRelRoots.
FZ_HD double relRoot(std::uint32_t i) {
  return portable::pow2(fp::mul(static_cast<double>(i), 1.0 / kRelRoots));
}

/// roots(i) gives relRoot(i), for any bin. Sets unsure where it cannot tell, else leaves it.
template <class Roots>
FZ_HD float relQuickMagnitude(double bin, double log_step, const Roots& roots, bool& unsure) {
  constexpr double kShift = 0x1.8p47;  // pushes all but multiples of 1/32 out of the significand
  constexpr std::uint32_t kTail = 0x1fffffffu;  // what a float does not keep
  constexpr std::uint32_t kHalf = 0x10000000u;
  constexpr std::uint32_t kNear = 1u << 15;
  const double e = fp::mul(bin, log_step);
  const double shifted = fp::add(e, kShift);
  const double f = fp::sub(e, fp::sub(shifted, kShift));  // in [-1/64, 1/64]
  const std::uint64_t steps = fp::bits(shifted);          // at its end: the multiple of 1/32
  const double root = roots(static_cast<std::uint32_t>(steps) % kRelRoots);
  // exp(f ln 2) - 1; the next term is below 2^-39.5.
  double sum = fp::add(fp::mul(0x1.3b2ab6fba4e77p-7, f), 0x1.c6b08d704a0c0p-5);
  sum = fp::add(fp::mul(sum, f), 0x1.ebfbdff82c58fp-3);
  sum = fp::add(fp::mul(sum, f), 0x1.62e42fefa39efp-1);
  const double value = fp::add(root, fp::mul(root, fp::mul(sum, f)));
  const std::uint32_t tail = static_cast<std::uint32_t>(fp::bits(value)) & kTail;
  // Beyond 2^125 floats may end, or become denormal.
  unsure |= !(fp::abs(e) < 125.0) | (tail - (kHalf - kNear) <= 2 * kNear);
  return static_cast<float>(fp::bitCast<double>(fp::bits(value) + (steps >> 5 << 52)));
}

}  // namespace fz::quantizer
