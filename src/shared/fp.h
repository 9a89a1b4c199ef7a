#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "shared/host_device.h"

/// Floating-point operations that round once, to nearest even, on every backend.
///
/// The device intrinsics cannot be contracted into a fused multiply-add, and the host side is
/// compiled with -ffp-contract=off. Every operation that can change a byte of a stream goes
/// through here; see docs/numerics.md.
namespace fz::fp {

FZ_HD float mul(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
FZ_HD double mul(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
FZ_HD float add(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
FZ_HD double add(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}
FZ_HD float sub(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fsub_rn(a, b);
#else
  return a - b;
#endif
}
FZ_HD double sub(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dsub_rn(a, b);
#else
  return a - b;
#endif
}
FZ_HD float div(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}
FZ_HD double div(double a, double b) {
#ifdef __CUDA_ARCH__
  return __ddiv_rn(a, b);
#else
  return a / b;
#endif
}

/// a * b + c, rounded once or twice: the exception to the rule above. Only for estimates that are
/// never stored, whose error is proven for both.
struct EstimateMulAdd {
  FZ_HD float operator()(float a, float b, float c) const {
#ifdef __CUDA_ARCH__
    return __fmaf_rn(a, b, c);
#else
    return add(mul(a, b), c);
#endif
  }
};

template <class To, class From>
FZ_HD To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

FZ_HD std::uint32_t bits(float x) {
  return bitCast<std::uint32_t>(x);
}
FZ_HD std::uint64_t bits(double x) {
  return bitCast<std::uint64_t>(x);
}

// On a device the compiler's own: it costs nothing as part of a comparison or a sum.
FZ_HD float abs(float x) {
#ifdef __CUDA_ARCH__
  return fabsf(x);
#else
  return bitCast<float>(bits(x) & 0x7fffffffu);
#endif
}
FZ_HD double abs(double x) {
#ifdef __CUDA_ARCH__
  return fabs(x);
#else
  return bitCast<double>(bits(x) & 0x7fffffffffffffffull);
#endif
}

FZ_HD bool isFinite(float x) {
  return (bits(x) & 0x7f800000u) != 0x7f800000u;
}
FZ_HD bool isFinite(double x) {
  return (bits(x) & 0x7ff0000000000000ull) != 0x7ff0000000000000ull;
}

/// Nearest integer, ties to even, as a double. Precondition: |x| <= 2^51. The constant pushes the
/// fraction out of the significand, so the addition itself rounds; no libm, no rounding mode.
FZ_HD double roundEven(double x) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52
  return sub(add(x, kShift), kShift);
}

/// Nearest integer, ties to even, as a float. Precondition: |x| <= 2^22.
FZ_HD float roundEven(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  return sub(add(x, kShift), kShift);
}

/// True iff |x - y| <= bound on the real numbers, with no rounding anywhere. NaN and infinities
/// give false (unless equal bits were stored, which is not this function's question).
FZ_HD bool withinBound(double x, double y, double bound) {
  // Two-sum: diff + rest is exactly x - y, |rest| <= ulp(diff)/2.
  const double diff = sub(x, y);
  const double y_part = sub(x, diff);
  const double x_part = add(diff, y_part);
  const double rest = add(sub(x, x_part), sub(y_part, y));
  const double magnitude = abs(diff);
  // Sign of the rest relative to the difference, without a branch so that loops vectorise.
  const double signed_rest = bitCast<double>(bits(rest) ^ (bits(diff) & 0x8000000000000000ull));
  return (magnitude < bound) | ((magnitude == bound) & (signed_rest <= 0.0));
}

}  // namespace fz::fp
