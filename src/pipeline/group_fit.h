#pragma once

#include <string>
#include <vector>

#include "fz/backend.h"
#include "pipeline/dag.h"

namespace fz {

class SimpleStage;

/// The node's stage where it is one that can take part in a group, else null.
const SimpleStage* tileStage(const DAGNode& node);

/// Why the ops of a chain do not fit together; empty when they do, and then `group` has the size of
/// their values and, on the CPU, of their tiles. The roles must have been found to follow each
/// other.
std::string misfit(const std::vector<DAGNode*>& chain, Backend backend, FusedGroup& group);

}  // namespace fz
