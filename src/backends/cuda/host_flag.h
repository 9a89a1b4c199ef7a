#pragma once

#include <cstdint>

#include "fz/stream.h"

namespace fz::cuda {

// A word of pinned memory by which a kernel tells the host that something is done. The host sees it
// microseconds before a wait for the stream would end, which counts where a call takes tens of
// them.

/// Before the kernel is enqueued, and after all earlier ones that would raise the flag.
void lowerFlag(std::uint32_t* flag);
/// Until the flag is raised. Where that takes long, or where the kernel failed, until the stream
/// has done all its work; throws Error(kCuda) when that went wrong.
void waitForFlag(const std::uint32_t* flag, cudaStream_t stream);

}  // namespace fz::cuda
