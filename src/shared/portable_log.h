#pragma once

#include <cstdint>

#include "shared/fp.h"
#include "shared/host_device.h"

/// log2 and 2^x from integer bit work and singly rounded operations: the same bits on every
/// machine, and no branches, so that loops over them vectorise. Absolute error of log2 and relative
/// error of pow2 stay below 2^-42; quantizer_exact_test.cc measures them.
namespace fz::portable {

/// log2((1 + s) / (1 - s)) = 2 atanh(s) / ln 2 for |s| <= 0.172: its Taylor series, coefficients
/// 2 / ((2k + 1) ln 2) for k = 0..7; the next term is below 2^-45.
FZ_HD double log2Ratio(double s) {
  // Pairs of terms first (Estrin): a short chain of operations, in one fixed order.
  const double z = fp::mul(s, s);
  const double z2 = fp::mul(z, z);
  const double z4 = fp::mul(z2, z2);
  const double p01 = fp::add(fp::mul(0x1.ec709dc3a03fdp-1, z), 0x1.71547652b82fep+1);
  const double p23 = fp::add(fp::mul(0x1.a61762a7aded9p-2, z), 0x1.2776c50ef9bfep-1);
  const double p45 = fp::add(fp::mul(0x1.0c9a84994022dp-2, z), 0x1.484b13d7c02a9p-2);
  const double p67 = fp::add(fp::mul(0x1.89f3b1694cffep-3, z), 0x1.c68f568d31760p-3);
  const double low = fp::add(fp::mul(p23, z2), p01);
  const double high = fp::add(fp::mul(p67, z2), p45);
  const double sum = fp::add(fp::mul(high, z4), low);
  return fp::mul(s, sum);
}

/// log2(x). Precondition: x is positive, normal and finite.
FZ_HD double log2(double x) {
  constexpr std::uint64_t kOne = 0x3ff0000000000000ull;
  constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcdull;
  constexpr double kShift = 0x1p52;
  const std::uint64_t u = fp::bits(x);
  // x = 2^(biased - 1023) * z with z in [sqrt(1/2), sqrt(2)).
  const std::uint64_t biased = (u + (kOne - kRootHalf)) >> 52;
  const double z = fp::bitCast<double>(u - (biased << 52) + kOne);
  const double exponent = fp::sub(fp::bitCast<double>(biased | fp::bits(kShift)), kShift + 1023.0);
  return fp::add(exponent, log2Ratio(fp::div(fp::sub(z, 1.0), fp::add(z, 1.0))));
}

/// log2(1 + v) without losing the small v. Precondition: v >= 0 and finite.
FZ_HD double log2OnePlus(double v) {
  return v < 0.25 ? log2Ratio(fp::div(v, fp::add(2.0, v))) : log2(fp::add(1.0, v));
}

/// 2^e for e clamped to [-1021, 1023], so the result is normal and finite. NaN gives 2^-1021.
FZ_HD double pow2(double e) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52, as in fp::roundEven
  const double low = e > -1021.0 ? e : -1021.0;
  const double x = low < 1023.0 ? low : 1023.0;
  const double shifted = fp::add(x, kShift);
  const double f = fp::sub(x, fp::sub(shifted, kShift));  // in [-1/2, 1/2]
  // Taylor series of exp(f ln 2), coefficients ln2^k / k! for k = 0..11; the next term is below
  // 2^-46.
  const double f2 = fp::mul(f, f);
  const double f4 = fp::mul(f2, f2);
  const double f8 = fp::mul(f4, f4);
  const double p01 = fp::add(fp::mul(0x1.62e42fefa39efp-1, f), 1.0);
  const double p23 = fp::add(fp::mul(0x1.c6b08d704a0c0p-5, f), 0x1.ebfbdff82c58fp-3);
  const double p45 = fp::add(fp::mul(0x1.5d87fe78a6731p-10, f), 0x1.3b2ab6fba4e77p-7);
  const double p67 = fp::add(fp::mul(0x1.ffcbfc588b0c7p-17, f), 0x1.430912f86c787p-13);
  const double p89 = fp::add(fp::mul(0x1.b5253d395e7c4p-24, f), 0x1.62c0223a5c824p-20);
  const double pab = fp::add(fp::mul(0x1.e8cac7351bb25p-32, f), 0x1.e4cf5158b8ecap-28);
  const double q03 = fp::add(fp::mul(p23, f2), p01);
  const double q47 = fp::add(fp::mul(p67, f2), p45);
  const double q8b = fp::add(fp::mul(pab, f2), p89);
  const double sum = fp::add(fp::mul(q8b, f8), fp::add(fp::mul(q47, f4), q03));
  // The low bits of `shifted` are the rounded exponent in two's complement.
  const double scale = fp::bitCast<double>((fp::bits(shifted) + 1023u) << 52);
  return fp::mul(sum, scale);
}

}  // namespace fz::portable
