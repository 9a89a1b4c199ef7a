#pragma once

#include <span>
#include <string_view>

namespace fz {

/// A shipped configuration, compiled into the library.
struct Preset {
  std::string_view name;
  std::string_view summary;  ///< first comment line of the file
  std::string_view toml;
};

std::span<const Preset> allPresets();
/// Null when there is none of that name.
const Preset* findPreset(std::string_view name);

}  // namespace fz
