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

/// Sums in parts, so that the last digits of small terms are not lost in a large sum.
class Sum {
 public:
  void add(double term) {
    part_ += term;
    if (++n_ % kPart == 0) {
      flush();
    }
  }
  long double total() {
    flush();
    return total_;
  }

 private:
  static constexpr std::size_t kPart = 1024;
  void flush() {
    total_ += part_;
    part_ = 0.0;
  }
  double part_ = 0.0;
  long double total_ = 0.0L;
  std::size_t n_ = 0;
};

/// Deviations from the middle of the range, scaled so that neither they nor their squares overflow
/// or vanish.
class MomentSums {
 public:
  MomentSums(double low, double high) : low_(low), high_(high), middle_(low / 2 + high / 2) {
    constexpr int kSafe = 1000;  // the power of two itself has to be a double
    std::frexp(high / 2 - low / 2, &exponent_);
    exponent_ = std::clamp(exponent_, -kSafe, kSafe);
    scale_ = std::ldexp(1.0, -exponent_);
  }
  void add(double value) {
    const double away = (value / 2 - middle_ / 2) * scale_;
    sum_.add(away);
    squares_.add(away * away);
  }
  Moments moments(std::size_t n_values) {
    const auto n = static_cast<long double>(n_values);
    const long double mean = sum_.total() / n;
    const long double variance = std::max(0.0L, squares_.total() / n - mean * mean);
    return {low_, high_, 2 * (middle_ / 2 + std::ldexp(static_cast<double>(mean), exponent_)),
            2 * std::ldexp(static_cast<double>(std::sqrt(variance)), exponent_)};
  }

 private:
  double low_;
  double high_;
  double middle_;
  double scale_ = 1.0;
  int exponent_ = 0;
  Sum sum_;
  Sum squares_;
};

/// Fill value, and how many values of each kind there are.
template <class Reader>
void countContent(const Reader& original, std::size_t n, Summary& summary) {
  Extreme top;
  Extreme bottom;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = original[i];
    if (contentOf(value, summary.fill) == Content::kFill) {
      ++summary.n_fill;
    } else if (std::isfinite(value)) {
      top.add(value);
      bottom.add(-value);
      ++summary.n_valid;
    } else if (std::isnan(value)) {
      ++summary.n_nan;
    } else {
      ++summary.n_infinity;
    }
  }
  if (summary.is_fill_declared) {
    return;
  }
  if (isFill(top, bottom, n)) {
    summary.fill = {top.outer};
    summary.n_fill = top.n_outer;
  } else if (isFill(bottom, top, n)) {
    summary.fill = {-bottom.outer};
    summary.n_fill = bottom.n_outer;
  }
  summary.n_valid -= summary.n_fill;
}

/// Calls `use` with both values of every position that has some.
template <class Reader, class F>
void forEachValid(const Reader& original,
                  const Reader& decoded,
                  const Summary& summary,
                  const F& use) {
  for (std::size_t i = 0; i < summary.n_values; ++i) {
    const double x = original[i];
    const double y = decoded[i];
    if (contentOf(x, summary.fill) == Content::kValue && std::isfinite(y)) {
      use(x, y);
    }
  }
}

template <class Reader>
void measure(const Reader& original, const Reader& decoded, Summary& summary) {
  Moments& before = summary.original;
  Moments& after = summary.decoded;
  before.min = after.min = kInfinity;
  before.max = after.max = -kInfinity;
  std::size_t n = 0;
  forEachValid(original, decoded, summary, [&](double x, double y) {
    before.min = std::min(before.min, x);
    before.max = std::max(before.max, x);
    after.min = std::min(after.min, y);
    after.max = std::max(after.max, y);
    ++n;
  });
  if (n == 0) {
    before = after = {};
    return;
  }
  MomentSums sums_before(before.min, before.max);
  MomentSums sums_after(after.min, after.max);
  // Halves, since the range of large values may overflow.
  const double range = before.max / 2 - before.min / 2;
  Sum squares;
  forEachValid(original, decoded, summary, [&](double x, double y) {
    sums_before.add(x);
    sums_after.add(y);
    const double part = (x / 2 - y / 2) / range;
    squares.add(part * part);
  });
  before = sums_before.moments(n);
  after = sums_after.moments(n);
  const auto mean = static_cast<double>(squares.total() / static_cast<long double>(n));
  summary.valid_psnr = range > 0.0 ? -10.0 * std::log10(mean) : std::nan("");
}

}  // namespace

Summary summarize(const FieldView& original,
                  const FieldView& decoded,
                  const std::vector<double>& declared) {
  Summary summary;
  summary.is_fill_declared = !declared.empty();
  for (const double value : declared) {
    // As the library compares: rounded to the type of the field.
    summary.fill.push_back(original.type == DataType::FLOAT32
                               ? static_cast<double>(static_cast<float>(value))
                               : value);
  }
  summary.n_values = original.count();
  readBoth(original, decoded, [&](const auto& x, const auto& y) {
    countContent(x, summary.n_values, summary);
    measure(x, y, summary);
  });
  return summary;
}

}  // namespace fz::report
