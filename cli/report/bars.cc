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
  std::string last_name;
  for (const BarRow& row : rows) {
    // The second bar of a name has it for readers of the screen only.
    const bool is_same = row.name == last_name;
    last_name = row.name;
    html += fmt::format(
        "<tr{}><th scope=\"row\">{}{}</th><td class=\"track\"><div class=\"fill {}\" "
        "style=\"width:{:.2f}%\"></div></td><td>{}</td></tr>",
        is_same ? " class=\"same\"" : "",
        is_same ? "<span class=\"unseen\">" + row.name + "</span>" : row.name,
        row.detail.empty() ? "" : " <small>" + row.detail + "</small>", row.css,
        largest > 0.0 ? 100.0 * row.value / largest : 0.0, row.text);
  }
  return html + "</table>";
}

}  // namespace fz::report
