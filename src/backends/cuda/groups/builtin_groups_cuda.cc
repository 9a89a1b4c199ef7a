#include "backends/cuda/groups/builtin_groups.h"

namespace fz::cuda {

std::vector<std::span<const BuiltinGroup>> builtinGroups() {
  return {pfplF32Groups(), shuffleF32Groups()};
}

}  // namespace fz::cuda
