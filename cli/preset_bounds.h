#pragma once

#include <string>
#include <vector>

#include "fz/presets.h"

namespace fz::cli {

/// Whether a preset keeps bounds of this kind as -b promises them. Found by asking it to compress a
/// few values.
bool takesBound(const Preset& preset, ErrorBoundMode mode);
/// The kinds that it takes, as -b names them.
std::vector<std::string> boundsOf(const Preset& preset);

}  // namespace fz::cli
