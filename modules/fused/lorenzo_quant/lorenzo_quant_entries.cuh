#pragma once

#include "fused/lorenzo_quant/lorenzo_quant_cuda.h"

/// The steps of an encode around the pass over the field; all only enqueue.
namespace fz::lorenzo_quant::device {

/// Scans the range where the bound needs it, and makes the plan.
template <class T>
void launchEncodeSetup(const EncodeRun& run, std::size_t code_bytes, cudaStream_t stream);

/// Makes the lists from flags and counts.
template <class T>
void launchEntries(const EncodeRun& run, const Layout& limit, cudaStream_t stream);

}  // namespace fz::lorenzo_quant::device
