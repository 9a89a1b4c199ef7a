#include "pipeline/bound_check.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "backends/cpu/missing.h"
#include "fz/bound_kind.h"
#include "shared/fp.h"

namespace fz {

namespace {

/// |x - y| <= eb * |x| on the real numbers. Both sides are a rounded value plus an exact rest;
/// rounding is monotone, so the rests matter only when the rounded values are equal.
bool withinPointwise(double x, double y, double eb) {
  constexpr double kTiny = 0x1p-500;
  if (std::fabs(x) < kTiny) {
    // Below this the rest of the product could underflow; the scale is a power of two and exact.
    x *= 0x1p400;
    y *= 0x1p400;
  }
  const double product = eb * std::fabs(x);
  const double product_rest = std::fma(eb, std::fabs(x), -product);
  const double diff = x - y;
  const double y_part = x - diff;
  const double x_part = diff + y_part;
  const double rest = (x - x_part) + (y_part - y);
  const double magnitude = std::fabs(diff);
  const double signed_rest = diff < 0.0 ? -rest : rest;
  return magnitude < product || (magnitude == product && signed_rest <= product_rest);
}

bool isWithin(double x, double y, const BoundRule& rule) {
  switch (rule.kind) {
    case BoundRule::Kind::kBits:
      return false;  // equal bits were looked at before
    case BoundRule::Kind::kAbsolute:
      return fp::withinBound(x, y, rule.value);
    case BoundRule::Kind::kPointwise:
      return std::isfinite(x) && std::isfinite(y) && withinPointwise(x, y, rule.value);
  }
  return false;
}

/// The quotient is the rounded one of the exact errors wherever it is below a half, so it never
/// passes a bound that the value itself meets.
void recordRelative(CheckReport& report, std::size_t index, double x, double y) {
  if (!std::isfinite(x) || !std::isfinite(y)) {
    return;
  }
  ++report.n_finite;
  const double relative = x == y ? 0.0 : std::fabs(x - y) / std::fabs(x);
  if (relative > report.max_relative) {
    report.max_relative = relative;
    report.max_relative_index = index;
  }
}

void countKept(KeptCount& count, bool is_kept) {
  ++count.n_values;
  count.n_kept += is_kept ? 1 : 0;
}

template <class T>
std::vector<T> fillAs(const std::vector<double>& values) {
  std::vector<T> fill;
  for (const double value : values) {
    addFill(value, fill);
  }
  return fill;
}

template <class T>
bool isOneOf(const std::vector<T>& fill, T x) {
  return std::find(fill.begin(), fill.end(), x) != fill.end();
}

/// Without the values that mean "missing".
template <class T>
ReconstructionStats statisticsOf(const T* original,
                                 const T* decoded,
                                 std::size_t n,
                                 const std::vector<T>& fill) {
  if (fill.empty()) {
    return calculateStatistics(original, decoded, n);
  }
  std::vector<T> valid(original, original + n);
  for (T& x : valid) {
    x = isOneOf(fill, x) ? std::numeric_limits<T>::quiet_NaN() : x;
  }
  return calculateStatistics(valid.data(), decoded, n);
}

template <class T>
CheckReport check(const T* original,
                  const T* decoded,
                  std::size_t n,
                  const BoundRule& rule,
                  const std::function<void(std::size_t)>& on_bytes) {
  constexpr std::size_t kPart = std::size_t{1} << 20;  // values between two reports
  CheckReport report;
  report.rule = rule;
  report.n_values = n;
  const std::vector<T> fill = fillAs<T>(rule.fill);
  report.stats = statisticsOf(original, decoded, n, fill);
  for (std::size_t i = 0; i < n; ++i) {
    if (on_bytes && i % kPart == 0) {
      on_bytes(std::min(kPart, n - i) * sizeof(T));
    }
    const T x = original[i];
    const bool is_equal = fp::bits(x) == fp::bits(decoded[i]);
    const bool is_fill = !fill.empty() && isOneOf(fill, x);
    if (!is_fill) {
      recordRelative(report, i, static_cast<double>(x), static_cast<double>(decoded[i]));
    }
    if (is_fill) {
      countKept(report.fill, is_equal);
    } else if (std::isnan(x)) {
      countKept(report.nan, is_equal);
    } else if (std::isinf(x)) {
      countKept(report.infinity, is_equal);
    } else if (x == T{0} && std::signbit(x)) {
      countKept(report.negative_zero, is_equal);
    }
    if (is_equal ||
        (!is_fill && isWithin(static_cast<double>(x), static_cast<double>(decoded[i]), rule))) {
      continue;
    }
    if (report.n_violations++ == 0) {
      report.first_index = i;
      report.first_original = static_cast<double>(x);
      report.first_decoded = static_cast<double>(decoded[i]);
    }
  }
  return report;
}

CheckReport checkBytes(ByteView original, ByteView decoded) {
  CheckReport report;
  report.n_values = original.size();
  for (std::size_t i = 0; i < original.size(); ++i) {
    if (original[i] != decoded[i] && report.n_violations++ == 0) {
      report.first_index = i;
      report.first_original = original[i];
      report.first_decoded = decoded[i];
    }
  }
  return report;
}

template <class T>
double rangeOf(ByteView bytes, const std::vector<double>& fill) {
  const T* values = reinterpret_cast<const T*>(bytes.data());
  const ValidRange range = rangeOfValid({values, bytes.size() / sizeof(T)}, fillAs<T>(fill));
  return range.isEmpty() ? 0.0
                         : std::min(range.high - range.low, std::numeric_limits<double>::max());
}

}  // namespace

double CheckReport::psnr() const {
  const bool has_one = n_finite > 0 && (stats.mse == 0.0 || stats.value_range > 0.0);
  return has_one ? stats.psnr : std::numeric_limits<double>::quiet_NaN();
}

double CheckReport::nrmse() const {
  return std::isnan(psnr()) ? psnr() : stats.nrmse;
}

std::optional<BoundRule> ruleOfFrame(const FrameInfo& info) {
  if (!info.bound) {
    return info.lossless ? std::optional(BoundRule{}) : std::nullopt;
  }
  const std::vector<double> fill = info.missing ? info.missing->fill : std::vector<double>{};
  if (isPointwise(*info.bound)) {
    return BoundRule{BoundRule::Kind::kPointwise, info.bound->requested, fill};
  }
  return BoundRule{BoundRule::Kind::kAbsolute, info.bound->absolute, fill};
}

BoundRule ruleOfRequest(const BoundRequest& request,
                        DataType type,
                        ByteView original,
                        const std::vector<double>& fill) {
  switch (request.mode) {
    case ErrorBoundMode::ABS:
      break;
    case ErrorBoundMode::REL:
      return {BoundRule::Kind::kPointwise, request.value, fill};
    case ErrorBoundMode::NOA: {
      const double range = type == DataType::FLOAT64 ? rangeOf<double>(original, fill)
                                                     : rangeOf<float>(original, fill);
      // A constant field has no range; then the number itself is the bound.
      const double bound = range > 0.0 ? request.value * range : request.value;
      // Within an infinite bound every finite value would be.
      return {BoundRule::Kind::kAbsolute, std::min(bound, std::numeric_limits<double>::max()),
              fill};
    }
  }
  return {BoundRule::Kind::kAbsolute, request.value, fill};
}

CheckReport checkValues(DataType type,
                        ByteView original,
                        ByteView decoded,
                        const BoundRule& rule,
                        const std::function<void(std::size_t)>& on_bytes) {
  if (type == DataType::FLOAT32) {
    return check(reinterpret_cast<const float*>(original.data()),
                 reinterpret_cast<const float*>(decoded.data()), original.size() / sizeof(float),
                 rule, on_bytes);
  }
  if (type == DataType::FLOAT64) {
    return check(reinterpret_cast<const double*>(original.data()),
                 reinterpret_cast<const double*>(decoded.data()), original.size() / sizeof(double),
                 rule, on_bytes);
  }
  return checkBytes(original, decoded);
}

std::string ruleText(const BoundRule& rule) {
  switch (rule.kind) {
    case BoundRule::Kind::kBits:
      return "equal bit for bit";
    case BoundRule::Kind::kAbsolute:
      return fmt::format("|x - x'| <= {}", rule.value);
    case BoundRule::Kind::kPointwise:
      return fmt::format("|x - x'| <= {} * |x|", rule.value);
  }
  return "";
}

std::string largestErrorText(const CheckReport& report) {
  std::string text = fmt::format("{}", report.stats.max_error);
  if (report.rule.kind == BoundRule::Kind::kPointwise) {
    text += fmt::format(", relative {}", report.max_relative);
  }
  return text;
}

std::string violationText(const CheckReport& report) {
  return fmt::format("{} of {} values break {}, the first at index {}: {} became {}",
                     report.n_violations, report.n_values, ruleText(report.rule),
                     report.first_index, report.first_original, report.first_decoded);
}

}  // namespace fz
