#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "report/figures.h"
#include "report/plot.h"
#include "report/text.h"

namespace fz::report {

namespace {

using Column = Series::Column;

/// The area between the smallest and the largest of each column, or a line where they are one.
void drawBand(Plot& plot,
              const Series& series,
              double Column::*low,
              double Column::*high,
              const std::string& css) {
  const bool is_line = series.columns.size() == series.end - series.begin;
  Points upper;
  Points lower;
  const auto flush = [&] {
    if (is_line) {
      plot.line(upper, css);
    } else if (!upper.empty()) {
      upper.insert(upper.end(), lower.rbegin(), lower.rend());
      plot.area(upper, css + " band");
    }
    upper.clear();
    lower.clear();
  };
  for (const Column& column : series.columns) {
    if (column.n_valid == 0) {
      flush();
      continue;
    }
    const auto at = static_cast<double>(column.begin);
    upper.push_back({at, std::clamp(column.*high, plot.yAxis().low, plot.yAxis().high)});
    lower.push_back({at, std::clamp(column.*low, plot.yAxis().low, plot.yAxis().high)});
  }
  flush();
  if (series.columns.size() == 1 && series.columns[0].n_valid > 0) {
    plot.marker(static_cast<double>(series.columns[0].begin), series.columns[0].*low,
                css + " solid", "");
  }
}

Plot seriesPlot(const Series& series, Axis y) {
  Axis x = widened(static_cast<double>(series.begin), static_cast<double>(series.end - 1), "index");
  Plot plot(std::move(x), std::move(y));
  plot.setIntegerX();
  return plot;
}

Axis valueAxis(const Series& series) {
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  for (const Column& column : series.columns) {
    if (column.n_valid > 0) {
      low = std::min({low, column.original_low, column.decoded_low});
      high = std::max({high, column.original_high, column.decoded_high});
    }
  }
  return low <= high ? widened(low, high, "value") : widened(0.0, 0.0, "value");
}

std::string drawValues(const Series& series, const char* title, const char* description) {
  Plot plot = seriesPlot(series, valueAxis(series));
  drawBand(plot, series, &Column::original_low, &Column::original_high, "l1");
  drawBand(plot, series, &Column::decoded_low, &Column::decoded_high, "l2");
  return fmt::format("<figure><figcaption>{}</figcaption>{}{}</figure>", title,
                     plot.svg(description),
                     legend({{"l1", "original x"}, {"l2", "reconstruction x&#8242;"}}));
}

}  // namespace

std::string drawSeries(const Input& input, const Figures& figures) {
  const Series& series = *figures.series;
  const ErrorScale scale(input.check.rule);
  std::string html = "<div class=\"three\">" +
                     drawValues(series, "Values", "Original and reconstruction over the index");
  if (figures.detail) {
    html += drawValues(*figures.detail, "Detail from the middle",
                       "A short part of original and reconstruction");
  }
  double largest = 1.0;
  for (const Column& column : series.columns) {
    const double size = std::max(std::fabs(column.error_low), std::fabs(column.error_high));
    largest = std::isfinite(size) ? std::max(largest, size) : largest;
  }
  Plot plot = seriesPlot(series, {-1.15 * largest, 1.15 * largest, false,
                                  scale.hasBound() ? "error / bound" : "error"});
  drawBand(plot, series, &Column::error_low, &Column::error_high, "l4");
  if (scale.hasBound()) {
    plot.horizontalLine(1.0, "bound", "bound");
    plot.horizontalLine(-1.0, "bound", "");
  }
  html += "<figure><figcaption>Error</figcaption>" +
          plot.svg("Error over the index, in units of the bound") + "</figure></div>";
  if (series.columns.size() < series.end - series.begin) {
    html += fmt::format(
        "<p class=\"small\">The {} values are drawn in {} columns, each from the smallest to the "
        "largest value in it, so that no error is hidden.</p>",
        groupedNumber(series.end - series.begin), series.columns.size());
  }
  return html;
}

}  // namespace fz::report
