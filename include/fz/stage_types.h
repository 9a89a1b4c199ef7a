#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fz/data_type.h"
#include "fz/stage_descriptor.h"

namespace fz {

/// The element types that a stage may be made with after data of type `incoming`, the best first:
/// those that take the incoming type, then those nearest to the defaults. `given` has one entry per
/// type key, with the types that are settled. A stage without type keys has one candidate, which is
/// empty.
std::vector<std::vector<DataType>> candidateTypes(const StageDescriptor& stage,
                                                  std::span<const std::optional<DataType>> given,
                                                  DataType incoming);

}  // namespace fz
