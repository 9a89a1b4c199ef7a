#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "report/figures.h"
#include "report/plot.h"
#include "report/text.h"

namespace fz::report {

namespace {

/// Of counts: linear, or logarithmic where most bins could not be told from nothing.
Axis countAxis(const Histogram& histogram) {
  std::vector<std::size_t> counts;
  std::copy_if(histogram.counts.begin(), histogram.counts.end(), std::back_inserter(counts),
               [](std::size_t count) { return count > 0; });
  if (counts.empty()) {
    return {0.0, 1.0, false, "values"};
  }
  std::sort(counts.begin(), counts.end());
  const auto largest = static_cast<double>(counts.back());
  if (counts.back() > 100 * counts[counts.size() / 2]) {
    return {0.5, 2.0 * largest, true, "values (log)"};
  }
  return {0.0, 1.06 * largest, false, "values"};
}

Points outlineOf(const Histogram& histogram, double floor) {
  Points points;
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    const double count = std::max(floor, static_cast<double>(histogram.counts[i]));
    points.push_back({histogram.edge(i), count});
    points.push_back({histogram.edge(i + 1), count});
  }
  return points;
}

std::string drawValueHistogram(const Histograms& histograms) {
  Histogram original = histograms.original;
  Histogram decoded = histograms.decoded;
  if (!(original.low < original.high)) {
    // All values are the same: one bar in the middle of a wider axis.
    const Axis wide = widened(original.low, original.high, "");
    original.low = decoded.low = wide.low;
    original.high = decoded.high = wide.high;
  }
  const Axis counts = countAxis(original);
  Plot plot({original.low, original.high, false, "value"}, counts);
  for (std::size_t i = 0; i < original.counts.size(); ++i) {
    plot.bar(original.edge(i), original.edge(i + 1), static_cast<double>(original.counts[i]), "b1");
  }
  plot.line(outlineOf(decoded, counts.low), "l2");
  return "<figure><figcaption>Values</figcaption>" +
         plot.svg("Histogram of the values of original and reconstruction") +
         legend({{"b1", "original", true}, {"l2", "reconstruction"}}) + "</figure>";
}

std::string drawErrorHistogram(const Input& input, const Histograms& histograms) {
  const ErrorScale scale(input.check.rule);
  Histogram all = histograms.error;
  all.counts.insert(all.counts.end(), {histograms.n_below, histograms.n_above});
  const Axis counts = countAxis(all);
  constexpr double kReach = 1.18;  // room to see that nothing lies beyond the bound
  Plot plot({-kReach, kReach, false, scale.hasBound() ? "error / bound" : "error"}, counts);
  for (std::size_t i = 0; i < histograms.error.counts.size(); ++i) {
    plot.bar(histograms.error.edge(i), histograms.error.edge(i + 1),
             static_cast<double>(histograms.error.counts[i]), "b4");
  }
  const std::size_t n_beyond = histograms.n_below + histograms.n_above;
  plot.bar(-kReach, -1.0, static_cast<double>(histograms.n_below), "bad");
  plot.bar(1.0, kReach, static_cast<double>(histograms.n_above), "bad");
  if (scale.hasBound()) {
    plot.verticalLine(-1.0, "bound", "&#8722;bound");
    plot.verticalLine(1.0, "bound", "bound");
  }
  return fmt::format(
      "<figure><figcaption>Errors against the bound</figcaption>{}<p class=\"small\">{} beyond the "
      "bound, of {} finite values.</p></figure>",
      plot.svg("Histogram of the error in units of the bound; the bounds are marked"),
      n_beyond == 0 ? "None" : groupedNumber(n_beyond),
      groupedNumber(histograms.error.total() + n_beyond));
}

Points curveOf(const Spectrum& spectrum, const std::vector<double>& power, double low) {
  Points points;
  for (std::size_t k = 0; k < power.size(); ++k) {
    points.push_back({spectrum.frequency[k], power[k] >= low ? power[k] : std::nan("")});
  }
  return points;
}

/// Whole decades where there are few, so that two of them have a label.
Axis powerAxis(double low, double high) {
  if (high < 100.0 * low) {
    return {std::pow(10.0, std::floor(std::log10(low))),
            std::pow(10.0, std::floor(std::log10(high)) + 1), true, "power"};
  }
  return {low / 2, high * 2, true, "power"};
}

std::string spectrumNotes(const Figures& figures) {
  const Spectrum& s = figures.spectrum;
  std::string text;
  if (s.ndim == 1) {
    text = fmt::format("Mean over {} segments of {} values", s.n_segments,
                       *std::max_element(s.extents.begin(), s.extents.end()));
  } else {
    text = fmt::format("From a block of {} &#215; {}", s.extents[0], s.extents[1]);
    text += s.extents[2] > 1 ? fmt::format(" &#215; {}", s.extents[2]) : "";
    text += fmt::format(" values that begins at ({}, {}, {}), averaged over directions", s.start[0],
                        s.start[1], s.start[2]);
  }
  text += ". Hann window, mean removed; the unit is the total power of the original.";
  if (s.n_missing > 0) {
    text += fmt::format(" {} positions without a number count as the mean.",
                        groupedNumber(s.n_missing));
  }
  return text;
}

}  // namespace

std::string drawHistograms(const Input& input, const Figures& figures) {
  if (figures.summary.n_valid == 0) {
    return "";
  }
  return drawErrorHistogram(input, figures.histograms) + drawValueHistogram(figures.histograms);
}

std::string drawSpectrum(const Figures& figures) {
  const Spectrum& spectrum = figures.spectrum;
  if (spectrum.ndim == 0) {
    return figures.summary.n_valid == 0
               ? ""
               : "<figure><figcaption>Power spectrum</figcaption><p class=\"small\">None: the "
                 "field is constant or has no axis of 8 values.</p></figure>";
  }
  double low = HUGE_VAL;
  double high = 0.0;
  for (const std::vector<double>* power :
       {&spectrum.original, &spectrum.decoded, &spectrum.error}) {
    for (const double value : *power) {
      low = value > 0.0 ? std::min(low, value) : low;
      high = std::max(high, value);
    }
  }
  // Below this lies rounding, not signal.
  low = std::max(low, high * 1e-24);
  Plot plot({spectrum.frequency.front(), spectrum.frequency.back(), true, "cycles per sample"},
            powerAxis(low, high));
  plot.line(curveOf(spectrum, spectrum.original, low), "l1");
  plot.line(curveOf(spectrum, spectrum.decoded, low), "l2");
  plot.line(curveOf(spectrum, spectrum.error, low), "l3");
  return "<figure><figcaption>Power spectrum before and after</figcaption>" +
         plot.svg("Power spectra of original, reconstruction and error over the frequency") +
         legend({{"l1", "original"}, {"l2", "reconstruction"}, {"l3", "error"}}) +
         "<p class=\"small\">" + spectrumNotes(figures) + "</p></figure>";
}

}  // namespace fz::report
