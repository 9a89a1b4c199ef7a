#include <cmath>
#include <fmt/format.h>

#include "fz/bound_kind.h"
#include "report/figures.h"
#include "report/text.h"

namespace fz::report {

namespace {

/// A table of names and values, both HTML.
class Facts {
 public:
  explicit Facts(const std::string& title)
      : html_("<table class=\"facts\"><caption>" + title + "</caption><tbody>") {}
  void add(const std::string& name, const std::string& value) {
    html_ += "<tr><th scope=\"row\">" + name + "</th><td>" + value + "</td></tr>";
  }
  void add(const std::string& name, double value) { add(name, exactNumber(value)); }
  void addCount(const std::string& name, std::uint64_t value) {
    add(name, fmt::format("{}", value));
  }
  std::string html() const { return html_ + "</tbody></table>"; }

 private:
  std::string html_;
};

std::string archiveFacts(const Input& input, const Figures& figures) {
  Facts facts("Archive");
  const FrameInfo& info = input.info;
  facts.add("name", nameHtml(input.archive_name));
  facts.addCount("bytes", input.frame.size());
  if (input.chunk) {
    facts.addCount("chunks", input.chunk->n_chunks);
  } else {
    facts.addCount("of these header", info.header_bytes);
  }
  facts.add("SHA-256", "<code>" + figures.archive_sha256 + "</code>");
  facts.add("format", fmt::format("FZM {}.{}", info.version_major, info.version_minor));
  if (info.has_checksums) {
    facts.add("CRC-32 of header, payload",
              fmt::format("<code>{:08x}</code>, <code>{:08x}</code>", info.header_checksum,
                          info.payload_checksum));
  }
  facts.add("compression ratio", info.ratio());
  if (figures.summary.n_values > 0) {
    facts.add("bits per value", 8.0 * static_cast<double>(input.frame.size()) /
                                    static_cast<double>(figures.summary.n_values));
  }
  return facts.html();
}

std::string fieldFacts(const Input& input, const Figures& figures) {
  Facts facts("Field");
  const Summary& s = figures.summary;
  facts.add("name", nameHtml(input.original_name));
  facts.add("type", std::string(dataTypeToString(input.original.type)));
  facts.add("shape, x fastest", shapeHtml(input.original.dims));
  facts.addCount("values", s.n_values);
  facts.addCount("bytes", input.original.bytes.size());
  facts.add("CRC-32", fmt::format("<code>{:08x}</code>", figures.original_crc));
  const auto kept = [&](const char* name, const KeptCount& count) {
    facts.add(name, fmt::format("{}, kept bit for bit: {}", count.n_values, count.n_kept));
  };
  kept("NaN", input.check.nan);
  kept("infinite", input.check.infinity);
  kept("negative zeros", input.check.negative_zero);
  kept("fill values", input.check.fill);
  if (!s.fill.empty()) {
    std::string values;
    for (const double value : s.fill) {
      values += (values.empty() ? "" : " or ") + exactNumber(value);
    }
    facts.add(s.is_fill_declared ? "declared fill value" : "taken for a fill value",
              fmt::format("{}, {} times", values, s.n_fill));
  }
  if (s.n_valid > 0) {
    const auto both = [&](const char* name, double original, double decoded) {
      facts.add(name, exactNumber(original) + " &#8594; " + exactNumber(decoded));
    };
    both("smallest &#8594; decoded", s.original.min, s.decoded.min);
    both("largest &#8594; decoded", s.original.max, s.decoded.max);
    both("mean &#8594; decoded", s.original.mean, s.decoded.mean);
    both("standard deviation &#8594; decoded", s.original.deviation, s.decoded.deviation);
  }
  return facts.html();
}

std::string errorFacts(const Input& input, const Figures& figures) {
  Facts facts("Error");
  const CheckReport& check = input.check;
  if (input.info.bound) {
    facts.add("bound asked for", fmt::format("{}:{}", boundKindName(*input.info.bound),
                                             exactNumber(input.info.bound->requested)));
  }
  facts.add("checked on every value", escapeHtml(ruleText(check.rule)));
  facts.addCount("values beyond it", check.n_violations);
  if (!check.passed()) {
    facts.add("first beyond it",
              fmt::format("index {}: {} became {}", check.first_index,
                          exactNumber(check.first_original), exactNumber(check.first_decoded)));
  }
  facts.add("largest error", fmt::format("{} at index {}", exactNumber(check.stats.max_error),
                                         check.stats.max_error_index));
  if (check.rule.kind == BoundRule::Kind::kPointwise) {
    facts.add(
        "largest |x - x'| / |x|",
        fmt::format("{} at index {}", exactNumber(check.max_relative), check.max_relative_index));
  }
  const auto orNone = [](double value) {
    return std::isnan(value) ? std::string("n/a") : exactNumber(value);
  };
  facts.add("mean squared error", check.stats.mse);
  facts.add("NRMSE", orNone(check.nrmse()));
  facts.add(check.rule.fill.empty() ? "PSNR in dB, over all finite values"
                                    : "PSNR in dB, over all values that are not missing",
            orNone(check.psnr()));
  if (figures.summary.n_valid > 0) {
    facts.add("PSNR in dB, without fill values", orNone(figures.summary.valid_psnr));
  }
  facts.add("value range", check.stats.value_range);
  return facts.html();
}

std::string stageTable(const Figures& figures) {
  std::string html =
      "<div class=\"scroll\"><table class=\"data full\"><caption>Stages, each by itself</caption><thead><tr><th "
      "scope=\"col\">stage<th class=\"words\" scope=\"col\">types<th class=\"words\" "
      "scope=\"col\">settings<th "
      "scope=\"col\">bytes in<th scope=\"col\">bytes out<th scope=\"col\">compress, ms<th "
      "scope=\"col\">decompress, ms</tr></thead><tbody>";
  const auto bytes = [](const std::optional<std::uint64_t>& n) {
    return n ? fmt::format("{}", *n) : std::string("&#8211;");
  };
  const auto time = [](const std::optional<double>& ms) {
    return ms ? fmt::format("{:.4f}", *ms) : std::string("&#8211;");
  };
  for (const StageRow& stage : figures.stages.stages) {
    std::string settings;
    for (const std::string& setting : stage.settings) {
      settings += (settings.empty() ? "" : "<br>") + escapeHtml(setting);
    }
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"words\">{}</td><td class=\"words\">{}</td>"
        "<td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        escapeHtml(stage.name), escapeHtml(stage.types), settings, bytes(stage.input_bytes),
        bytes(stage.output_bytes), time(stage.compress_ms), time(stage.decompress_ms));
  }
  return html + "</tbody></table></div>";
}

std::string histogramRows(const Histogram& first, const Histogram* second) {
  std::string html;
  for (std::size_t i = 0; i < first.counts.size(); ++i) {
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td>", exactNumber(first.edge(i)),
                        exactNumber(first.edge(i + 1)), first.counts[i]);
    html += second != nullptr ? fmt::format("<td>{}</td></tr>", second->counts[i]) : "</tr>";
  }
  return html;
}

