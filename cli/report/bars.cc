#include "report/bars.h"

#include <algorithm>
#include <fmt/format.h>

namespace fz::report {

std::string drawBars(const std::vector<BarRow>& rows) {
  double largest = 0.0;
  for (const BarRow& row : rows) {
    largest = std::max(largest, row.value);
  }
  std::string html = "<table class=\"bars\">";
  for (const BarRow& row : rows) {
    html += fmt::format(
        "<tr><th scope=\"row\">{}{}</th><td class=\"track\"><div class=\"fill {}\" "
        "style=\"width:{:.2f}%\"></div></td><td>{}</td></tr>",
        row.name, row.detail.empty() ? "" : " <small>" + row.detail + "</small>", row.css,
        largest > 0.0 ? 100.0 * row.value / largest : 0.0, row.text);
  }
  return html + "</table>";
}

}  // namespace fz::report
