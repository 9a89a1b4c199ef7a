#pragma once

#include <string>

#include "failure.h"

namespace fz::cli {

/// Prints whether the HDF5 of this machine can load the filter plugin, and from where; kOk when it
/// can. HDF5 is opened at run time, so builds without it can ask too.
ExitCode printHdf5Info();

/// Whether there is an HDF5, and it does not see the plugin.
bool lacksHdf5Filter();

/// What HDF5_PLUGIN_PATH should be: the folder of the plugin that was installed with this program,
/// where it is there, else words for it.
std::string pluginFolderAdvice();

}  // namespace fz::cli
