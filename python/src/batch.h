#pragma once

#include <nanobind/nanobind.h>

namespace fz::python {

/// compress_batch(), decompress_batch().
void bindBatch(nanobind::module_& module);

}  // namespace fz::python
