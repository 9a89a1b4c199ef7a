#pragma once

#include <nanobind/nanobind.h>
#include <string_view>
#include <vector>

#include "fz/backend.h"
#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/params.h"

namespace fz::python {

// Both throw InvalidArgument for another text.
DataType typeFromText(std::string_view text);
Backend backendFromText(std::string_view text);

/// bool, int, float and str.
nanobind::object toPython(const ParamValue& value);
/// Throws a Python TypeError for any other type.
ParamValue paramFromPython(nanobind::handle value);

nanobind::str toPython(std::string_view text);
/// A list of type names.
nanobind::list typesToPython(const std::vector<DataType>& types);

}  // namespace fz::python
