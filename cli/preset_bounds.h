#pragma once

#include <string>
#include <vector>

#include "fz/presets.h"

namespace fz::cli {

/// The kinds of bound, as -b names them, that a preset keeps as -b promises them. Found by asking
/// the preset to compress a few values.
std::vector<std::string> boundsOf(const Preset& preset);

}  // namespace fz::cli
