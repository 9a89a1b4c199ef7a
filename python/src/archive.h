#pragma once

#include <nanobind/nanobind.h>
#include <optional>

#include "fz/bound.h"
#include "fz/host_api.h"

namespace fz::python {

/// Extents as numpy has them, the slowest axis first, and back.
nanobind::tuple shapeToPython(const AxisValues& extents);
AxisValues extentsFrom(AxisValues shape);

/// What a frame or archive promises, as a dict; None where it is nothing.
nanobind::object boundToPython(const std::optional<BoundInfo>& bound);

/// NativeSource, NativeReader, recover(), and what bindArchiveWriter() binds.
void bindArchive(nanobind::module_& module);
/// NativeWriter, RangeScan.
void bindArchiveWriter(nanobind::module_& module);

}  // namespace fz::python
