#pragma once

#include <optional>
#include <span>
#include <string>

#include "backends/cpu/parallel_for.h"
#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/error.h"
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

/// "-9999 occurs 5 times in 10 values and makes the range 10304 instead of 34, as fill values do".
std::string describeFill(const FillValueFinding& finding);
/// The value that such a check would name, whatever the bound; looks at all values.
std::optional<FillValueFinding> suspectedFill(DataType type,
                                              ByteView values,
                                              std::span<const double> fill,
                                              const CpuExecutor& executor);

}  // namespace fz
