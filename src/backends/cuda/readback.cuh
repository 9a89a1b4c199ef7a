#pragma once

// The device's side of HostReadback. Device code only.

#include "backends/cuda/host_flag.cuh"
#include "backends/cuda/run_state.h"

namespace fz::cuda {

/// One block: the records to the host.
__device__ __forceinline__ void sendRecords(const HostReadback& readback) {
  for (unsigned i = threadIdx.x; i < readback.n_words; i += blockDim.x) {
    readback.host[i] = __ldcg(readback.device + i);  // other blocks may have written them
  }
}

/// The threads of one block from `first` on: the records as they were before the run. Before the
/// flag is raised: the host may do anything with their memory afterwards.
__device__ __forceinline__ void resetRecords(const HostReadback& readback, unsigned first) {
  for (unsigned i = threadIdx.x - first; i < readback.n_record_words; i += blockDim.x - first) {
    readback.device[i] = readback.start[i];
  }
}

/// All threads of the block that is the last one to work on the run.
__device__ __forceinline__ void bringToHost(const HostReadback& readback) {
  sendRecords(readback);
  __syncthreads();
  resetRecords(readback, 0);
  raiseFlag(readback.is_done);
}

}  // namespace fz::cuda
