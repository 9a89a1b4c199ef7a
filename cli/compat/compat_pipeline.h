#pragma once

#include <string>

#include "compat/compat_options.h"

namespace fz::cli::compat {

/// The configuration that --stages means, with the settings that the tool always gave its stages.
/// Throws Failure(kUsage) for unknown stages, an empty list and types other than f32 and f64.
std::string stagesToToml(const Options& options);

}  // namespace fz::cli::compat
