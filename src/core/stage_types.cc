#include "fz/stage_types.h"

#include <algorithm>

namespace fz {

namespace {

using Types = std::vector<DataType>;

bool fits(const Types& types, std::span<const std::optional<DataType>> given) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i < given.size() && given[i] && *given[i] != types[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Types> candidateTypes(const StageDescriptor& stage,
                                  std::span<const std::optional<DataType>> given,
                                  DataType incoming) {
  if (stage.type_combinations.empty()) {
    return {Types{}};
  }
  std::vector<Types> found;
  std::copy_if(stage.type_combinations.begin(), stage.type_combinations.end(),
               std::back_inserter(found), [&](const Types& types) { return fits(types, given); });
  const Types usual = defaultTypes(stage);
  const auto distance = [&](const Types& types) {
    std::size_t n = types.front() != incoming ? types.size() : 0;
    for (std::size_t i = 1; i < types.size(); ++i) {
      const bool follows = stage.type_keys[i].default_type == DataType::UNKNOWN;
      n += types[i] != (follows ? types.front() : usual[i]) ? 1 : 0;
    }
    return n;
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Types& a, const Types& b) { return distance(a) < distance(b); });
  return found;
}

}  // namespace fz
