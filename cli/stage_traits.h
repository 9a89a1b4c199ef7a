#pragma once

#include <string>
#include <vector>

#include "fz/stage_descriptor.h"

namespace fz::cli {

/// How a stage can be run, with its default types and settings.
struct StageTraits {
  std::vector<std::string> backends;
  bool is_graph_safe_forward = false;  ///< compression may be captured as a CUDA graph
  bool is_graph_safe_inverse = false;
  bool is_fusable = false;
  std::string part;  ///< of a fused group, or why there is none
  /// Where the defaults are not fusable: types and a setting with which the stage is; empty if
  /// none.
  std::string fusable_with;
};

StageTraits traitsOf(const StageDescriptor& stage);

}  // namespace fz::cli
