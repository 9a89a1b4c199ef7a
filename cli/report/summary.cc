#include "report/summary.h"

#include <algorithm>
#include <limits>

namespace fz::report {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// A fill value is this many times larger than all others, and than their range.
constexpr double kFillDistance = 10.0;
/// One value in so many has to be the fill value.
constexpr std::size_t kFillShare = 1000;

/// The two outermost values of one side, each taken once, and how often the outer one stands there.
struct Extreme {
  double outer = -kInfinity;
  double next = -kInfinity;
  std::size_t n_outer = 0;

  void add(double value) {
    if (value > outer) {
      next = outer;
      outer = value;
      n_outer = 0;
    } else if (value < outer && value > next) {
      next = value;
    }
    n_outer += value == outer ? 1 : 0;
  }
};

/// `top` looks up the axis, `bottom` down it (with its sign turned).
bool isFill(const Extreme& top, const Extreme& bottom, std::size_t n_values) {
  // The other side may end in a fill value of its own; then its next one counts.
  const double low = -bottom.outer;
  const double rest = std::max(std::fabs(top.next), std::fabs(low));
  const double range = top.next / 2 - low / 2;
  return top.n_outer >= 2 && top.n_outer >= n_values / kFillShare && range > 0.0 &&
         std::isfinite(range) && std::fabs(top.outer) / kFillDistance > rest &&
         (top.outer / 2 - top.next / 2) / kFillDistance > range;
}

std::optional<double> findFill(const FieldView& field) {
  Extreme top;
  Extreme bottom;
  for (std::size_t i = 0; i < field.count(); ++i) {
    const double value = field.at(i);
    if (std::isfinite(value)) {
      top.add(value);
      bottom.add(-value);
    }
  }
  if (isFill(top, bottom, field.count())) {
    return top.outer;
  }
  if (isFill(bottom, top, field.count())) {
    return -bottom.outer;
  }
  return std::nullopt;
}

/// Moments of `field` where `original` has a value. Sums are of scaled values, so that the largest
/// and the smallest doubles neither overflow nor vanish.
Moments momentsOf(const FieldView& field, const FieldView& original, const Summary& summary) {
  Moments moments;
  if (summary.n_valid == 0) {
    return moments;
  }
  const auto forEach = [&](auto&& use) {
    for (std::size_t i = 0; i < field.count(); ++i) {
      const double value = field.at(i);
      if (contentOf(original.at(i), summary.fill) == Content::kValue && std::isfinite(value)) {
        use(value);
      }
    }
  };
  double low = kInfinity;
  double high = -kInfinity;
  forEach([&](double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  });
  int exponent = 0;
  std::frexp(std::max(std::fabs(low), std::fabs(high)), &exponent);
  const auto n = static_cast<long double>(summary.n_valid);
  long double sum = 0;
  forEach([&](double value) { sum += std::ldexp(value, -exponent); });
  const auto mean = static_cast<double>(sum / n);
  long double squares = 0;
  forEach([&](double value) {
    const double away = std::ldexp(value, -exponent) - mean;
    squares += away * away;
  });
  moments.min = low;
  moments.max = high;
  moments.mean = std::ldexp(mean, exponent);
  moments.deviation = std::ldexp(static_cast<double>(std::sqrt(squares / n)), exponent);
  return moments;
}

double validPsnr(const FieldView& original, const FieldView& decoded, const Summary& summary) {
  // Halves, since the range of large values may overflow.
  const double range = summary.original.max / 2 - summary.original.min / 2;
  long double squares = 0;
  for (std::size_t i = 0; i < original.count() && range > 0.0; ++i) {
    const double x = original.at(i);
    if (contentOf(x, summary.fill) == Content::kValue) {
      const double part = (x / 2 - decoded.at(i) / 2) / range;
      squares += part * part;
    }
  }
  const auto mean = static_cast<double>(squares / static_cast<long double>(summary.n_valid));
  return range > 0.0 ? -10.0 * std::log10(mean) : std::nan("");
}

}  // namespace

Summary summarize(const FieldView& original, const FieldView& decoded) {
  Summary summary;
  summary.n_values = original.count();
  summary.fill = findFill(original);
  for (std::size_t i = 0; i < original.count(); ++i) {
    switch (contentOf(original.at(i), summary.fill)) {
      case Content::kValue:
        ++summary.n_valid;
        break;
      case Content::kNan:
        ++summary.n_nan;
        break;
      case Content::kInfinity:
        ++summary.n_infinity;
        break;
      case Content::kFill:
        ++summary.n_fill;
        break;
    }
  }
  summary.original = momentsOf(original, original, summary);
  summary.decoded = momentsOf(decoded, original, summary);
  summary.valid_psnr = summary.n_valid > 0 ? validPsnr(original, decoded, summary) : 0.0;
  return summary;
}

}  // namespace fz::report
