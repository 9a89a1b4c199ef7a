#pragma once

#include <string>

#include "json_report.h"

namespace fz::cli {

/// What a file or, for "-", standard input says of itself: a frame or an archive of chunks. Throws
/// Failure, Error.
NamedFrame inspectAny(const std::string& file);

}  // namespace fz::cli
