#pragma once

#include "backends/cuda/run_state.h"
#include "fused/lorenzo_quant/lorenzo_quant_cuda.h"

/// What a decode in a fused group has before and behind the group's kernel, one launch each.
namespace fz::lorenzo_quant::device {

/// Makes the plan, but for is_wide and is_long, which are 0 before as the marks are; marks the
/// values with range entries and puts the entries where the values will be, unless *gate is 0.
template <class T>
void launchGroupBegin(const DecodeRun& run,
                      std::size_t code_bytes,
                      std::uint64_t entry_limit,
                      const std::uint64_t* gate,
                      cudaStream_t stream);

/// Writes the exact values over the decoded ones, and leaves the marks and the plan's flags at 0,
/// *n_blocks_done too; ends the run where `readback` has a place for that.
template <class T>
void launchGroupEnd(const DecodeRun& run,
                    std::uint64_t entry_limit,
                    std::uint64_t* n_blocks_done,
                    const cuda::Call& call);

}  // namespace fz::lorenzo_quant::device
