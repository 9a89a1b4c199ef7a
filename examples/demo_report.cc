#include "demo_report.h"

#include <algorithm>
#include <fmt/format.h>

namespace fz::demo {

namespace {

constexpr const char* kStyle =
    "<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;"
    "margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;width:100%}.wide{overflow-x:auto}"
    "th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid #8884}"
    "th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}"
    "text{fill:currentColor;font:13px system-ui,sans-serif}</style>";

std::string escapeHtml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// Horizontal bars of one figure, longest = full width.
template <class Get>
std::string bars(const std::string& title, const std::vector<Row>& rows, Get get) {
  double largest = 1e-30;
  for (const Row& row : rows) {
    largest = std::max(largest, get(row));
  }
  const std::size_t height = 24 * rows.size();
  std::string svg =
      fmt::format("<h2>{}</h2><svg viewBox=\"0 0 760 {}\" role=\"img\" aria-label=\"{}\">", title,
                  height, title);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    svg += fmt::format(
        "<text x=\"0\" y=\"{0}\">{1}</text><rect x=\"220\" y=\"{2}\" width=\"{3:.1f}\" "
        "height=\"16\" rx=\"3\" fill=\"#4c8bd6\"/><text x=\"{4:.1f}\" y=\"{0}\">{5:.2f}</text>",
        24 * i + 16, rows[i].preset, 24 * i + 3, 460 * get(rows[i]) / largest,
        226 + 460 * get(rows[i]) / largest, get(rows[i]));
  }
  return svg + "</svg>";
}

}  // namespace

std::string tableHead() {
  return fmt::format("{:<26} {:>8} {:>11} {:>11} {:>7} {:>11} {:>9} {:>9}\n", "preset", "ratio",
                     "bound", "max error", "PSNR", "violations", "comp GB/s", "dec GB/s");
}

std::string tableLine(const Row& row) {
  return fmt::format("{:<26} {:>8.2f} {:>11.4e} {:>11.4e} {:>7.1f} {:>11} {:>9.2f} {:>9.2f}\n",
                     row.preset, row.ratio, row.bound, row.max_error, row.psnr, row.n_violations,
                     row.compress_gbs, row.decompress_gbs);
}

std::string htmlPage(const std::string& field, double bound, const std::vector<Row>& rows) {
  std::string page = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>fz demo</title>{}<h1>fz demo</h1><p>Field: {}. Bound: "
      "{} of the value range, checked exactly on every value.</p><div class=\"wide\"><table><tr>"
      "<th>preset<th>ratio<th>bound<th>max error<th>PSNR<th>violations<th>compress "
      "GB/s<th>decompress GB/s",
      kStyle, escapeHtml(field), bound);
  for (const Row& row : rows) {
    page +=
        fmt::format("<tr><td>{}<td>{:.2f}<td>{:.4e}<td>{:.4e}<td>{:.1f}<td>{}<td>{:.2f}<td>{:.2f}",
                    row.preset, row.ratio, row.bound, row.max_error, row.psnr, row.n_violations,
                    row.compress_gbs, row.decompress_gbs);
  }
  page += "</table></div>";
  page += bars("Compression ratio", rows, [](const Row& row) { return row.ratio; });
  page += bars("Compress, GB/s", rows, [](const Row& row) { return row.compress_gbs; });
  page += bars("Decompress, GB/s", rows, [](const Row& row) { return row.decompress_gbs; });
  return page + "</html>\n";
}

}  // namespace fz::demo
