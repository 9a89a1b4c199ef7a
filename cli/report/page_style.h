#pragma once

#include <string_view>

namespace fz::report {

/// The style sheet of the page: light and dark, screens of any width, paper.
std::string_view pageStyle();

}  // namespace fz::report
