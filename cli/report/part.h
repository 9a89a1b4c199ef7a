#pragma once

#include "report/report.h"

namespace fz::report {

/// What is run again and again for a page, to measure it: all of a field, or of a large one whole
/// planes or rows from the middle, to keep time and memory in bounds.
FieldView middlePart(const FieldView& field);

/// How the archive's pipeline compresses a part with this bound, which is in the archive's mode. A
/// part has a range of its own; there the bound of the whole field counts. Needs input.options and
/// a bound.
CompressOptions optionsForPart(const Input& input, const FieldView& part, double bound);

}  // namespace fz::report
