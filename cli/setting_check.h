#pragma once

#include "fz/host_api.h"

namespace fz::cli {

/// Puts the name that a stage has in its configuration into settings (--set) that call it by its
/// type, in any spelling that --stages takes, or name no stage. Throws Failure(kUsage) for settings
/// that no stage of the pipeline has, with the stages, their keys and, where a name is nearly
/// right, the right one, and for those that several have, with their names. A configuration that
/// cannot be read passes: the library says what is wrong with it.
void resolveSettings(CompressOptions& options, DataType type);

}  // namespace fz::cli
