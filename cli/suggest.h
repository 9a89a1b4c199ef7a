#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fz::cli {

/// Insertions, deletions, replacements and swaps of neighbours between two texts.
std::size_t editDistance(std::string_view a, std::string_view b);

/// The candidate most like `word`, or an empty text when none is close. Upper and lower case and
/// leading dashes do not count.
std::string closest(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean 'X'?" or an empty text.
std::string didYouMean(std::string_view word, const std::vector<std::string>& candidates);

/// What stands between such a hint and more text: nothing behind its question mark, else ";".
constexpr std::string_view afterHint(std::string_view hint) {
  return hint.empty() ? ";" : "";
}

}  // namespace fz::cli
