#pragma once

#include <string>

#include "fz/data_type.h"

namespace fz::cuda {

/// The type as device code spells it: float, double, std::int32_t and so on.
std::string cppTypeName(DataType type);

}  // namespace fz::cuda
