#pragma once

#include <string>
#include <vector>

namespace fz::report {

/// One horizontal bar.
struct BarRow {
  std::string name;    ///< HTML
  std::string detail;  ///< HTML, smaller; may be empty
  double value = 0.0;
  std::string text;  ///< the value for people, HTML
  std::string css;   ///< fill1 (plain) or fill2 (striped)
};

/// The longest takes the whole width; of rows that follow each other the name is shown once. A
/// table, so that it reads well without the bars.
std::string drawBars(const std::vector<BarRow>& rows);

}  // namespace fz::report
