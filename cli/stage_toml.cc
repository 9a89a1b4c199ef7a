// A built chain as a configuration, and in words.
#include <algorithm>
#include <fmt/format.h>

#include "fz/stage_descriptor.h"
#include "stage_spec.h"

namespace fz::cli {

std::string stagesToToml(const std::vector<BuiltStage>& stages) {
  std::string toml;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const BuiltStage& row = stages[i];
    toml += fmt::format("[[stage]]\nname = \"{}\"\ntype = \"{}\"\n", row.name, row.stage->name);
    for (std::size_t k = 0; k < row.types.size(); ++k) {
      toml +=
          fmt::format("{} = \"{}\"\n", row.stage->type_keys[k].key, dataTypeToString(row.types[k]));
    }
    for (const auto& [key, value] : row.settings) {
      toml += fmt::format("{} = {}\n", key, value);
    }
    if (i > 0) {
      toml += fmt::format("inputs = [{{ from = \"{}\", port = \"{}\" }}]\n", stages[i - 1].name,
                          row.port);
    }
    toml += "\n";
  }
  return toml;
}

std::string describeStages(const std::vector<BuiltStage>& stages, bool has_bound) {
  std::string text;
  for (const BuiltStage& row : stages) {
    std::string types;
    for (const DataType type : row.types) {
      types += fmt::format("{}{}", types.empty() ? " " : "/", dataTypeToString(type));
    }
    std::string settings;
    for (const auto& [key, value] : row.settings) {
      const bool is_chosen =
          std::find(row.chosen.begin(), row.chosen.end(), key) != row.chosen.end();
      if (is_chosen && has_bound && key.starts_with("error_bound")) {
        continue;
      }
      settings += fmt::format("{}{} = {}{}", settings.empty() ? ": " : ", ", key, value,
                              is_chosen ? " (chosen)" : "");
    }
    text += fmt::format("  {} = {}{}{}\n", row.name, row.stage->name, types, settings);
  }
  return text;
}

}  // namespace fz::cli
