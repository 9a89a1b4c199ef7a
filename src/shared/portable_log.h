#pragma once

#include <cstdint>

#include "shared/fp.h"
#include "shared/host_device.h"

/// log2 and 2^x from integer bit work and singly rounded operations: the same bits on every
/// machine, and no branches, so that loops over them vectorise. Absolute error of log2 and relative
/// error of pow2 stay below 2^-43 (measured: see portable_log tests in the quantizer folder).
namespace fz::portable {

/// (2 / ln 2) * atanh(s) = log2((1 + s) / (1 - s)) for |s| <= 0.172, from its Taylor series.
FZ_HD double log2Ratio(double s) {
  const double z = fp::mul(s, s);
  double sum = 0x1.89f3b1694cffep-3;  // 2 / (15 ln 2); the next term is below 2^-45
  sum = fp::add(fp::mul(sum, z), 0x1.c68f568d31760p-3);
  sum = fp::add(fp::mul(sum, z), 0x1.0c9a84994022dp-2);
  sum = fp::add(fp::mul(sum, z), 0x1.484b13d7c02a9p-2);
  sum = fp::add(fp::mul(sum, z), 0x1.a61762a7aded9p-2);
  sum = fp::add(fp::mul(sum, z), 0x1.2776c50ef9bfep-1);
  sum = fp::add(fp::mul(sum, z), 0x1.ec709dc3a03fdp-1);
  sum = fp::add(fp::mul(sum, z), 0x1.71547652b82fep+1);  // 2 / ln 2
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
  double sum = 0x1.e8cac7351bb25p-32;  // ln2^11 / 11!; the next term is below 2^-46
  sum = fp::add(fp::mul(sum, f), 0x1.e4cf5158b8ecap-28);
  sum = fp::add(fp::mul(sum, f), 0x1.b5253d395e7c4p-24);
  sum = fp::add(fp::mul(sum, f), 0x1.62c0223a5c824p-20);
  sum = fp::add(fp::mul(sum, f), 0x1.ffcbfc588b0c7p-17);
  sum = fp::add(fp::mul(sum, f), 0x1.430912f86c787p-13);
  sum = fp::add(fp::mul(sum, f), 0x1.5d87fe78a6731p-10);
  sum = fp::add(fp::mul(sum, f), 0x1.3b2ab6fba4e77p-7);
  sum = fp::add(fp::mul(sum, f), 0x1.c6b08d704a0c0p-5);
  sum = fp::add(fp::mul(sum, f), 0x1.ebfbdff82c58fp-3);
  sum = fp::add(fp::mul(sum, f), 0x1.62e42fefa39efp-1);
  sum = fp::add(fp::mul(sum, f), 1.0);
  // The low bits of `shifted` are the rounded exponent in two's complement.
  const double scale = fp::bitCast<double>((fp::bits(shifted) + 1023u) << 52);
  return fp::mul(sum, scale);
}

}  // namespace fz::portable
