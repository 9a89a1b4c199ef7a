#pragma once

// The ops of the bitpack family.

#include "backends/cuda/groups/group_list.cuh"
#include "coders/adaptive_bitpack/cuda/op/op.cuh"
#include "predictors/lorenzo/cuda/op/op.cuh"
#include "predictors/tiled_lorenzo/cuda/op/op.cuh"
#include "quantizers/quantizer/cuda/op/flat.cuh"
