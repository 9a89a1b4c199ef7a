#pragma once

#include <string>
#include <vector>

#include "field_io.h"
#include "fz/host_api.h"

namespace fz::cli {

/// What a user should look at although the archive keeps its promises: one sentence each.
std::vector<std::string> warningsFor(const Field& field, const FrameInfo& info);

}  // namespace fz::cli
