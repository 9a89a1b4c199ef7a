#pragma once

#include <string>
#include <vector>

#include "fz/backend.h"
#include "fz/tile_op.h"
#include "pipeline/plan/plan.h"

namespace fz {

/// Why the ops of a chain do not fit together; empty when they do, and then `step` has the size of
/// their values and, on the CPU, of their tiles. The roles must have been found to follow each
/// other.
std::string fusionObstacle(const std::vector<DAGNode*>& nodes,
                           const std::vector<TileOp>& ops,
                           Backend backend,
                           Step& step);

}  // namespace fz
