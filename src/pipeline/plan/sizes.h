#pragma once

#include <cstddef>
#include <vector>

#include "pipeline/graph.h"
#include "pipeline/plan/plan.h"
#include "pipeline/run/buffers.h"

namespace fz {

/// Storage of a size estimate, kept so that the next one allocates nothing.
struct SizeEstimate {
  std::vector<std::size_t> buffer_bytes;  ///< the result, one size per buffer
  std::vector<std::size_t> inputs = {};
  std::vector<std::size_t> outputs = {};
};

/// What the stages announce for external inputs of the buffers' sizes, from one to the next.
/// `proven` asks for the sizes that no input can exceed.
void estimateSizes(const Graph& graph, const Buffers& buffers, bool proven, SizeEstimate& estimate);
std::vector<std::size_t> estimateSizes(const Graph& graph, const Buffers& buffers, bool proven);

/// Bytes of all buffers that take memory.
std::size_t totalBytes(const Graph& graph, const Buffers& buffers);
/// Bytes that a run needs at its peak: simulated for MINIMAL, all regions for PREALLOCATE.
std::size_t peakBytes(const Graph& graph, const Plan& plan, const Buffers& buffers);

}  // namespace fz
