#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "fz/bound.h"

namespace fz {

/// A shipped configuration, compiled into the library.
struct Preset {
  std::string_view name;
  std::string_view summary;  ///< first comment line of the file
  std::string_view toml;
};

/// Those that take a bound: first the presets by purpose (fast, balanced, best, auto), then the
/// families that papers name.
std::span<const Preset> allPresets();
/// "lossless": keeps every bit and takes no bound.
const Preset& losslessPreset();
/// What is taken where nobody names a preset: "balanced", or "pfpl" for bounds relative to each
/// value, which balanced does not keep.
const Preset& defaultPreset(std::optional<ErrorBoundMode> mode);
/// Of both kinds. Null when there is none of that name.
const Preset* findPreset(std::string_view name);

}  // namespace fz
