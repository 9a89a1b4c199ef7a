#include <algorithm>
#include <fmt/format.h>

#include "report/bars.h"
#include "report/figures.h"
#include "report/text.h"

namespace fz::report {

namespace {

// Geometry of the graph, in units of the SVG, which the page shows at most at this size.
constexpr double kNodeWidth = 168;
constexpr double kNodeHeight = 40;
constexpr double kColumnGap = 20;
constexpr double kRowGap = 34;
constexpr double kMargin = 8;
constexpr double kSegmentWidth = 124;

/// Where everything stands: levels downwards, the stages of a level side by side, segments in a
/// last row, those of early stages to the right of all stages so that no line crosses a box.
struct Layout {
  std::vector<double> node_x;  ///< middle
  std::vector<double> node_y;  ///< top
  std::vector<double> segment_x;
  double segment_y = 0.0;
  double width = 0.0;
  double height = 0.0;
};

bool hasReader(const StageFigures& figures, std::size_t stage) {
  return std::any_of(figures.stages.begin(), figures.stages.end(), [&](const StageRow& row) {
    return std::find(row.sources.begin(), row.sources.end(), stage) != row.sources.end();
  });
}

Layout layOut(const StageFigures& figures) {
  Layout layout;
  std::vector<std::size_t> n_in_level;
  std::size_t n_levels = 0;
  for (const StageRow& stage : figures.stages) {
    n_levels = std::max(n_levels, stage.level + 1);
    n_in_level.resize(n_levels, 0);
    const auto column = static_cast<double>(n_in_level[stage.level]++);
    layout.node_x.push_back(kMargin + kNodeWidth / 2 + column * (kNodeWidth + kColumnGap));
    layout.node_y.push_back(kMargin +
                            (kNodeHeight + kRowGap) * static_cast<double>(stage.level + 1));
  }
  const std::size_t n_columns = *std::max_element(n_in_level.begin(), n_in_level.end());
  layout.segment_y = kMargin + (kNodeHeight + kRowGap) * static_cast<double>(n_levels + 1);
  double lane = kMargin + static_cast<double>(n_columns) * (kNodeWidth + kColumnGap);
  layout.width = lane - kColumnGap + kMargin;
  std::vector<bool> is_below(figures.stages.size(), false);
  for (const SegmentRow& segment : figures.segments) {
    // One segment of a last stage hangs right below it.
    if (!hasReader(figures, segment.stage) && !is_below[segment.stage]) {
      is_below[segment.stage] = true;
      layout.segment_x.push_back(layout.node_x[segment.stage]);
      continue;
    }
    layout.segment_x.push_back(lane + kSegmentWidth / 2);
    lane += kSegmentWidth + kColumnGap / 2;
    layout.width = lane - kColumnGap / 2 + kMargin;
  }
  layout.height = layout.segment_y + kNodeHeight + kMargin;
  return layout;
}

struct Box {
  double x = 0.0;  ///< middle
  double y = 0.0;  ///< top
  double width = kNodeWidth;
  const char* css = "node";
};

std::string drawBox(const Box& box,
                    const std::string& head,
                    const std::string& line,
                    const std::string& title) {
  return fmt::format(
      "<g><title>{6}</title><rect class=\"{0}\" x=\"{1:.1f}\" y=\"{2:.1f}\" width=\"{3:.1f}\" "
      "height=\"{4}\" rx=\"6\"/><text class=\"head\" x=\"{5:.1f}\" y=\"{7:.1f}\" "
      "text-anchor=\"middle\">{8}</text><text x=\"{5:.1f}\" y=\"{9:.1f}\" "
      "text-anchor=\"middle\">{10}</text></g>",
      box.css, box.x - box.width / 2, box.y, box.width, kNodeHeight, box.x, title,
      box.y + (line.empty() ? 25 : 17), head, box.y + 32, line);
}

std::string drawEdge(double from_x, double from_y, double to_x, double to_y) {
  const double bend = (to_y - from_y) / 2;
  return fmt::format(
      "<path class=\"edge\" marker-end=\"url(#arrow)\" d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} "
      "{:.1f} {:.1f} {:.1f}\"/>",
      from_x, from_y, from_x, from_y + bend, to_x, to_y - bend, to_x, to_y - 2);
}

std::string edgeLabel(double x, double y, const std::string& text) {
  return fmt::format("<text class=\"note\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + 7, y, text);
}

std::string drawGroups(const StageFigures& figures, const Layout& layout) {
  constexpr double kRoom = 7;
  std::string svg;
  for (const std::vector<std::size_t>& group : figures.groups) {
    double left = layout.width;
    double right = 0.0;
    double top = layout.height;
    double bottom = 0.0;
    for (const std::size_t i : group) {
      left = std::min(left, layout.node_x[i] - kNodeWidth / 2);
      right = std::max(right, layout.node_x[i] + kNodeWidth / 2);
      top = std::min(top, layout.node_y[i]);
      bottom = std::max(bottom, layout.node_y[i] + kNodeHeight);
    }
    svg += fmt::format(
        "<rect class=\"group\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "rx=\"10\"><title>These stages run as one pass over memory</title></rect>",
        left - kRoom, top - kRoom, right - left + 2 * kRoom, bottom - top + 2 * kRoom);
  }
  return svg;
}

std::string settingsTitle(const StageRow& stage) {
  std::string text = escapeHtml(stage.name);
  for (const std::string& setting : stage.settings) {
    text += "&#10;" + escapeHtml(setting);
  }
  return text;
}

std::string drawStageBoxes(const StageFigures& figures, const Layout& layout) {
  std::string svg;
  for (std::size_t i = 0; i < figures.stages.size(); ++i) {
    const StageRow& stage = figures.stages[i];
    const double x = layout.node_x[i];
    const double y = layout.node_y[i];
    if (stage.sources.empty()) {
      svg += drawEdge(layout.node_x[0], kMargin + kNodeHeight, x, y);
    }
    for (const std::size_t from : stage.sources) {
      svg += drawEdge(layout.node_x[from], layout.node_y[from] + kNodeHeight, x, y);
    }
    if (!stage.sources.empty() && stage.input_bytes) {
      svg += edgeLabel(x, y - kRowGap / 2 + 4, roundBytes(*stage.input_bytes));
    }
    svg += drawBox({x, y}, escapeHtml(stage.name), escapeHtml(stage.types), settingsTitle(stage));
  }
  return svg;
}

std::string drawSegments(const StageFigures& figures, const Layout& layout) {
  std::string svg;
  for (std::size_t i = 0; i < figures.segments.size(); ++i) {
    const SegmentRow& segment = figures.segments[i];
    const double x = layout.segment_x[i];
    const double from_x = layout.node_x[segment.stage];
    const double from_y = layout.node_y[segment.stage];
    if (x == from_x) {
      svg += drawEdge(x, from_y + kNodeHeight, x, layout.segment_y);
    } else {
      svg += fmt::format(
          "<path class=\"edge\" marker-end=\"url(#arrow)\" d=\"M{0:.1f} {1:.1f}H{2:.1f}Q{3:.1f} "
          "{1:.1f} {3:.1f} {4:.1f}V{5:.1f}\"/>",
          from_x + kNodeWidth / 2, from_y + kNodeHeight / 2, x - 8, x, from_y + kNodeHeight / 2 + 8,
          layout.segment_y - 2);
    }
    svg += drawBox({x, layout.segment_y, kSegmentWidth, "store"}, escapeHtml(segment.port),
                   roundBytes(segment.n_bytes), fmt::format("{} bytes", segment.n_bytes));
  }
  return svg;
}

std::string drawGraph(const Input& input, const StageFigures& figures) {
  const Layout layout = layOut(figures);
  std::string names;
  for (const StageRow& stage : figures.stages) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", stage.name);
  }
  return fmt::format(
             "<figure><figcaption>Pipeline</figcaption><svg class=\"graph\" viewBox=\"0 0 {0:.0f} "
             "{1:.0f}\" style=\"max-width:{0:.0f}px\" role=\"img\" aria-label=\"The stages of the "
             "pipeline from the field to what is stored: {2}\"><defs><marker id=\"arrow\" "
             "viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
             "orient=\"auto\"><path class=\"tip\" d=\"M0 0L8 4L0 8Z\"/></marker></defs>",
             layout.width, layout.height, escapeHtml(names)) +
         drawGroups(figures, layout) +
         drawBox({layout.node_x[0], kMargin, kNodeWidth, "store"},
                 fmt::format("field, {}", dataTypeToString(input.original.type)),
                 roundBytes(figures.field_bytes), "The original") +
         drawStageBoxes(figures, layout) + drawSegments(figures, layout) + "</svg>" +
         (figures.groups.empty()
              ? ""
              : "<p class=\"small\">A dashed frame marks stages that run as one pass over "
                "memory.</p>") +
         "</figure>";
}

std::string callText(const char* what, const CallFigures& call, std::size_t n_bytes) {
  std::string passes;
  for (const StageTimingResult& pass : call.passes) {
    passes += fmt::format("{}{} {} ms", passes.empty() ? "" : "; ", escapeHtml(pass.name),
                          roundNumber(static_cast<double>(pass.elapsed_ms), 3));
  }
  const double gbs =
      call.whole_ms > 0.0 ? static_cast<double>(n_bytes) / call.whole_ms * 1e-6 : 0.0;
  return fmt::format("<li>{}: {} ms, {} GB/s ({})</li>", what, roundNumber(call.whole_ms, 3),
                     roundNumber(gbs, 3), passes);
}

std::string drawTimes(const StageFigures& figures) {
  std::vector<BarRow> rows;
  for (const StageRow& stage : figures.stages) {
    const auto add = [&](const char* direction, const std::optional<double>& ms, const char* css) {
      if (ms) {
        rows.push_back(
            {escapeHtml(stage.name), direction, *ms, roundNumber(*ms, 3) + "&#160;ms", css});
      }
    };
    add("compress", stage.compress_ms, "fill1");
    add("decompress", stage.decompress_ms, "fill2");
  }
  std::string html = "<figure><figcaption>Time per stage</figcaption>" + drawBars(rows) +
                     fmt::format(
                         "<p class=\"small\">Each stage by itself, {} backend, {} threads. "
                         "As the pipeline normally runs, whole calls:</p><ul class=\"small\">",
                         escapeHtml(figures.backend), escapeHtml(figures.threads));
  if (figures.compress) {
    html += callText("compress", *figures.compress, figures.field_bytes);
  }
  return html + callText("decompress", figures.decompress, figures.field_bytes) + "</ul></figure>";
}

std::string drawBytes(const StageFigures& figures) {
  std::vector<BarRow> rows;
  const auto add = [&](const std::string& name, const char* detail, std::uint64_t n_bytes) {
    rows.push_back({name, detail, static_cast<double>(n_bytes), roundBytes(n_bytes), "fill1"});
  };
  add("field", "", figures.field_bytes);
  for (const StageRow& stage : figures.stages) {
    if (stage.output_bytes) {
      add(escapeHtml(stage.name), "all outputs", *stage.output_bytes);
    }
  }
  add("archive", "with header", figures.archive_bytes);
  return "<figure><figcaption>Bytes after each stage</figcaption>" + drawBars(rows) + "</figure>";
}

}  // namespace

std::string drawPipeline(const Input& input, const Figures& figures) {
  if (figures.stages.stages.empty()) {
    return "";
  }
  const bool is_part = figures.stages.n_values != figures.summary.n_values;
  return "<div class=\"two\">" + drawGraph(input, figures.stages) + "<div>" +
         drawTimes(figures.stages) + drawBytes(figures.stages) + "</div></div>" +
         (is_part ? fmt::format("<p class=\"small\">All of this section is of {} values from the "
                                "middle of the field.</p>",
                                groupedNumber(figures.stages.n_values))
                  : "");
}

}  // namespace fz::report
