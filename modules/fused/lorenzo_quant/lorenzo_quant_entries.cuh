#pragma once

#include "fused/lorenzo_quant/lorenzo_quant_cuda.h"

/// The steps of an encode around the pass over the field; all only enqueue.
namespace fz::lorenzo_quant::device {

/// Scans the range where the bound needs it, and makes the plan.
template <class T>
void launchEncodeSetup(const EncodeRun& run, std::size_t code_bytes, cudaStream_t stream);

/// With n_clear, at most.
inline constexpr std::uint64_t kMostKeptChunks = 1024;

/// Makes the lists from flags and counts. With n_clear, also what the setup has noted of a bound
/// that the host knows, and flags and counts are left at 0: a run that is the same but for its
/// values needs no setup then.
template <class T>
void launchEntries(const EncodeRun& run, const Layout& limit, cudaStream_t stream);

/// The word before the counts: blocks that are done with them, 0 before and after.
FZ_HD std::uint64_t* blocksDone(const EncodeRun& run) {
  return reinterpret_cast<std::uint64_t*>(run.counts) - 1;
}

}  // namespace fz::lorenzo_quant::device
