// Running a fused group on the CPU: tile after tile through all of its stages.
#include "core/require.h"
#include "pipeline/dag.h"

namespace fz {

void CompressionDAG::runGroup(FusedGroup& group, cudaStream_t /*stream*/) {
  detail::throwError(ErrorCode::kInternal, group.name + ": no tile operations on the CPU");
}

}  // namespace fz
