#pragma once

#include "backends/cuda/run_block.h"
#include "quantizers/quantizer/quantizer_cuda.h"

namespace fz::quantizer::device {

/// launchScatter() as the end of the run. False: there are no outliers, and nothing was launched.
bool launchLastScatter(const DecodeJob& job, const cuda::HandOver& hand_over, cudaStream_t stream);

}  // namespace fz::quantizer::device
