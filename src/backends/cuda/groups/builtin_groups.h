#pragma once

#include <span>
#include <vector>

#include "backends/cuda/group_kernels.h"

namespace fz::cuda {

/// The kernels of the families that are compiled with the library, a list per file.
std::vector<std::span<const BuiltinGroup>> builtinGroups();

std::span<const BuiltinGroup> bitpackF32U32Plain();
std::span<const BuiltinGroup> bitpackF32U32Outlier();
std::span<const BuiltinGroup> bitpackF32U16Plain();
std::span<const BuiltinGroup> bitpackF32U16Outlier();
std::span<const BuiltinGroup> bitpackF64U32Plain();
std::span<const BuiltinGroup> bitpackF64U32Outlier();
std::span<const BuiltinGroup> bitpackF64U16Plain();
std::span<const BuiltinGroup> bitpackF64U16Outlier();

}  // namespace fz::cuda