std::string seriesTables(const Figures& figures) {
  const Histograms& h = figures.histograms;
  std::string html;
  const auto table = [&](const char* summary, const char* head, const std::string& rows) {
    html += fmt::format(
        "<details><summary>{}</summary><div class=\"scroll\"><table class=\"data\"><thead><tr>{}"
        "</tr></thead><tbody>{}</tbody></table></div></details>",
        summary, head, rows);
  };
  if (figures.summary.n_valid > 0) {
    table("Error histogram, in units of the bound",
          "<th scope=\"col\">from<th scope=\"col\">to<th scope=\"col\">values",
          histogramRows(h.error, nullptr));
    table("Value histogram",
          "<th scope=\"col\">from<th scope=\"col\">to<th scope=\"col\">original<th "
          "scope=\"col\">reconstruction",
          histogramRows(h.original, &h.decoded));
  }
  std::string rows;
  const Spectrum& s = figures.spectrum;
  for (std::size_t k = 0; k < s.frequency.size(); ++k) {
    rows += fmt::format("<tr><td>{}</td><td>{:.6e}</td><td>{:.6e}</td><td>{:.6e}</td></tr>",
                        exactNumber(s.frequency[k]), s.original[k], s.decoded[k], s.error[k]);
  }
  if (!rows.empty()) {
    table("Power spectrum",
          "<th scope=\"col\">cycles per sample<th scope=\"col\">original<th "
          "scope=\"col\">reconstruction<th scope=\"col\">error",
          rows);
  }
  return html;
}

}  // namespace

std::string drawTables(const Input& input, const Figures& figures) {
  return "<div class=\"two\"><div>" + archiveFacts(input, figures) + errorFacts(input, figures) +
         "</div><div>" + fieldFacts(input, figures) + "</div></div>" + stageTable(figures) +
         seriesTables(figures);
}

}  // namespace fz::report
