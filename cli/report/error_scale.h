#pragma once

#include <cmath>

#include "pipeline/bound_check.h"

namespace fz::report {

/// Errors in units of what a value's bound allows, so that 1 is the bound for either kind of it.
/// Of frames without a bound (lossless) every error is 0 or beyond.
class ErrorScale {
 public:
  explicit ErrorScale(const BoundRule& rule) : rule_(rule) {}

  double operator()(double original, double decoded) const {
    // Halves, since the difference of two large numbers may overflow.
    const double half = original / 2 - decoded / 2;
    const double allowed = allowedAt(original) / 2;
    if (half == 0.0) {
      return 0.0;
    }
    return allowed > 0.0 ? half / allowed : std::copysign(HUGE_VAL, half);
  }
  bool hasBound() const { return rule_.kind != BoundRule::Kind::kBits; }
  /// Whether an error of 1 is the same number for all values.
  bool isAbsolute() const { return rule_.kind == BoundRule::Kind::kAbsolute; }
  double bound() const { return rule_.value; }

 private:
  double allowedAt(double original) const {
    switch (rule_.kind) {
      case BoundRule::Kind::kBits:
        return 0.0;
      case BoundRule::Kind::kAbsolute:
        return rule_.value;
      case BoundRule::Kind::kPointwise:
        return rule_.value * std::fabs(original);
    }
    return 0.0;
  }

  BoundRule rule_;
};

/// The quotient above is rounded, the check of the bound is not; between these two an error counts
/// as within.
inline constexpr double kBeyond = 1.0 + 0x1p-40;

}  // namespace fz::report
