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
// One function per file.
std::span<const BuiltinGroup> pfplF32Groups();
std::span<const BuiltinGroup> pfplF64Groups();
std::span<const BuiltinGroup> shuffleF32Groups();
std::span<const BuiltinGroup> shuffleF64Groups();
std::span<const BuiltinGroup> bitplaneF32Groups();
std::span<const BuiltinGroup> bitplaneF64Groups();
std::span<const BuiltinGroup> lorenzoQuantF32Groups();
std::span<const BuiltinGroup> lorenzoQuantF64Groups();
std::span<const BuiltinGroup> lorenzoQuantGridF32Groups();
std::span<const BuiltinGroup> lorenzoQuantGridF64Groups();

}  // namespace fz::cuda
