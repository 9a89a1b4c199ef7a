#pragma once

#include "quantizers/quantizer/codec.h"
#include "quantizers/quantizer/codec_rel.h"

/// Shortcuts to relCode: the same code for less work, or the answer that they cannot tell.
///
/// relCode decodes the bin to check it. But bins are made a little narrower than the bound allows,
/// so a value that lies in its bin, and not at the very edge of it, passes that check whatever it
/// is, and the distance to the middle of the bin decides. In units of log2 |x|: a value at most
/// log_step / 2 - m from the middle decodes to |x| times at most 2^(h - r - m + e), with h =
/// log2(1 + bound), r the reserve of relLogStep and e the rounding errors of log2, pow2 and the
/// products. This is (1 + bound) |x| less at least
///   f32: (2^-23 ln 2 - 2^-24 for rounding the result to f32) |x| = 2^-25.4 |x|
///   f64: ln 2 (m - e) |x| with e < 2^-40 and m = 2^-39
/// which is more than the 2^-51 of relCode's safety factor. The lower side has more room, as
/// 1 / (1 + bound) > 1 - bound. A result below the normal numbers of f32 is rounded by at most
/// 2^-150 <= 2^-24 |x|, and the limit at the largest number only brings it nearer to x.
///
/// tests/rel_test.cc compares the shortcuts with relCode.
///
/// What a shortcut settles does not depend on its own rounding, so it may round as the machine
/// likes (fp::EstimateMulAdd).
namespace fz::quantizer {

enum class RelShortcut { kNone, kFloat, kDouble };

/// Bounds for which the shortcuts are proven, and settle all but few values: the edge that they
/// leave to relCode has a fixed width, while the bins become narrower with the bound.
template <class T>
FZ_HD RelShortcut relShortcut(double bound) {
  constexpr bool kIsFloat = std::is_same_v<T, float>;
  if (!(bound <= 1.0)) {
    return RelShortcut::kNone;
  }
  if (kIsFloat && bound >= 0x1p-14) {
    return RelShortcut::kFloat;
  }
  return bound >= (kIsFloat ? 0x1p-21 : 0x1p-30) ? RelShortcut::kDouble : RelShortcut::kNone;
}

struct RelDoubleRule {
  RelRule rule;
  using Flag = std::uint64_t;  ///< as wide as what it is made from, for vectors
  double limit;                ///< largest distance from the middle of the bin, in bins
};

FZ_HD RelDoubleRule makeRelDoubleRule(const RelRule& rule) {
  return {rule, fp::sub(0.5, fp::mul(rule.inv_log_step, 0x1p-39))};
}

/// relCode without the decoding. Sets unsure to 1 where it cannot tell, else leaves it.
template <class C, class T>
FZ_HD C relFastCode(T x, const RelDoubleRule& fast, std::uint64_t& unsure) {
  const RelGuess guess = relGuess(x, fast.rule);
  const bool inner = fp::abs(fp::sub(guess.scaled, guess.bin)) <= fast.limit;
  // Far from where pow2 ends, and from products that relCode refuses.
  const bool middle =
      std::is_same_v<T, float> | ((guess.size >= 0x1p-900) & (guess.size <= 0x1p900));
  const bool open = guess.regular & guess.near & !(inner & middle);
  unsure |= fp::bits(open ? 1.0 : 0.0);  // not 1 and 0: gcc 12 would not make vectors of that
  return relPack<C>(x < T{0}, guess, true, fast.rule);
}

/// log2(1 + t) for t from sqrt(1/2) - 1 to sqrt(2) - 1; absolute error below
/// 2^-23.3; the test looks at every t, with both kinds of mul_add.
template <class F>
FZ_HD float log2OnePlusFloat(float t, F mul_add) {
  // Minimax polynomial of log2(1 + t) / t; even and odd powers apart, to wait less.
  const float t2 = fp::mul(t, t);
  float even = mul_add(0x1.01041ep-3f, t2, 0x1.bcbd52p-3f);
  even = mul_add(even, t2, 0x1.269978p-2f);
  even = mul_add(even, t2, 0x1.ec7668p-2f);
  even = mul_add(even, t2, 0x1.715474p+0f);
  float odd = mul_add(-0x1.adfc6ap-3f, t2, -0x1.e897aap-3f);
  odd = mul_add(odd, t2, -0x1.716056p-2f);
  odd = mul_add(odd, t2, -0x1.71546ap-1f);
  return fp::mul(t, mul_add(odd, t, even));
}

/// relCode of f32 in f32 and integers.
struct RelFloatRule {
  using Flag = std::uint32_t;
  float inv_high;  ///< 1 / log_step to 16 bits, so that its product with an exponent is exact
  float inv_low;   ///< the rest of it
  float inv;
  float limit;              ///< largest distance from the middle of the bin, in bins
  std::uint32_t n_regular;  ///< how many bit patterns, from that of the smallest normal number
  std::uint32_t max_code;   ///< of bins within reach, and of the code's width
};

/// Precondition: relShortcut says kFloat. So 1 / log_step is below 2^12.5 and bins below 2^20.
FZ_HD RelFloatRule makeRelFloatRule(const RelRule& rule) {
  constexpr double kMaxCode = 0x1p30;  // above every code of such bins
  constexpr std::uint32_t kSmallest = 0x00800000u;
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  RelFloatRule fast{};
  fast.inv = static_cast<float>(rule.inv_log_step);
  fast.inv_high = fp::bitCast<float>(fp::bits(fast.inv) & 0xffffff00u);
  fast.inv_low = static_cast<float>(fp::sub(rule.inv_log_step, static_cast<double>(fast.inv_high)));
  // In bins, the operations of relFastCode are off by less than 2^-22.3 / log_step + 2^-23: the
  // logarithm by 2^-23.3, each of inv, its product and the last sum by 2^-25, the rest is small.
  fast.limit = static_cast<float>(fp::sub(0.5, fp::mul(fp::add(rule.inv_log_step, 1.0), 0x1p-22)));
  const std::uint32_t end = fp::bits(fp::abs(roundUpToFloat(rule.threshold)));
  fast.n_regular = (end < kInfinity ? end : kInfinity) - kSmallest;
  fast.n_regular = end < kSmallest ? 0u : fast.n_regular;
  const double reach_code = fp::mul(4.0, rule.reach);  // of the last bin below, at most
  const double max_code = reach_code < rule.max_code ? reach_code : rule.max_code;
  fast.max_code = static_cast<std::uint32_t>(max_code < kMaxCode ? max_code : kMaxCode);
  return fast;
}

/// The same in f32 and integers. Numbers that are not regular take the same way to a result that
/// is unused.
template <class C>
FZ_HD C relFastCode(float x, const RelFloatRule& fast, std::uint32_t& unsure) {
  constexpr std::uint32_t kSmallest = 0x00800000u;
  constexpr std::uint32_t kOne = 0x3f800000u;
  constexpr std::uint32_t kRootHalf = 0x3f3504f3u;
  constexpr std::uint32_t kSignificand = 0x007fffffu;
  // Whole numbers added to these show their bits at the end of the significand.
  constexpr float kPositive = 0x1p23f;
  constexpr float kSigned = 0x1.8p23f;
  constexpr fp::EstimateMulAdd kMulAdd;
  const std::uint32_t u = fp::bits(x) & 0x7fffffffu;
  const bool regular = u - kSmallest < fast.n_regular;
  // |x| = 2^exponent * z with z in [sqrt(1/2), sqrt(2)).
  const std::uint32_t moved = u + (kOne - kRootHalf);
  const float biased = fp::bitCast<float>((moved >> 23) | fp::bits(kPositive));
  const float exponent = fp::sub(biased, kPositive + 127.0f);
  const float z = fp::bitCast<float>((moved & kSignificand) + kRootHalf);
  // Whole bins of the exponent first, so that what is left keeps its fraction.
  const float coarse = kMulAdd(exponent, fast.inv_high, kSigned);
  const float whole = fp::sub(coarse, kSigned);
  const float fraction = kMulAdd(exponent, fast.inv_high, -whole);  // exact
  const float fine = kMulAdd(exponent, fast.inv_low, fraction);
  const float rest = kMulAdd(log2OnePlusFloat(fp::sub(z, 1.0f), kMulAdd), fast.inv, fine);
  const float nearest = fp::add(rest, kSigned);
  const bool inner = fp::abs(fp::sub(rest, fp::sub(nearest, kSigned))) <= fast.limit;
  const std::uint32_t bin = fp::bits(coarse) + fp::bits(nearest) - 2 * fp::bits(kSigned);
  const std::uint32_t below = bin >> 31;
  const std::uint32_t magnitude = below != 0 ? 0u - bin : bin;
  const std::uint32_t stored = 4 * magnitude + 2 * below + (fp::bits(x) >> 31) + 1;
  const bool ok = regular & (stored <= fast.max_code);
  unsure |= (regular & !inner) ? 1u : 0u;
  return static_cast<C>(ok ? stored : 0u);
}

// A shortcut to relMagnitude<float>: the same number for less work, or the answer that it cannot
// tell. A table of 2^(i/32) and four terms of a series stay within 2^-39 of 2^e, relative, and
// relMagnitude within 2^-42; so both round to the same float unless the shortcut's result lies
// within 2^-37 of the middle between two floats. tests/rel_value_test.cc compares them.

inline constexpr std::uint32_t kRelRoots = 32;

/// Entry i of the table, i < kRelRoots.
FZ_HD double relRoot(std::uint32_t i) {
  return portable::pow2(fp::mul(static_cast<double>(i), 1.0 / kRelRoots));
}

/// roots(i) gives relRoot(i), for any bin. Sets unsure where it cannot tell, else leaves it.
template <class Roots>
FZ_HD float relFastMagnitude(double bin, double log_step, const Roots& roots, bool& unsure) {
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
