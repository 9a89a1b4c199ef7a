#include "stage/stage.h"

namespace fz {

int Stage::getOutputIndex(const std::string& name) const {
  const std::vector<std::string> names = getOutputNames();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::size_t Stage::getActualOutputSize(int output_index) const {
  const std::vector<std::string> names = getOutputNames();
  if (output_index < 0 || static_cast<std::size_t>(output_index) >= names.size()) {
    return 0;
  }
  const auto sizes = getActualOutputSizesByName();
  const auto found = sizes.find(names[static_cast<std::size_t>(output_index)]);
  return found == sizes.end() ? 0 : found->second;
}

const std::vector<std::size_t>& Stage::neededOutputSizes() const {
  static const std::vector<std::size_t> kNone;
  return kNone;
}

const ParamTable& Stage::paramTable() const {
  static const ParamTable kNone;
  return kNone;
}

}  // namespace fz
