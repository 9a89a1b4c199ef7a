#include "backends/cuda/groups/builtin_groups.h"

namespace fz::cuda {

std::vector<std::span<const BuiltinGroup>> builtinGroups() {
  return {pfplF32Groups(),         pfplF64Groups(),        shuffleF32Groups(),
          shuffleF64Groups(),      bitplaneF32Groups(),    bitplaneF64Groups(),
          lorenzoQuantF32Groups(), lorenzoQuantF64Groups()};
}

}  // namespace fz::cuda
