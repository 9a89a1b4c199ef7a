#pragma once

#include <span>
#include <vector>

#include "backends/cuda/group_kernels.h"

namespace fz::cuda {

/// The kernels of the families that are compiled with the library, a list per file.
std::vector<std::span<const BuiltinGroup>> builtinGroups();

}  // namespace fz::cuda
