#include "report/plot.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "report/text.h"

namespace fz::report {

namespace {

/// value / 10^exponent; powers beyond the range of double are taken in two steps.
double scaledDown(double value, int exponent) {
  constexpr int kSafe = 300;
  if (exponent < -kSafe) {
    return value * 1e300 * std::pow(10.0, -exponent - kSafe);
  }
  return value / std::pow(10.0, exponent);
}

/// value * 10^exponent.
double scaledUp(double value, int exponent) {
  constexpr int kSafe = 300;
  return exponent < -kSafe ? value * std::pow(10.0, exponent + kSafe) * 1e-300
                           : value * std::pow(10.0, exponent);
}

int exponentOf(double value) {
  return static_cast<int>(std::floor(std::log10(value)));
}

/// The 1, 2 or 5 times a power of ten next above.
double roundStep(double step) {
  const double power = std::pow(10.0, exponentOf(step));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) {
      return factor * power;
    }
  }
  return 10.0 * power;
}

std::string withMinus(std::string text) {
  if (text.starts_with('-')) {
    text.replace(0, 1, "&#8722;");
  }
  return text;
}

Ticks logTicks(const Axis& axis, int n_wanted) {
  Ticks result;
  const int first = static_cast<int>(std::ceil(std::log10(axis.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(axis.high) + 1e-9));
  const int step = std::max(1, (last - first + n_wanted) / n_wanted);
  for (int e = first; e <= last; ++e) {
    if ((e - first) % step == 0) {
      result.ticks.push_back({std::pow(10.0, e), powerOfTen(e)});
    }
  }
  if (result.ticks.size() < 2) {
    result.ticks = {{axis.low, roundNumber(axis.low, 2)}, {axis.high, roundNumber(axis.high, 2)}};
  }
  return result;
}

std::string pathOf(const std::vector<std::array<double, 2>>& points) {
  std::string path;
  bool is_open = false;
  for (const auto& [px, py] : points) {
    if (!std::isfinite(px) || !std::isfinite(py)) {
      is_open = false;
      continue;
    }
    path += fmt::format("{}{:.2f} {:.2f}", is_open ? "L" : "M", px, py);
    is_open = true;
  }
  return path;
}

}  // namespace

double Axis::position(double value) const {
  if (is_log) {
    return std::log(value / low) / std::log(high / low);
  }
  // Halves: the whole range of double fits into an axis.
  return (value / 2 - low / 2) / (high / 2 - low / 2);
}

Ticks ticksOf(const Axis& axis, int n_wanted, bool only_integers) {
  if (axis.is_log) {
    return logTicks(axis, n_wanted);
  }
  Ticks result;
  // Values that share their first digits are shown by what they have beyond the lowest.
  const double largest = std::max(std::fabs(axis.low), std::fabs(axis.high));
  const bool has_base = !only_integers && axis.high / 2 - axis.low / 2 < largest * 1e-5;
  const double base = has_base ? axis.low : 0.0;
  const double low = axis.low - base;
  const double high = axis.high - base;
  const int magnitude = exponentOf(std::max(std::fabs(low), std::fabs(high)));
  const bool has_factor = magnitude > 4 || (magnitude < -2 && !only_integers);
  const int exponent = has_factor ? magnitude : 0;
  // From here on in units of the power of ten that the labels leave out.
  const double first = scaledDown(low, exponent);
  const double last = scaledDown(high, exponent);
  double step = roundStep((last - first) / n_wanted);
  step = only_integers ? std::max(scaledDown(1.0, exponent), step) : step;
  const int n_decimals = std::clamp(-exponentOf(step * 1.0001), 0, 9);
  for (double k = std::ceil(first / step - 1e-6); k * step <= last + step * 1e-6; ++k) {
    const double value = k * step;
    result.ticks.push_back({base + scaledUp(value, exponent),
                            withMinus(fmt::format("{:.{}f}", value + 0.0, n_decimals))});
  }
  if (has_base) {
    result.suffix += " &#8722; " + withMinus(exactNumber(base));
  }
  if (has_factor) {
    result.suffix += " (&#215;&#8239;" + powerOfTen(exponent) + ")";
  }
  return result;
}

Axis widened(double low, double high, std::string label) {
  constexpr double kMax = std::numeric_limits<double>::max();
  if (!(low < high)) {
    const double room = low == 0.0 ? 1.0 : std::fabs(low) / 2;
    high = low > kMax - room ? kMax : low + room;
    low = low < -kMax + room ? -kMax : low - room;
  }
  return {low, high, false, std::move(label)};
}

Plot::Plot(Axis x, Axis y, PlotSize size)
    : x_axis_(std::move(x)), y_axis_(std::move(y)), size_(size) {
}

double Plot::x(double value) const {
  return size_.left + x_axis_.position(value) * (size_.width - size_.left - size_.right);
}

