#include "backends/cuda/groups/builtin_groups.h"

namespace fz::cuda {

std::vector<std::span<const BuiltinGroup>> builtinGroups() {
  return {bitpackF32U32Plain(),    bitpackF32U32Outlier(),      bitpackF32U16Plain(),
          bitpackF32U16Outlier(),  bitpackF64U32Plain(),        bitpackF64U32Outlier(),
          bitpackF64U16Plain(),    bitpackF64U16Outlier(),      pfplF32Groups(),
          pfplF64Groups(),         shuffleF32Groups(),          shuffleF64Groups(),
          bitplaneF32Groups(),     bitplaneF64Groups(),         lorenzoQuantF32Groups(),
          lorenzoQuantF64Groups(), lorenzoQuantGridF32Groups(), lorenzoQuantGridF64Groups()};
}

}  // namespace fz::cuda
