#pragma once

namespace fz::python {

/// Turns fz::Error and fz::InvalidArgument into the classes of fz.errors, by their code.
void registerErrors();

}  // namespace fz::python
