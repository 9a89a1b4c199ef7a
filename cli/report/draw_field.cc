#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "report/colour_map.h"
#include "report/figures.h"
#include "report/plot.h"
#include "report/png.h"
#include "report/text.h"

namespace fz::report {

namespace {

constexpr std::array<const char*, 3> kAxisNames = {"x", "y", "z"};
constexpr std::uint8_t kBeyondIndex = kMapColours;
constexpr std::uint8_t kNothingIndex = kMapColours + 1;
constexpr Rgb kBeyondColour = {255, 0, 255};

/// What one picture of a slice shows.
struct Panel {
  std::string title;        ///< HTML
  std::string description;  ///< plain text
  const std::vector<double>* values = nullptr;
  const std::vector<Rgb>* map = nullptr;
  Axis scale;                 ///< of the colours
  double unit = 1.0;          ///< a pixel's value times this is on the scale
  bool marks_beyond = false;  ///< values outside the scale break the bound
};

std::string dataUri(const Slice& slice, const Panel& panel) {
  IndexedImage image{slice.width, slice.height, {}, *panel.map, kNothingIndex};
  image.palette.push_back(kBeyondColour);
  image.palette.push_back({255, 255, 255});
  image.pixels.reserve(slice.width * slice.height);
  for (std::size_t row = slice.height; row-- > 0;) {
    for (std::size_t column = 0; column < slice.width; ++column) {
      const std::size_t i = row * slice.width + column;
      const double value = (*panel.values)[i];
      if (slice.content[i] != Content::kValue) {
        image.pixels.push_back(kNothingIndex);
      } else if (panel.marks_beyond && std::fabs(value) > kBeyond) {
        image.pixels.push_back(kBeyondIndex);
      } else {
        const double part = std::clamp(panel.scale.position(value * panel.unit), 0.0, 1.0);
        image.pixels.push_back(
            static_cast<std::uint8_t>(std::lround(part * static_cast<double>(kMapColours - 1))));
      }
    }
  }
  return "data:image/png;base64," + base64(encodePng(image));
}

/// The colours of a map as stops of a gradient.
std::string gradient(const std::vector<Rgb>& map, const std::string& id) {
  constexpr std::size_t kStops = 32;
  std::string svg = fmt::format("<linearGradient id=\"{}\">", id);
  for (std::size_t i = 0; i <= kStops; ++i) {
    svg +=
        fmt::format("<stop offset=\"{:.5f}\" stop-color=\"{}\"/>", static_cast<double>(i) / kStops,
                    hexColour(map[i * (map.size() - 1) / kStops]));
  }
  return svg + "</linearGradient>";
}

/// Geometry of a picture with its axes and its colour bar, in units of the SVG.
constexpr double kPanelWidth = 360;
constexpr double kLeft = 44;
constexpr double kRight = 22;
constexpr double kTop = 6;
constexpr double kBarHeight = 10;

std::string panelAxes(const Slice& slice, double image_width, double image_height) {
  std::string svg;
  const double bottom = kTop + image_height;
  const auto indexAxis = [&](std::size_t k) {
    return Axis{-0.5, static_cast<double>(slice.extents[k]) - 0.5, false, ""};
  };
  for (const Tick& tick : ticksOf(indexAxis(0), 5, true).ticks) {
    const double x = kLeft + indexAxis(0).position(tick.value) * image_width;
    svg += fmt::format(
        "<path class=\"tick\" d=\"M{0:.2f} {1:.2f}v4\"/><text x=\"{0:.2f}\" y=\"{2:.2f}\" "
        "text-anchor=\"middle\">{3}</text>",
        x, bottom, bottom + 15, tick.text);
  }
  const int n_wanted = image_height > 120 ? 5 : 2;
  for (const Tick& tick : ticksOf(indexAxis(1), n_wanted, true).ticks) {
    const double y = bottom - indexAxis(1).position(tick.value) * image_height;
    svg += fmt::format(
        "<path class=\"tick\" d=\"M{0:.2f} {1:.2f}h-4\"/><text x=\"{2:.2f}\" y=\"{3:.2f}\" "
        "text-anchor=\"end\">{4}</text>",
        kLeft, y, kLeft - 6, y + 4, tick.text);
  }
  const auto label = [&](std::size_t k) {
    return kAxisNames[slice.axes[k]] + ticksOf(indexAxis(k), 5, true).suffix;
  };
  svg +=
      fmt::format("<text class=\"axis\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">{}</text>",
                  kLeft + image_width / 2, bottom + 29, label(0));
  return svg + fmt::format(
                   "<text class=\"axis\" transform=\"rotate(-90 12 {0:.2f})\" x=\"12\" "
                   "y=\"{0:.2f}\" text-anchor=\"middle\">{1}</text>",
                   kTop + image_height / 2, label(1));
}

std::string colourBar(const Panel& panel, const std::string& id, double y, double width) {
  std::string svg = gradient(*panel.map, id) +
                    fmt::format(
                        "<rect class=\"outline\" x=\"{}\" y=\"{:.2f}\" width=\"{:.2f}\" "
                        "height=\"{}\" fill=\"url(#{})\"/>",
                        kLeft, y, width, kBarHeight, id);
  const Ticks ticks = ticksOf(panel.scale, 6);
  for (const Tick& tick : ticks.ticks) {
    const double x = kLeft + panel.scale.position(tick.value) * width;
    svg += fmt::format(
        "<path class=\"tick\" d=\"M{0:.2f} {1:.2f}v4\"/><text x=\"{0:.2f}\" y=\"{2:.2f}\" "
        "text-anchor=\"middle\">{3}</text>",
        x, y + kBarHeight, y + kBarHeight + 15, tick.text);
  }
  return svg + fmt::format(
                   "<text class=\"axis\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">{}{}"
                   "</text>",
                   kLeft + width / 2, y + kBarHeight + 30, panel.scale.label, ticks.suffix);
}

std::string drawPanel(const Slice& slice, const Panel& panel, const std::string& id) {
  const double width = kPanelWidth - kLeft - kRight;
  const double aspect =
      static_cast<double>(slice.extents[1]) / static_cast<double>(slice.extents[0]);
  const double height = width * std::clamp(aspect, 0.3, 1.25);
  const double bar_y = kTop + height + 38;
  return fmt::format(
      "<figure><figcaption>{0}</figcaption><svg class=\"plot\" viewBox=\"0 0 {1} {2:.0f}\" "
      "role=\"img\" aria-label=\"{3}\"><defs><pattern id=\"{4}h\" width=\"6\" height=\"6\" "
      "patternUnits=\"userSpaceOnUse\"><rect class=\"nothing\" width=\"6\" height=\"6\"/><path "
      "class=\"hatch\" d=\"M0 6L6 0M-1 1L1 -1M5 7L7 5\"/></pattern></defs><rect x=\"{5}\" "
      "y=\"{6}\" width=\"{7:.2f}\" height=\"{8:.2f}\" fill=\"url(#{4}h)\"/><image x=\"{5}\" "
      "y=\"{6}\" width=\"{7:.2f}\" height=\"{8:.2f}\" preserveAspectRatio=\"none\" "
      "href=\"{9}\"/><rect class=\"outline\" fill=\"none\" x=\"{5}\" y=\"{6}\" "
      "width=\"{7:.2f}\" height=\"{8:.2f}\"/>{10}{11}</svg></figure>",
      panel.title, kPanelWidth, bar_y + kBarHeight + 36, escapeHtml(panel.description), id, kLeft,
      kTop, width, height, dataUri(slice, panel), panelAxes(slice, width, height),
      colourBar(panel, id + "c", bar_y, width));
}

std::string sliceName(const Slice& slice) {
  return slice.is_whole
             ? std::string()
             : fmt::format(" at {} = {}", kAxisNames[slice.fixed_axis], slice.fixed_index);
}

Panel errorPanel(const Slice& slice, const ErrorScale& scale) {
  Panel panel;
  panel.title = "Error";
  panel.values = &slice.error;
  panel.map = &divergingMap();
  panel.marks_beyond = true;
  const bool is_absolute = scale.isAbsolute() && scale.bound() > 0.0;
  panel.unit = is_absolute ? scale.bound() : 1.0;
  panel.scale = {-panel.unit, panel.unit, false,
                 is_absolute        ? "x &#8722; x&#8242;, from &#8722;bound to bound"
                 : scale.hasBound() ? "(x &#8722; x&#8242;) / (bound of x)"
                                    : "lossless: every error is 0"};
  panel.description =
      fmt::format("Map of the error{}, from minus the bound to the bound", sliceName(slice));
  return panel;
}

std::string missingNote(const Summary& summary) {
  std::string kinds;
  const auto add = [&](std::size_t n, const std::string& kind) {
    kinds += n == 0 ? "" : (kinds.empty() ? "" : ", ") + kind;
  };
  add(summary.n_nan, "NaN");
  add(summary.n_infinity, "infinite");
  std::string values;
  for (const double value : summary.fill) {
    values += (values.empty() ? "" : " or ") + roundNumber(value);
  }
  add(summary.n_fill, "the fill value " + values);
  return kinds.empty() ? "" : " Hatched: no number (" + kinds + ").";
}

std::string sliceNotes(const Slice& slice, const Figures& figures, const ColourRange& range) {
  std::string text;
  if (slice.is_whole) {
    text = "The whole field";
  } else {
    text = fmt::format("The plane {} = {}", kAxisNames[slice.fixed_axis], slice.fixed_index);
  }
  text += ", the first row at the bottom. Original and reconstruction share one colour scale";
  text += range.is_cut ? ", which leaves out the outermost half percent of values on either side."
                       : ".";
  if (slice.values_per_pixel != std::array<std::size_t, 2>{1, 1}) {
    text += fmt::format(
        " A pixel stands for {} &#215; {} values: for their mean and, in the map of the error, for "
        "the largest error.",
        slice.values_per_pixel[0], slice.values_per_pixel[1]);
  }
  text += missingNote(figures.summary);
  if (figures.histograms.n_above + figures.histograms.n_below > 0) {
    text += " Magenta: beyond the bound.";
  }
  return text;
}

std::string drawSlice(const Input& input, const Figures& figures) {
  const Slice& slice = *figures.slice;
  const ColourRange range = colourRange(slice);
  const ErrorScale scale(input.check.rule);
  Panel original{"Original x",
                 fmt::format("Map of the original{}", sliceName(slice)),
                 &slice.original,
                 &sequentialMap(),
                 widened(range.low, range.high, "value"),
                 1.0,
                 false};
  Panel decoded = original;
  decoded.title = "Reconstruction x&#8242;";
  decoded.description = fmt::format("Map of the reconstruction{}", sliceName(slice));
  decoded.values = &slice.decoded;
  return "<div class=\"three\">" + drawPanel(slice, original, "po") +
         drawPanel(slice, decoded, "pd") + drawPanel(slice, errorPanel(slice, scale), "pe") +
         "</div><p class=\"small\">" + sliceNotes(slice, figures, range) + "</p>";
}

}  // namespace

std::string drawField(const Input& input, const Figures& figures) {
  if (figures.slice) {
    return drawSlice(input, figures);
  }
  if (figures.series && figures.summary.n_valid > 0) {
    return drawSeries(input, figures);
  }
  return figures.summary.n_values == 0
             ? "<p>The field is empty: there is nothing to draw.</p>"
             : "<p>The field holds no finite values: there is nothing to draw.</p>";
}

}  // namespace fz::report
