#include <chrono>
#include <cmath>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "fz/bound_kind.h"
#include "report/figures.h"
#include "report/judgement.h"
#include "report/page_style.h"
#include "report/text.h"

namespace fz::report {

namespace {

/// A figure that stands out at the top.
std::string tile(const std::string& name, const std::string& value, const std::string& detail) {
  return fmt::format("<div class=\"tile\"><dt>{}</dt><dd>{}<small>{}</small></dd></div>", name,
                     value, detail);
}

std::string boundHtml(const FrameInfo& info) {
  if (!info.bound) {
    return info.lossless ? "lossless" : "none stated";
  }
  std::string text =
      fmt::format("{} {}", boundKindName(*info.bound), roundNumber(info.bound->requested, 6));
  if (info.bound->mode != ErrorBoundMode::ABS && info.bound->absolute > 0.0) {
    text += fmt::format(" = {} absolute", roundNumber(info.bound->absolute, 6));
  }
  return text;
}

/// What else the reader should know before trusting the bound alone, in its own colour.
std::string judgementsHtml(const std::vector<Judgement>& judgements) {
  std::string html;
  for (const Judgement& one : judgements) {
    const bool is_note = one.severity == Severity::kNote;
    const bool is_loss = one.severity == Severity::kLoss;
    html += fmt::format("<p class=\"verdict {}\"><span aria-hidden=\"true\">{}</span> {}</p>",
                        is_loss   ? "no"
                        : is_note ? "note"
                                  : "doubt",
                        is_loss   ? "&#10007;"
                        : is_note ? "i"
                                  : "!",
                        escapeHtml(one.text));
  }
  return html;
}

/// The tick is for a kept bound with nothing else to say against the archive.
std::string verdict(const Input& input, const std::vector<Judgement>& judgements) {
  const CheckReport& check = input.check;
  const Severity worst = judgements.empty() ? Severity::kNote : judgements.front().severity;
  if (check.passed()) {
    return fmt::format(
        "<p class=\"verdict {}\"><span aria-hidden=\"true\">{}</span> {} <span "
        "class=\"rule\">{}</span></p>",
        worst == Severity::kNote ? "ok" : "plain", worst == Severity::kNote ? "&#10003;" : "",
        check.n_values == 0 ? "There are no values that could break"
        : check.n_values == 1
            ? "The one value meets"
            : "Every one of the " + groupedNumber(check.n_values) + " values meets",
        escapeHtml(ruleText(check.rule)));
  }
  return fmt::format(
      "<p class=\"verdict no\"><span aria-hidden=\"true\">&#10007;</span> {} of {} values break "
      "<span class=\"rule\">{}</span>, the first at index {}</p>",
      groupedNumber(check.n_violations), groupedNumber(check.n_values),
      escapeHtml(ruleText(check.rule)), check.first_index);
}

std::string tiles(const Input& input, const Figures& figures) {
  const CheckReport& check = input.check;
  std::string html = "<dl class=\"tiles\">";
  const double ratio = input.info.ratio();
  html += tile("ratio", ratio >= 1.0 ? fmt::format("{:.2f}", ratio) : roundNumber(ratio, 3),
               fmt::format("{} to {}", roundBytes(input.original.bytes.size()),
                           roundBytes(input.frame.size())));
  if (figures.summary.n_values > 0) {
    html += tile("bits per value",
                 roundNumber(8.0 * static_cast<double>(input.frame.size()) /
                                 static_cast<double>(figures.summary.n_values),
                             3),
                 fmt::format("of {}", 8 * input.original.valueBytes()));
  }
  const bool is_absolute = check.rule.kind == BoundRule::Kind::kAbsolute && check.rule.value > 0.0;
  const bool is_pointwise =
      check.rule.kind == BoundRule::Kind::kPointwise && check.rule.value > 0.0;
  html +=
      tile(is_pointwise ? "largest relative error" : "largest error",
           roundNumber(is_pointwise ? check.max_relative : check.stats.max_error, 4),
           is_absolute || is_pointwise
               ? fmt::format("{:.1f} % of the bound",
                             100.0 * ((is_pointwise ? check.max_relative : check.stats.max_error) /
                                      check.rule.value))
               : boundHtml(input.info));
  const double psnr = figures.summary.valid_psnr;
  html += tile("PSNR",
               std::isnan(psnr)      ? "&#8211;"
               : std::isfinite(psnr) ? fmt::format("{:.1f} dB", psnr)
                                     : roundNumber(psnr),
               figures.summary.n_valid == 0 ? "there are no finite values"
               : std::isnan(psnr)           ? "the values have no range"
               : figures.summary.n_fill > 0 ? "without fill values"
                                            : "of the range of finite values");
  const auto speed = [&](const CallFigures& call) {
    return call.whole_ms > 0.0
               ? roundNumber(static_cast<double>(figures.stages.field_bytes) / call.whole_ms * 1e-6,
                             3)
               : std::string("&#8211;");
  };
  const StageFigures& stages = figures.stages;
  html += tile(
      "speed",
      (stages.compress ? speed(*stages.compress) + " / " : "") + speed(stages.decompress) + " GB/s",
      stages.compress ? "compress / decompress" : "decompress");
  return html + "</dl>";
}

std::string head(const Input& input) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n<meta name=\"generator\" content=\"fz {}\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n<title>{} - fz report</title>\n<style>{}</style>\n</head>\n",
      FZ_CLI_VERSION, escapeHtml(input.original_name), pageStyle());
}

std::string provenance(const Input& input) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format(
      "<footer><p>Made with fz {} on {:%Y-%m-%d %H:%M} UTC by</p><pre><code>{}</code></pre><p "
      "class=\"small\">Counts, sums and the check of the bound are over every value, errors "
      "without rounding. Pictures and spectra of large fields show a part, as stated there. The "
      "page is complete in itself; the figures stand in it once more as JSON.</p></footer>",
      FZ_CLI_VERSION, fmt::gmtime(now), escapeHtml(input.command));
}

}  // namespace

std::string makePage(const Input& input) {
  const Figures figures = collectFigures(input);
  const std::string shape = shapeHtml(input.original.dims);
  std::string page = head(input) + "<body>\n<main>\n<header>";
  page += fmt::format("<h1>{}</h1><p class=\"lead\">{}, {}{}, bound {}</p>",
                      nameHtml(input.original_name), dataTypeToString(input.original.type), shape,
                      axisCount(input.original.dims) > 1 ? ""
                      : input.original.count() == 1      ? " value"
                                                         : " values",
                      boundHtml(input.info));
  const std::vector<Judgement> judgements = judge(input, figures);
  page += verdict(input, judgements) + judgementsHtml(judgements) + tiles(input, figures) +
          "</header>\n";
  page += "<section><h2>Before and after</h2>" + drawField(input, figures) + "</section>\n";
  const std::string distributions = drawHistograms(input, figures) + drawSpectrum(figures);
  if (!distributions.empty()) {
    page += "<section><h2>Distributions and spectrum</h2><div class=\"three\">" + distributions +
            "</div></section>\n";
  }
  page += drawSweep(input, figures) + drawPresets(input);
  page += "<section><h2>Stages</h2>" + drawPipeline(input, figures) + "</section>\n";
  page += "<section><h2>All figures</h2>" + drawTables(input, figures) + "</section>\n";
  page += provenance(input) + "</main>\n<script type=\"application/json\" id=\"figures\">" +
          figuresJson(input, figures) + "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace fz::report
