#pragma once

#include <cstdint>

#include "coders/rze/rze_cuda.h"

namespace fz::rze {

/// Args of RzeOp.
using RzeArgs = CudaArgs;

}  // namespace fz::rze
