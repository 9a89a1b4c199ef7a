#pragma once

#include <cstdint>
#include <type_traits>

#include "shared/fp.h"
#include "shared/host_device.h"
#include "shared/portable_log.h"

/// REL: bins of equal width in log2 |x|; decoded value +-2^(bin * log_step). See SPEC.md.
namespace fz::quantizer {

/// Everything that decides the code of one value. Made by makeRelRule.
struct RelRule {
  double log_step;
  double inv_log_step;
  double bound;      ///< relative
  double reach;      ///< |bin| must be below; also keeps rounding to an integer exact
  double max_code;   ///< largest number that the code's width holds
  double threshold;  ///< |x| must be below
};

/// Width of a bin in log2 |x|, from the bound alone: the decoder computes it too. Two bins' worth
/// of log2(1 + bound), less what rounding the decoded value to its type can add.
template <class T>
FZ_HD double relLogStep(double bound) {
  constexpr double kReserve = std::is_same_v<T, float> ? 0x1p-23 : 0x1p-43;
  const double half = portable::log2OnePlus(bound);
  const double reduced = fp::sub(half, kReserve);
  const double least = fp::mul(half, 0.5);
  return fp::mul(2.0, reduced > least ? reduced : least);
}

struct RelSettings {
  double bound;
  double threshold;
  std::uint32_t radius;
  std::uint32_t code_bits;
};

template <class T>
FZ_HD RelRule makeRelRule(const RelSettings& s) {
  constexpr double kMax = 0x1.fffffffffffffp1023;
  RelRule rule{};
  rule.log_step = relLogStep<T>(s.bound);
  const double inverse = rule.log_step > 0.0 ? fp::div(1.0, rule.log_step) : kMax;
  rule.inv_log_step = inverse < kMax ? inverse : kMax;
  rule.bound = s.bound;
  rule.reach = static_cast<double>(s.radius);
  rule.max_code = static_cast<double>((std::uint64_t{1} << s.code_bits) - 1);
  rule.threshold = s.threshold;
  return rule;
}

template <class T>
FZ_HD constexpr double minNormal() {
  return std::is_same_v<T, float> ? 0x1p-126 : 0x1p-1022;
}
template <class T>
FZ_HD constexpr double maxFinite() {
  return std::is_same_v<T, float> ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
}

/// |decoded value| of a bin.
template <class T>
FZ_HD T relMagnitude(double bin, double log_step) {
  const double value = portable::pow2(fp::mul(bin, log_step));
  return static_cast<T>(value < maxFinite<T>() ? value : maxFinite<T>());
}

/// What the value asks for, before any check that it gets it.
struct RelGuess {
  double size;    ///< |x|, or 1 where it cannot have a code
  double scaled;  ///< log2 |x| in bins
  double bin;     ///< nearest whole number; 0 if not near
  bool regular;   ///< normal, finite and below the threshold
  bool near;      ///< |scaled| is below the reach
};

template <class T>
FZ_HD RelGuess relGuess(T x, const RelRule& rule) {
  const double smallest = minNormal<T>();
  const double largest = maxFinite<T>();
  const double size = static_cast<double>(fp::abs(x));
  RelGuess guess{};
  guess.regular = (size >= smallest) & (size <= largest) & (size < rule.threshold);
  guess.size = guess.regular ? size : 1.0;
  guess.scaled = fp::mul(portable::log2(guess.size), rule.inv_log_step);
  guess.near = fp::abs(guess.scaled) < rule.reach;
  guess.bin = fp::roundEven(guess.near ? guess.scaled : 0.0);
  return guess;
}

/// Code of the guessed bin; 0 when it has none or `kept` is false.
template <class C>
FZ_HD C relPack(bool negative, const RelGuess& guess, bool kept, const RelRule& rule) {
  const double sign_bits = (guess.bin < 0.0 ? 2.0 : 0.0) + (negative ? 1.0 : 0.0) + 1.0;
  const double stored = fp::add(fp::mul(4.0, fp::abs(guess.bin)), sign_bits);
  const bool in_range = fp::abs(guess.bin) < rule.reach;
  const bool ok = guess.regular & guess.near & in_range & kept & (stored <= rule.max_code);
  // An integer below 2^52 added to 2^52 shows its bits at the end of the significand.
  return static_cast<C>(fp::bits(fp::add(ok ? stored : 0.0, 0x1p52)));
}

/// Code of x; 0 when it has none and must be an outlier. No branches.
///
/// The check never accepts a violation but may refuse a value that keeps the bound by less than a
/// few units of 2^-53: the product bound * |x| and, for bounds above 1/2, the difference are
/// rounded, and the factor covers both. Products too small for that argument are refused.
template <class T, class C>
FZ_HD C relCode(T x, const RelRule& rule) {
  constexpr double kSafety = 1.0 - 0x1p-51;
  constexpr double kSmallestProduct = 0x1p-960;
  const RelGuess guess = relGuess(x, rule);
  const double back = static_cast<double>(relMagnitude<T>(guess.bin, rule.log_step));
  const double allowed = fp::mul(fp::mul(rule.bound, guess.size), kSafety);
  const bool kept = (fp::abs(fp::sub(guess.size, back)) <= allowed) & (allowed >= kSmallestProduct);
  return relPack<C>(x < T{0}, guess, kept, rule);
}

/// Signed bin of a code, as a double. Precondition: code != 0.
template <class C>
FZ_HD double relBin(C code) {
  const std::uint32_t c = static_cast<std::uint32_t>(code) - 1u;
  const auto magnitude = static_cast<std::int32_t>(c >> 2);
  return static_cast<double>((c & 2u) != 0 ? -magnitude : magnitude);
}

template <class T, class C>
FZ_HD T relSigned(C code, T magnitude) {
  const T value = ((static_cast<std::uint32_t>(code) - 1u) & 1u) != 0 ? -magnitude : magnitude;
  return code == 0 ? T{0} : value;
}

template <class T, class C>
FZ_HD T relValue(C code, double log_step) {
  return relSigned(code, relMagnitude<T>(relBin(code), log_step));
}

template <class T, class C>
FZ_HD T relValueV1(C code, float log_step) {
  const float exponent = fp::mul(static_cast<float>(relBin(code)), log_step);
  const double value = portable::pow2(static_cast<double>(exponent));
  return relSigned(
      code,
      static_cast<T>(static_cast<float>(value < maxFinite<float>() ? value : maxFinite<float>())));
}

template <class Team, class T, class C>
FZ_HD void encodeRelTile(
    Team team, const T* in, std::uint32_t n, const RelRule& rule, C* codes, std::uint8_t* refused) {
  team.each(n, [=](std::uint32_t i) {
    const C code = relCode<T, C>(in[i], rule);
    codes[i] = code;
    refused[i] = code == 0 ? 1 : 0;
  });
}

}  // namespace fz::quantizer
