#pragma once

#include <exception>
#include <nanobind/nanobind.h>

namespace fz::python {

/// Turns fz::Error and fz::InvalidArgument into the classes of fz.errors, by their code.
void registerErrors();
/// The same as an object, which nobody raises.
nanobind::object errorObject(const std::exception_ptr& thrown);

}  // namespace fz::python
