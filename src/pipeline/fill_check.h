#pragma once

#include <span>

#include "backends/cpu/parallel_for.h"
#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/span.h"

namespace fz {

/// Throws FillValueError as Pipeline::requireRangeWithoutFill() says. `bound` is what a frame of
/// these values states; bounds that no range of theirs led to, and types other than float and
/// double, pass.
void checkRangeBound(const BoundInfo& bound,
                     DataType type,
                     ByteView values,
                     std::span<const double> fill,
                     const CpuExecutor& executor);

}  // namespace fz
