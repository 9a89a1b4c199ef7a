#pragma once

#include "fused/bitplane_rze/bitplane_rze_cuda.h"

namespace fz::bitplane_rze {

/// Args of BitplaneRzeOp.
using BitplaneArgs = CudaArgs;

}  // namespace fz::bitplane_rze
