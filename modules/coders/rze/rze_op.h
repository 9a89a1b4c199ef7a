#pragma once

#include <cstdint>

#include "coders/rze/rze_cuda.h"

namespace fz::rze {

/// Bytes that a warp has where values are put in rows.
inline constexpr std::uint32_t kWarpBytes = 2048;

/// Args of RzeOp.
using RzeArgs = CudaArgs;

}  // namespace fz::rze
