#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "fz/stream.h"

namespace fz {

class Stage;

/// One edge of the graph: a stage's output, or data from outside.
struct BufferInfo {
  std::size_t size = 0;            ///< bytes in use
  std::size_t initial_size = 0;    ///< estimate from planning
  std::size_t allocated_size = 0;  ///< capacity
  void* d_ptr = nullptr;           ///< memory of the pipeline's backend
  std::string tag = {};
  int remaining_consumers = 0;
  std::vector<int> consumer_stage_ids = {};
  int producer_stage_id = -1;  ///< -1: from outside
  int producer_output_index = 0;
  bool is_allocated = false;
  bool is_persistent = false;  ///< survives reset()
  bool is_external = false;    ///< memory belongs to somebody else
};

/// One stage in the graph.
struct DAGNode {
  int id = 0;
  Stage* stage = nullptr;
  std::string name = {};
  std::vector<int> input_buffer_ids = {};
  std::vector<int> output_buffer_ids = {};
  std::unordered_map<int, int> output_index_to_buffer_id = {};
  std::vector<DAGNode*> dependencies = {};
  std::vector<DAGNode*> dependents = {};
  int level = -1;            ///< longest path from a source
  int execution_order = -1;  ///< position in the canonical order
  cudaStream_t stream = nullptr;
  bool is_executed = false;
};

}  // namespace fz
