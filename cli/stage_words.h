#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stage_spec.h"

namespace fz::cli {

/// A stage whose words have become keys.
struct WantedStage {
  const StageSpec* spec = nullptr;
  std::vector<std::optional<DataType>> types;  // by type key; what was given
  std::vector<StageArgument> settings;

  const StageDescriptor& stage() const { return *spec->stage; }
  bool has(std::string_view key) const {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const StageArgument& a) { return a.key == key; });
  }
};

/// Finds out what the words in a stage's brackets mean. `text` is all of --stages, for messages.
/// Throws Failure(kUsage) with the place, what may have been meant, and what there is.
WantedStage resolveWords(std::string_view text, const StageSpec& spec);

/// "--stages 'TEXT': character PLACE: WHAT", as Failure(kUsage).
[[noreturn]] void failStages(std::string_view text, std::size_t place, const std::string& what);

}  // namespace fz::cli