double Plot::y(double value) const {
  return size_.height - size_.bottom -
         y_axis_.position(value) * (size_.height - size_.top - size_.bottom);
}

void Plot::line(const Points& points, const std::string& css) {
  Points placed;
  for (const auto& [px, py] : points) {
    placed.push_back({x(px), y(py)});
  }
  marks_ += fmt::format("<path class=\"{}\" d=\"{}\"/>", css, pathOf(placed));
}

void Plot::area(const Points& points, const std::string& css) {
  Points placed;
  for (const auto& [px, py] : points) {
    placed.push_back({x(px), y(py)});
  }
  marks_ += fmt::format("<path class=\"{}\" d=\"{}Z\"/>", css, pathOf(placed));
}

void Plot::bar(double x_low, double x_high, double value, const std::string& css) {
  const double top = y(value);
  const double height = size_.height - size_.bottom - top;
  if (height > 0.0 && std::isfinite(height)) {
    marks_ += fmt::format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>", css,
        x(x_low), top, x(x_high) - x(x_low), height);
  }
}

void Plot::marker(double x_value,
                  double y_value,
                  const std::string& css,
                  const std::string& title) {
  marks_ += fmt::format(
      "<circle class=\"{}\" cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"4\"><title>{}</title></circle>", css,
      x(x_value), y(y_value), title);
}

void Plot::verticalLine(double value, const std::string& css, const std::string& text) {
  marks_ += fmt::format("<path class=\"{0}\" d=\"M{1:.2f} {2:.2f}V{3:.2f}\"/>", css, x(value),
                        size_.top, size_.height - size_.bottom);
  if (!text.empty()) {
    const bool is_left = x_axis_.position(value) < 0.5;
    marks_ +=
        fmt::format("<text class=\"note\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>",
                    x(value) + (is_left ? 4 : -4), size_.top + 11, is_left ? "start" : "end", text);
  }
}

void Plot::horizontalLine(double value, const std::string& css, const std::string& text) {
  marks_ += fmt::format("<path class=\"{}\" d=\"M{:.2f} {:.2f}H{:.2f}\"/>", css, size_.left,
                        y(value), size_.width - size_.right);
  if (!text.empty()) {
    const double below = y_axis_.position(value) > 0.5 ? -4 : 12;
    marks_ +=
        fmt::format("<text class=\"note\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"end\">{}</text>",
                    size_.width - size_.right - 2, y(value) + below, text);
  }
}

std::string Plot::grid() const {
  const double bottom = size_.height - size_.bottom;
  std::string svg;
  const Ticks across = ticksOf(x_axis_, 5, integer_x_);
  for (const Tick& tick : across.ticks) {
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{0:.2f} {1:.2f}V{2:.2f}\"/><text x=\"{0:.2f}\" y=\"{3:.2f}\" "
        "text-anchor=\"middle\">{4}</text>",
        x(tick.value), size_.top, bottom, bottom + 15, tick.text);
  }
  const Ticks upwards = ticksOf(y_axis_, 5);
  for (const Tick& tick : upwards.ticks) {
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{0:.2f} {1:.2f}H{2:.2f}\"/><text x=\"{3:.2f}\" y=\"{4:.2f}\" "
        "text-anchor=\"end\">{5}</text>",
        size_.left, y(tick.value), size_.width - size_.right, size_.left - 5, y(tick.value) + 4,
        tick.text);
  }
  svg += fmt::format(
      "<text class=\"axis\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">{}</text>",
      (size_.left + size_.width - size_.right) / 2, bottom + 33, x_axis_.label + across.suffix);
  const double middle = (size_.top + bottom) / 2;
  return svg + fmt::format(
                   "<text class=\"axis\" transform=\"rotate(-90 13 {0:.2f})\" x=\"13\" "
                   "y=\"{0:.2f}\" text-anchor=\"middle\">{1}</text>",
                   middle, y_axis_.label + upwards.suffix);
}

std::string Plot::svg(const std::string& description) const {
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" aria-label=\"{2}\">{3}{4}"
      "<path class=\"frame\" d=\"M{5:.2f} {6:.2f}V{7:.2f}H{8:.2f}\"/></svg>",
      size_.width, size_.height, escapeHtml(description), grid(), marks_, size_.left, size_.top,
      size_.height - size_.bottom, size_.width - size_.right);
}

std::string legend(const std::vector<LegendEntry>& entries) {
  std::string html = "<ul class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    html += fmt::format(
        "<li><svg viewBox=\"0 0 28 10\" width=\"28\" height=\"10\" aria-hidden=\"true\">{}</svg> "
        "{}</li>",
        entry.is_area
            ? fmt::format("<rect class=\"{}\" x=\"2\" y=\"0\" width=\"24\" height=\"10\"/>",
                          entry.css)
            : fmt::format("<path class=\"{}\" d=\"M1 5H27\"/>", entry.css),
        entry.text);
  }
  return html + "</ul>";
}

}  // namespace fz::report
