#pragma once

#include "fz/host_api.h"

namespace fz::cli {

/// Refuses settings (--set) that no stage of the pipeline has. Throws Failure(kUsage) with the
/// stages, their keys and, where a name is nearly right, the right one. A configuration that cannot
/// be read passes: the library says what is wrong with it.
void checkSettings(const CompressOptions& options, DataType type);

}  // namespace fz::cli
