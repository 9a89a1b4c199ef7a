#pragma once

// The device's side of HandOver. Device code only.

#include "backends/cuda/host_flag.cuh"
#include "backends/cuda/run_block.h"

namespace fz::cuda {

/// One block: the records to the host.
__device__ __forceinline__ void sendRecords(const HandOver& hand_over) {
  for (unsigned i = threadIdx.x; i < hand_over.n_words; i += blockDim.x) {
    hand_over.host[i] = __ldcg(hand_over.device + i);  // other blocks may have written them
  }
}

/// The threads of one block from `first` on: the records as they were before the run. Before the
/// flag is raised: the host may do anything with their memory afterwards.
__device__ __forceinline__ void resetRecords(const HandOver& hand_over, unsigned first) {
  for (unsigned i = threadIdx.x - first; i < hand_over.n_record_words; i += blockDim.x - first) {
    hand_over.device[i] = hand_over.start[i];
  }
}

/// All threads of the block that is the last one to work on the run.
__device__ __forceinline__ void handOver(const HandOver& hand_over) {
  sendRecords(hand_over);
  __syncthreads();
  resetRecords(hand_over, 0);
  raiseFlag(hand_over.is_done);
}

}  // namespace fz::cuda
