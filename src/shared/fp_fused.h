#pragma once

#include "shared/fp.h"

/// Operations for comparisons that decide between two ways to the same bytes. What is stored goes
/// through fp.h.
namespace fz::fp {

/// a * b + c, rounded once.
FZ_HD float mulAdd(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
FZ_HD double mulAdd(double a, double b, double c) {
#ifdef __CUDA_ARCH__
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

/// The larger one of two numbers that are not negative, or no number where one of them is none.
FZ_HD float maxOrNan(float a, float b) {
#ifdef __CUDA_ARCH__
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
#else
  return a != a || a > b ? a : b;
#endif
}

}  // namespace fz::fp
