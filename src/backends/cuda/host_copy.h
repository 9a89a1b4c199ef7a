#pragma once

// Copies between the host's ordinary memory and a device, at the speed of the bus.

#include <cstddef>

#include "backends/cpu/parallel_for.h"
#include "fz/span.h"
#include "fz/stream.h"

namespace fz::cuda {

/// Who copies, and behind what.
struct HostCopy {
  int device;
  cudaStream_t stream;
  const CpuExecutor* threads = nullptr;  ///< that may help; null: none
};

// The driver copies ordinary memory with one thread through pinned memory of its own, which leaves
// most of the bus idle. Here threads do so, piece by piece, each with two pieces under way. Pinned
// memory, and whatever a device can reach, is copied as it is. Throw Error(kCuda).

/// Behind what the stream has; ordinary memory is read when it returns, other memory when the
/// stream has come past.
void copyFromHost(void* to_device, ByteView from, const HostCopy& how);
/// Behind what the stream has; all bytes are there when it returns.
void copyToHost(MutableByteView to, const void* from_device, const HostCopy& how);

/// Gives back the pinned pieces that no copy uses at the moment.
void releasePinnedPieces() noexcept;

}  // namespace fz::cuda
