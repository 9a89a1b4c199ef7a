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
  std::vector<bool> is_reserve = {};  ///< of buffers whose size is not known before the run
};

/// What the stages announce for external inputs of the buffers' sizes, from one to the next.
/// `proven` asks for the sizes that no input can exceed.
void estimateSizes(const Graph& graph, const Buffers& buffers, bool proven, SizeEstimate& estimate);
std::vector<std::size_t> estimateSizes(const Graph& graph, const Buffers& buffers, bool proven);
/// The same, for taking memory before a run: where a decoder can only tell a reserve, such as one
/// of runs, those behind it would take that for damage. They are not asked; their buffers come to
/// 0.
void estimateKnownSizes(const Graph& graph, const Buffers& buffers, SizeEstimate& estimate);

/// Bytes of all buffers that take memory.
std::size_t totalBytes(const Graph& graph, const Buffers& buffers);
/// Bytes that a run needs at its peak: simulated for MINIMAL, all regions for PREALLOCATE.
std::size_t peakBytes(const Graph& graph, const Plan& plan, const Buffers& buffers);

}  // namespace fz
