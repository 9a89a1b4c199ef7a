#pragma once

#include <nanobind/nanobind.h>

namespace fz::python {

/// stages(), presets(), inspect(), verify().
void bindRegistry(nanobind::module_& module);
void bindInspect(nanobind::module_& module);
void bindVerify(nanobind::module_& module);

}  // namespace fz::python
