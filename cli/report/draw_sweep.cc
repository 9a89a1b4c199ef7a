#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "fz/bound_kind.h"
#include "report/bars.h"
#include "report/figures.h"
#include "report/plot.h"
#include "report/text.h"

namespace fz::report {

namespace {

bool isDrawn(const SweepPoint& point) {
  return point.refused.empty() && std::isfinite(point.psnr);
}

std::string drawCurve(const Input& input, const Sweep& sweep) {
  std::vector<SweepPoint> drawn;
  std::copy_if(sweep.points.begin(), sweep.points.end(), std::back_inserter(drawn), isDrawn);
  if (drawn.size() < 2) {
    return "<p class=\"small\">Fewer than two bounds gave a curve; see the table.</p>";
  }
  std::sort(drawn.begin(), drawn.end(), [](const SweepPoint& a, const SweepPoint& b) {
    return a.bits_per_value < b.bits_per_value;
  });
  const auto [low, high] =
      std::minmax_element(drawn.begin(), drawn.end(),
                          [](const SweepPoint& a, const SweepPoint& b) { return a.psnr < b.psnr; });
  const double room = std::max(1.0, 0.08 * (high->psnr - low->psnr));
  const double width = std::max(drawn.back().bits_per_value - drawn.front().bits_per_value, 0.1);
  Plot plot({std::max(0.0, drawn.front().bits_per_value - 0.2 * width),
             drawn.back().bits_per_value + 0.1 * width, false, "bits per value"},
            {low->psnr - room, high->psnr + room, false, "PSNR in dB"});
  Points points;
  for (const SweepPoint& point : drawn) {
    points.push_back({point.bits_per_value, point.psnr});
  }
  plot.line(points, "l1");
  for (const SweepPoint& point : drawn) {
    const bool is_own = point.requested == input.info.bound->requested;
    plot.marker(point.bits_per_value, point.psnr, is_own ? "own" : "dot",
                fmt::format("bound {}, ratio {:.2f}, PSNR {:.2f} dB", point.requested, point.ratio,
                            point.psnr));
    // Next to the point, on the side where there is room.
    const bool is_right = plot.x(point.bits_per_value) > 0.65 * plot.size().width;
    plot.add(
        fmt::format("<text class=\"note\" text-anchor=\"{}\" x=\"{:.1f}\" "
                    "y=\"{:.1f}\">{}</text>",
                    is_right ? "end" : "start", plot.x(point.bits_per_value) + (is_right ? -8 : 8),
                    plot.y(point.psnr) + (is_right ? -4 : 12),
                    roundNumber(point.requested, 3) + (is_own ? " (this archive)" : "")));
  }
  return plot.svg("Rate-distortion curve: PSNR over bits per value, one point for each bound");
}

std::string sweepTable(const Input& input, const Sweep& sweep) {
  std::string html =
      "<div class=\"scroll\"><table class=\"data\"><thead><tr><th scope=\"col\">bound<th "
      "scope=\"col\">ratio<th scope=\"col\">bits/value<th scope=\"col\">PSNR, dB<th "
      "scope=\"col\">largest error<th scope=\"col\">beyond bound<th scope=\"col\">GB/s, compress / "
      "decompress</tr></thead><tbody>";
  for (const SweepPoint& point : sweep.points) {
    html += fmt::format("<tr><th scope=\"row\">{}:{}</th>", boundKindName(*input.info.bound),
                        point.requested);
    if (!point.refused.empty()) {
      html += fmt::format("<td colspan=\"6\">refused: {}</td></tr>", escapeHtml(point.refused));
      continue;
    }
    html += fmt::format(
        "<td>{:.3f}</td><td>{:.4f}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2f} / {:.2f}"
        "</td></tr>",
        point.ratio, point.bits_per_value, roundNumber(point.psnr, 5), roundNumber(point.max_error),
        point.n_violations, point.compress_gbs, point.decompress_gbs);
  }
  return html + "</tbody></table></div>";
}

}  // namespace

std::string drawSweep(const Input& input, const Figures& figures) {
  const Sweep& sweep = figures.sweep;
  if (sweep.points.empty()) {
    return "";
  }
  std::string note = "Every point was compressed, decoded and checked value by value.";
  if (sweep.is_part) {
    note += fmt::format(" Measured on {} values from the middle of the field.",
                        groupedNumber(sweep.n_values));
  }
  return fmt::format(
      "<section><h2>Rate and distortion</h2><div class=\"split\"><figure><figcaption>Bits and "
      "quality over the bound</figcaption>{}</figure><div>{}<p class=\"small\">{}</p></div></div>"
      "</section>",
      drawCurve(input, sweep), sweepTable(input, sweep), note);
}

std::string drawPresets(const Input& input) {
  if (input.presets.empty()) {
    return "";
  }
  std::string html =
      "<section><h2>All presets on this field</h2><div class=\"scroll\"><table class=\"data full\"><thead>"
      "<tr><th scope=\"col\">preset<th scope=\"col\">ratio<th scope=\"col\">bound<th "
      "scope=\"col\">largest error<th scope=\"col\">PSNR, dB<th scope=\"col\">beyond bound<th "
      "scope=\"col\">compress, GB/s<th scope=\"col\">decompress, GB/s</tr></thead><tbody>";
  std::vector<BarRow> ratios;
  std::vector<BarRow> speeds;
  for (const PresetResult& row : input.presets) {
    const std::string name = escapeHtml(row.name);
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{:.2f}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{:.2f}</td><td>{:.2f}</td></tr>",
        name, row.ratio, roundNumber(row.bound, 5), roundNumber(row.max_error, 5),
        roundNumber(row.psnr, 4), row.n_violations, row.compress_gbs, row.decompress_gbs);
    ratios.push_back({name, "", row.ratio, fmt::format("{:.2f}", row.ratio), "fill1"});
    speeds.push_back({name, "compress", row.compress_gbs,
                      fmt::format("{:.2f}&#160;GB/s", row.compress_gbs), "fill1"});
    speeds.push_back({name, "decompress", row.decompress_gbs,
                      fmt::format("{:.2f}&#160;GB/s", row.decompress_gbs), "fill2"});
  }
  return html + "</tbody></table></div><div class=\"two\"><figure><figcaption>Compression ratio" +
         "</figcaption>" + drawBars(ratios) + "</figure><figure><figcaption>Speed</figcaption>" +
         drawBars(speeds) + "</figure></div></section>";
}

}  // namespace fz::report
