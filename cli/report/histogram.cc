#include "report/histogram.h"

#include <algorithm>
#include <numeric>

namespace fz::report {

namespace {

Histogram emptyHistogram(double low, double high, std::size_t n_bins) {
  return {low, high, std::vector<std::size_t>(n_bins, 0)};
}

void add(Histogram& histogram, double value) {
  const double width = histogram.high / 2 - histogram.low / 2;
  const double part = width > 0.0 ? (value / 2 - histogram.low / 2) / width : 0.5;
  const auto n_bins = static_cast<double>(histogram.counts.size());
  const double bin = std::clamp(std::floor(part * n_bins), 0.0, n_bins - 1.0);
  ++histogram.counts[static_cast<std::size_t>(bin)];
}

}  // namespace

double Histogram::edge(std::size_t bin) const {
  const double part = static_cast<double>(bin) / static_cast<double>(counts.size());
  return low * (1.0 - part) + high * part;
}

std::size_t Histogram::total() const {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

std::size_t Histogram::largest() const {
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

Histograms countValues(const FieldView& original,
                       const FieldView& decoded,
                       const Summary& summary,
                       const ErrorScale& scale) {
  Histograms result;
  result.original = emptyHistogram(summary.original.min, summary.original.max, kValueBins);
  result.decoded = result.original;
  result.error = emptyHistogram(-1.0, 1.0, kErrorBins);
  const std::size_t n = original.count();
  readBoth(original, decoded, [&](const auto& before, const auto& after) {
    for (std::size_t i = 0; i < n; ++i) {
      const double x = before[i];
      const double y = after[i];
      if (contentOf(x, summary.fill) != Content::kValue) {
        continue;
      }
      add(result.original, x);
      if (!std::isfinite(y)) {
        continue;
      }
      add(result.decoded, y);
      const double error = scale(x, y);
      if (error > kBeyond) {
        ++result.n_above;
      } else if (error < -kBeyond) {
        ++result.n_below;
      } else {
        add(result.error, error);
      }
    }
  });
  return result;
}

}  // namespace fz::report
