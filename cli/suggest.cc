#include "suggest.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace fz::cli {

namespace {

std::string bare(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('-'), text.size()));
  std::string lower(text.substr(0, text.find('=')));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

std::size_t editDistance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return table[i * width + j];
  };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = i + j;
        continue;
      }
      const std::size_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return table.back();
}

std::string closest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string wanted = bare(word);
  std::string best;
  // A third of the letters may be wrong; one letter says too little to guess from.
  const std::size_t most_wrong =
      wanted.size() > 1 ? std::max<std::size_t>(1, wanted.size() / 3) : 0;
  std::size_t best_distance = most_wrong + 1;
  for (const std::string& candidate : candidates) {
    const std::string name = bare(candidate);
    if (name.size() < 2) {
      continue;
    }
    const bool is_prefix = wanted.size() >= 2 && name.starts_with(wanted);
    const std::size_t distance = is_prefix ? 1 : editDistance(wanted, name);
    const bool is_shorter = distance == best_distance && name.size() < bare(best).size();
    if (distance < best_distance || is_shorter) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string didYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = closest(word, candidates);
  return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

}  // namespace fz::cli
