#pragma once

#include <string>

namespace CLI {
class App;
}

/// Texts made from the options that the tool really has, so that they cannot differ from them.
namespace fz::cli {

/// fz.1, in roff with the macros of man(7).
std::string manualPage(const CLI::App& root);
std::string bashCompletion(const CLI::App& root);
std::string zshCompletion(const CLI::App& root);
std::string fishCompletion(const CLI::App& root);

/// A text for roff: backslashes, and dots and quotes at the start of a line, are made harmless.
std::string roff(const std::string& text);

}  // namespace fz::cli
