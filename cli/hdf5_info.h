#pragma once

#include "failure.h"

namespace fz::cli {

/// Prints whether the HDF5 of this machine can load the filter plugin, and from where; kOk when it
/// can. HDF5 is opened at run time, so builds without it can ask too.
ExitCode printHdf5Info();

}  // namespace fz::cli
