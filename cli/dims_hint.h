#pragma once

#include <string>

#include "field_io.h"
#include "fz/host_api.h"

namespace fz::cli {

/// A raw field fits its extents in any order, but neighbours are neighbours in one only. What to
/// try where rows of the reversed order suit a sample far better; empty otherwise. `info` is that
/// of the archive.
std::string reversedDimsHint(const Field& field, const FrameInfo& info);

}  // namespace fz::cli
