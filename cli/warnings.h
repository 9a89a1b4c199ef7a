#pragma once

#include <string_view>

#include "field_io.h"
#include "fz/host_api.h"

namespace fz::cli {

/// What a user should look at although the archive keeps its promises: one sentence each, on
/// standard error. Of these a quiet command says only that values may be lost. `pipeline` is the
/// name of the preset, so that none is advised that is in use. `suspects_fill`: values may look
/// like fill values that nobody declared.
void printWarnings(const Field& field,
                   const FrameInfo& info,
                   std::string_view pipeline,
                   bool is_quiet,
                   bool suspects_fill);

}  // namespace fz::cli
